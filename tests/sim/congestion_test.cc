// SPDX-License-Identifier: Apache-2.0
// Congestion controls that read reports of the receiver, over a simulated line that marks packets.

#include "congestion/controller.h"
#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// A line of 10 Gb/s with a round trip of 100 us, which holds 125 KB, and a queue of 600 KB.
constexpr double line_bytes_per_second = 1.25e9;
constexpr const char* marking_line = "rate=10Gbit&queue=600K&mark=100K&delay=50us";
constexpr const char* way_back = "delay=50us";

// Returns the names of the controls that read marks of ECN, alone or with the answers of switches.
std::vector<std::string> controls_that_read_marks() {
  std::vector<std::string> names;
  for (const congestion::ControllerKind& kind : congestion::controllers()) {
    const bool reads = kind.needs == congestion::Needs::marks ||
                       kind.needs == congestion::Needs::notifications ||
                       kind.needs == congestion::Needs::rates;
    if (reads) names.emplace_back(kind.name);
  }
  return names;
}

// A control that paces is told the rate of the line, so a single channel fills no queue.
bool paces(const std::string& control) { return congestion::find_controller(control)->paces; }

struct Transfer {
  double utilisation = 0;
  Statistics sender;
  Statistics receiver;
};

// Writes `count` times 256 KiB, many at a time.
Transfer transfer(const std::string& network, const std::string& control,
                  const std::string& line = marking_line, int count = 256) {
  constexpr size_t bytes = 256 << 10;
  auto [hosts, here, there, target] =
      SimPair(network, {.network = line, .device = {.congestion = control}}, {.network = way_back});
  const auto data = bytes_like(bytes);
  const Time begun = hosts.now();
  int posted = 0;
  for (int ended = 0; ended < count;) {
    while (posted < count && here.jetty.post(write(data, target.segment)) == 1) ++posted;
    const auto completions = here.jetty.wait(1s);
    REQUIRE_FALSE(completions.empty());
    for (const Completion& one : completions) REQUIRE(name(one.status) == "ok");
    ended += static_cast<int>(completions.size());
  }
  const double seconds = std::chrono::duration<double>(hosts.now() - begun).count();
  CHECK(same(data, std::span(there.memory).first(bytes)));
  return {.utilisation = static_cast<double>(bytes) * count / seconds / line_bytes_per_second,
          .sender = here.device.stats().value(),
          .receiver = there.device.stats().value()};
}

TEST_CASE("a control that reads marks fills a line without a loss") {
  for (const std::string& control : controls_that_read_marks()) {
    INFO(control);
    const Transfer done = transfer("marks-" + control, control);
    CHECK(done.utilisation > 0.7);
    CHECK(done.sender.retransmitted == 0);
    if (!paces(control)) CHECK(done.receiver.packets_marked > 0);
  }
  const Transfer by_loss = transfer("marks-aimd", "aimd");
  CHECK(by_loss.sender.retransmitted > 0);
  CHECK(by_loss.receiver.packets_marked == 0);
}

TEST_CASE("paced packets leave in trains that are as long as their timer is late") {
  const auto train = [](const std::string& name, const std::string& options) {
    const Transfer done = transfer(name, "caqm_r", marking_line + options);
    CHECK(done.sender.paced_packets == done.sender.packets_sent);
    CHECK(done.utilisation > 0.5);
    return static_cast<double>(done.sender.paced_packets) /
           static_cast<double>(done.sender.paced_trains);
  };
  const double in_time = train("trains-in-time", "");
  const double late = train("trains-late", "&scheduling_delay=100us");
  CAPTURE(in_time, late);
  // A packet takes about 3.3 us of the line. The engine is late by 50 us on average.
  CHECK(in_time < 4);
  CHECK(late > 3 * in_time);
  CHECK(late < 32);
}

// Set-up measures no round trip for the end that is opened, and none if an OPEN is repeated, as it
// is on this path.
TEST_CASE("on a long path, the presumed round trip is not taken for a path without queues") {
  const std::string line = "delay=20ms&rate=1Gbit&queue=4M";
  const DeviceOptions options{.congestion = "caqm_r"};
  auto [hosts, here, there, target] = SimPair("long-path", {.network = line, .device = options},
                                              {.network = line, .device = options});
  std::vector<std::byte> data(256 << 10);
  const auto local = here.device.register_memory(data).value();
  const auto rounds = [&, &hosts = hosts, &here = here](const Work& work) {
    const Time begun = hosts.now();
    CHECK(status_of(here.jetty, work, 20s) == Status::ok);
    return (hosts.now() - begun) / 40ms;
  };
  CHECK(rounds(write(data, target.segment)) < 50);
  CHECK(rounds(read(data, target.segment)) < 50);
}

// Keeps writing messages of this size over a switch. Returns how many end in a round trip.
double messages_in_round(const std::string& control, const std::string& meter, size_t bytes) {
  constexpr Duration round = 100us;
  const std::string network = "small-" + control + "-" + meter + "-" + std::to_string(bytes);
  const HostOptions options{
      .network = "topology=star&rate=100Gbit&queue=4M&mark=1M&delay=25us&rtt=101us&meter=" + meter,
      .jetty = {.berths = 512},
      .device = {.congestion = control}};
  const auto data = bytes_like(bytes);
  auto [hosts, here, there, target] = SimPair(network, options, options);
  const auto write_for = [&, &hosts = hosts, &here = here, &target = target](int rounds) {
    const Time until = hosts.now() + rounds * round;
    int ended = 0;
    while (hosts.now() < until) {
      while (here.jetty.post(write(data, target.segment)) == 1) continue;
      for (const Completion& one : here.jetty.wait(until - hosts.now())) {
        REQUIRE(name(one.status) == "ok");
        ++ended;
      }
    }
    return static_cast<double>(ended) / rounds;
  };
  write_for(20);
  return write_for(10);
}

TEST_CASE("each control carries small messages as fast as aimd") {
  for (const size_t bytes : {64, 512, 4096}) {
    const double usual = messages_in_round("aimd", "none", bytes);
    for (const std::string control : {"ldcp", "dcqcn", "caqm_r", "caqm_w"}) {
      for (const std::string meter : {"none", "caqm_r", "caqm_w"}) {
        if (meter != "none" && meter != control) continue;
        const double carried = messages_in_round(control, meter, bytes);
        CAPTURE(control, meter, bytes, carried, usual);
        // ldcp begins with 32 packets, and adds one in a round trip.
        const bool slow = control == "ldcp" && bytes == 4096;
        CHECK(carried > (slow ? 32 : usual / 2));
      }
    }
  }
}

TEST_CASE("dcqcn starts at the rate of the line, and does not flood a slow one") {
  // The window of the receiver is far larger than the queue.
  const Transfer slow = transfer("slow-dcqcn", "dcqcn", "rate=100Mbit&queue=64K&delay=50us", 8);
  CHECK(slow.sender.retransmitted == 0);
  CHECK(slow.utilisation > 0.9 * 0.01);
}

// Four senders write to one receiver over a switch, the first of them with `first`, the others with
// `others`.
struct Incast {
  uint32_t most_queue = 0;
  uint64_t retransmitted = 0;
  uint64_t congested = 0;        // packets on which a port meter set C
  std::string control{};         // in effect at the first sender
  std::vector<double> shares{};  // of what a sender would get if all got the same
};
Incast incast(const std::string& network, const std::string& first, const std::string& others,
              const std::string& meter = "none") {
  constexpr int senders = 4;
  constexpr size_t bytes = 64 << 10;
  const std::string line =
      "topology=star&rate=10Gbit&queue=600K&mark=100K&delay=25us&rtt=106us&meter=" + meter;
  // Outlives the devices, which still read it when the last works are given up.
  const auto data = bytes_like(bytes);
  SimHosts hosts(network);
  auto there = hosts.start(line);
  std::vector<SimHosts::Host> from;
  std::vector<Imported> targets;
  for (int i = 0; i < senders; ++i) {
    const DeviceOptions options{.congestion = i == 0 ? first : others};
    from.push_back(hosts.start(line, {.berths = 64, .receives = 16}, options));
    targets.push_back(from.back().device.import(there.line).value());
  }
  std::vector<uint64_t> ended(senders);
  const Time until = hosts.now() + 50ms;
  while (hosts.now() < until) {
    for (size_t i = 0; i < senders; ++i) {
      while (from[i].jetty.post(write(data, targets[i].segment)) == 1) continue;
      for (const Completion& one : from[i].jetty.wait(20us)) {
        REQUIRE(name(one.status) == "ok");
        ++ended[i];
      }
    }
  }
  Incast out;
  const fabric::LaneCounters counters = hosts.network().counters_to(there.device.endpoint());
  out.most_queue = counters.most_queue;
  out.congested = counters.congested;
  const SettingList settings = from[0].device.settings().value();
  for (const Setting& setting : settings) {
    if (setting.name == "congestion") out.control = setting.value;
  }
  uint64_t all = 0;
  for (size_t i = 0; i < senders; ++i) {
    out.retransmitted += from[i].device.stats().value().retransmitted;
    all += ended[i];
  }
  for (size_t i = 0; i < senders; ++i) {
    out.shares.push_back(static_cast<double>(ended[i]) * senders / static_cast<double>(all));
  }
  return out;
}

TEST_CASE("four senders keep the queue of their receiver short, and none starves") {
  for (const std::string control : {"ldcp", "caqm_r"}) {
    INFO(control);
    const Incast with_marks = incast("incast-" + control, control, control);
    CHECK(with_marks.retransmitted == 0);
    CHECK(with_marks.most_queue < 420'000);
    for (const double share : with_marks.shares) CHECK(share > 0.5);
  }
  CHECK(incast("incast-aimd", "aimd", "aimd").most_queue > 550'000);
}

void check_metered(const Incast& seen, const std::string& control) {
  CHECK(seen.control == control);
  CHECK(seen.congested > 0);
  CHECK(seen.retransmitted == 0);
  for (const double share : seen.shares) CHECK(share > 0.7);
}

TEST_CASE("simulated switches answer the requests of senders by their port meters") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    INFO(control);
    check_metered(incast("metered-" + control, control, control, control), control);
  }
}

TEST_CASE("behind the meters of one C-AQM, senders that ask for the other one use the first") {
  for (const std::string meter : {"caqm_w", "caqm_r"}) {
    const std::string other = meter == "caqm_w" ? "caqm_r" : "caqm_w";
    INFO(meter);
    check_metered(incast("misread-" + meter, other, other, meter), meter);
    const Incast one = incast("misread-one-" + meter, other, meter, meter);
    for (const double share : one.shares) CHECK(share > 0.7);
  }
}

TEST_CASE("a sender that reads marks makes progress beside one that fills the queue") {
  const Incast mixed = incast("incast-mixed", "aimd", "ldcp");
  for (const double share : mixed.shares) CHECK(share > 0.01);
}

TEST_CASE("lost packets and reports end no work and no channel") {
  for (const std::string& control : controls_that_read_marks()) {
    INFO(control);
    const Transfer done =
        transfer("lost-reports-" + control, control, std::string(marking_line) + "&loss=0.1%", 64);
    CHECK(done.sender.channels_lost == 0);
    CHECK(done.sender.retransmitted > 0);
    CHECK(done.utilisation > 0.4);
  }
}

// Two paths from one host to another, each a line of its own.
struct TwoPaths : SimPair {
  uint64_t ended = 0;

  TwoPaths(const std::string& name, const std::string& control, const std::string& first,
           const std::string& second, const Retransmission& mode = sel_rack)
      : SimPair(
            name,
            {.text = paths(name, first, second),
             .jetty = {.berths = 64},
             .device = {.congestion = control, .retransmission = mode, .balance = Balance::packet}},
            {.text = paths(name, way_back, way_back), .jetty = {.berths = 64}}) {}

  static std::string paths(const std::string& name, const std::string& first,
                           const std::string& second) {
    return "paths():sim:" + name + "?" + first + "+sim:" + name + "?" + second;
  }

  // Keeps writing. Returns the bytes that arrive in a second.
  double flow(Duration time) {
    static const auto data = bytes_like(64 << 10);
    const Time begun = hosts.now();
    const uint64_t before = ended;
    while (hosts.now() < begun + time) {
      while (here.jetty.post(write(data, target.segment)) == 1) continue;
      for (const Completion& one : here.jetty.wait(100us)) {
        REQUIRE(name(one.status) == "ok");
        ++ended;
      }
    }
    const double seconds = std::chrono::duration<double>(hosts.now() - begun).count();
    return static_cast<double>((ended - before) * data.size()) / seconds;
  }
};

TEST_CASE("over two paths, controls that read marks fill both lines and keep their queues short") {
  const std::string slow = "rate=1Gbit&queue=600K&mark=100K&delay=50us";
  for (const std::string& control : controls_that_read_marks()) {
    INFO(control);
    TwoPaths equal("two-equal-" + control, control, marking_line, marking_line);
    equal.flow(10ms);
    const double both = equal.flow(20ms);
    // dcqcn cuts its rate by half and recovers slowly.
    const bool slow_to_recover = control == "dcqcn";
    CHECK(both > 2 * (slow_to_recover ? 0.7 : 0.8) * line_bytes_per_second);
    CHECK(both < 2 * line_bytes_per_second);
    if (!paces(control)) CHECK(equal.there.device.stats().value().packets_marked > 0);
    CHECK(equal.here.device.stats().value().overtaken_reports == 0);
    // A path of a tenth of the rate, which is always congested, does not hold the other one back.
    TwoPaths unequal("two-unequal-" + control, control, marking_line, slow);
    unequal.flow(20ms);
    CHECK(unequal.flow(20ms) > (slow_to_recover ? 0.6 : 0.85) * line_bytes_per_second);
    // caqm_r reads delays, and finds the queue before packets are marked.
    if (control != "caqm_r") CHECK(unequal.there.device.stats().value().packets_marked > 0);
    CHECK(unequal.here.device.stats().value().channels_lost == 0);
  }
}

TEST_CASE("in modes that use one path at a time, a control that reads marks changes paths") {
  for (const std::string control : {"ldcp", "caqm_r"}) {
    INFO(control);
    TwoPaths two("one-at-a-time-" + control, control, marking_line, marking_line, sel_fast);
    CHECK(two.flow(20ms) > 0.6 * line_bytes_per_second);
    const Path first = two.here.device.paths(two.target.segment.peer).value().at(0);
    two.hosts.network().faults.cut(first.from, first.to, true);
    two.flow(20ms);
    CHECK(two.flow(20ms) > 0.6 * line_bytes_per_second);
    two.hosts.network().faults.cut(first.from, first.to, false);
    two.flow(100ms);
    CHECK(two.flow(20ms) > 0.6 * line_bytes_per_second);
    CHECK(two.here.device.stats().value().channels_lost == 0);
  }
}

TEST_CASE("a control without its signals gives way to one that has them, and it is said why") {
  SimHosts hosts("no-signals");
  auto here = hosts.start("", {}, {.congestion = "caqm_w"});
  const std::string description = here.device.description();
  CHECK(description.find("congestion ldcp (warning: caqm_w needs") != std::string::npos);
  const SettingList settings = here.device.settings().value();
  for (const Setting& setting : settings) {
    if (setting.name != "congestion") continue;
    CHECK(setting.value == "ldcp");
    CHECK(setting.source.find("caqm_w") != std::string::npos);
  }
  auto there = hosts.start();
  const Imported target = here.device.import(there.line).value();
  CHECK(status_of(here.jetty, write(bytes_like(1000), target.segment)) == Status::ok);
}

}  // namespace
}  // namespace urma::test
