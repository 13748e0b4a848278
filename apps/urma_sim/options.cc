// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_sim/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/command_line.h"
#include "congestion/controller.h"

namespace urma::apps::simulation {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_sim - what would a network do to many hosts of liburma? In virtual time, and repeatable

  urma_sim --scenario I1 --cc caqm_r                 8 hosts send to one
  urma_sim --scenario I3 --cc ldcp --senders 32      32 transfers to one host, which end
  urma_sim --scenario I1 --topology leaf_spine       the same over two tiers of switches

  --scenario NAME   I1 incast   I2 at 400 Gb/s   I3 flows that end   J1 flows join and leave
                    L1 parking lot   M1 mixed round trips   S1 two beside small messages   X1 a
                    slower switch without port meters   X2 no port meters or marks   X3 only marks
  --cc NAME         congestion control: aimd, fixed, ldcp, dcqcn, caqm_w, caqm_r     (aimd)
  --topology NAME   star, parking or leaf_spine                                      (scenario)
  --senders N       hosts that send                                                  (scenario)
  --rate RATE       of each cable: 40Gbit, 100Gbit                                   (scenario)
  --rtt US          the round trip without queues, in microseconds                   (scenario)
  --message BYTES   the size of each write: 4K, 1M                                   (scenario)
  --flow BYTES      I3: the bytes of each flow                                       (2M)
  --duration US     virtual time that is measured, in microseconds; I3: at most      (400 rounds)
  --lanes N         virtual lanes of each port; hosts that send take them in turn    (1)
  --seed N          another seed is another run; the same one repeats it             (1)
  --json            print the results as JSON
  --trace-hash      print only the hash of everything that was delivered
  --version

Each host is a device of liburma with its whole transport, in this process. Switches have a queue of
4 MiB for each port, marks that suit --cc, and port meters if --cc has them. Flows first write once,
so that channels exist, and then all begin. Of several lanes, the highest one sends first. A round
is a round trip, or the time of 24 packets if that is longer; L1 and M1 take 800.

Exit codes
  0 ok   1 error   2 usage   130 Ctrl-C
)";

struct ShapeName {
  std::optional<Switches::Shape> read(std::string_view word) const {
    return Switches::shape_of(word);
  }
  std::string valid() const { return fmt::format("one of {}", fmt::join(choices(), ", ")); }
  std::vector<std::string> choices() const { return {"star", "parking", "leaf_spine"}; }
};

std::string names_of(const std::vector<Switches::Shape>& shapes) {
  std::string names;
  for (const Switches::Shape shape : shapes) {
    names += fmt::format("{}{}", names.empty() ? "" : " or ", Switches::name_of(shape));
  }
  return names;
}

// Returns the shortest round trip that the cables allow.
int64_t least_rtt_us(const Scenario& scenario, Choice choice) {
  do {
    choice.rtt += std::chrono::microseconds(1);
  } while (!is_possible(plan_of(scenario, choice)));
  return choice.rtt / std::chrono::microseconds(1);
}

void check(const Options& options, const apps::CommandLine& line) {
  const Scenario& scenario = *options.scenario;
  const Choice& choice = options.choice;
  if (std::ranges::find(scenario.shapes, choice.shape) == scenario.shapes.end()) {
    usage(fmt::format("--topology: scenario {} has no {}. Fix: give {}", scenario.name,
                      Switches::name_of(choice.shape), names_of(scenario.shapes)));
  }
  if (scenario.name == "L1" && choice.senders != scenario.usual.senders) {
    usage("--senders: scenario L1 always has 8 flows. Fix: leave --senders out");
  }
  if (choice.senders > scenario.most_senders) {
    usage(fmt::format("--senders: {} is too many for scenario {}. Fix: give 1 to {}",
                      choice.senders, scenario.name, scenario.most_senders));
  }
  if (line.given("--duration") && scenario.name == "J1") {
    usage("--duration: J1 takes as long as its flows join and leave. Fix: leave --duration out");
  }
  if (line.given("--flow") && scenario.usual.flow_bytes == 0) {
    usage(
        fmt::format("--flow: flows of scenario {} have no end. Fix: use --scenario I3, or leave "
                    "--flow out",
                    scenario.name));
  }
  if (choice.flow_bytes % choice.message_bytes != 0) {
    usage("--flow: a flow is a whole number of messages. Fix: give a multiple of --message");
  }
  if (!is_possible(plan_of(scenario, choice))) {
    usage(
        fmt::format("--rtt: cables of this --rate need longer to send a packet and its "
                    "acknowledgement. Fix: give at least {}, or a larger --rate",
                    least_rtt_us(scenario, choice)));
  }
}

}  // namespace

std::string help() { return std::string(screen); }

Options parse_options(int count, char** arguments) {
  Options options;
  Choice given;
  const congestion::ControllerKind* control = congestion::find_controller("aimd");
  uint64_t rtt_us = 0, duration_us = 0;
  apps::CommandLine line("urma_sim", help);
  line.value("--scenario", options.scenario, apps::OneOf{scenarios()});
  line.value("--cc", control, apps::OneOf{congestion::controllers()});
  line.value("--topology", given.shape, ShapeName{});
  line.value("--senders", given.senders, apps::WholeNumber{1, 1000});
  line.value("--rate", given.bytes_per_second, apps::BitRate{1e8, 8e11});
  line.value("--rtt", rtt_us, apps::WholeNumber{2, 10'000});
  line.value("--message", given.message_bytes, apps::Bytes{1 << 20});
  line.value("--flow", given.flow_bytes, apps::Bytes{1 << 30});
  line.value("--duration", duration_us, apps::WholeNumber{10, 100'000'000});
  line.value("--lanes", given.lanes, apps::WholeNumber{1, fabric::most_lanes});
  line.value("--seed", given.seed, apps::WholeNumber{0, UINT32_MAX});
  line.flag("--json", options.json);
  line.flag("--trace-hash", options.only_hash);
  if (const Asked asked = line.parse(count, arguments); asked != Asked::nothing) {
    options.mode = asked == Asked::help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  if (options.scenario == nullptr) {
    usage(fmt::format("--scenario is missing. Fix: give {}", apps::OneOf{scenarios()}.valid()));
  }
  options.mode = Options::Mode::run;
  Choice& choice = options.choice = options.scenario->usual;
  choice.cc = control->name;
  choice.shape = line.given("--topology") ? given.shape : options.scenario->shapes.front();
  if (given.senders > 0) choice.senders = given.senders;
  if (given.bytes_per_second > 0) choice.bytes_per_second = given.bytes_per_second;
  if (given.message_bytes > 0) choice.message_bytes = given.message_bytes;
  if (given.flow_bytes > 0) choice.flow_bytes = given.flow_bytes;
  if (rtt_us > 0) choice.rtt = std::chrono::microseconds(rtt_us);
  if (duration_us > 0) choice.duration = std::chrono::microseconds(duration_us);
  choice.seed = given.seed;
  choice.lanes = given.lanes;
  check(options, line);
  return options;
}

}  // namespace urma::apps::simulation
