#include "apps/urma_feed/options.h"

#include <fmt/format.h>

#include "apps/common/command_line.h"
#include "apps/urma_feed/immediates.h"

namespace urma::apps::feed {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_feed - many producers, one consumer that sleeps until a message arrives

  urma_feed consume                     receives messages from this host and others until Ctrl-C
  urma_feed produce --topic 3           sends to the consumer on this host, through shared memory
  urma_feed produce 10.0.0.5 --topic 3  sends to another host: HOST, ADDRESS or ADDRESS:PORT

  --device STRING   consume: use only this device (repeatable); produce: use this device
                    cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --count N         consume: end after N messages; produce: send N messages  (until Ctrl-C)
  --producers N     consume: end after N producers have ended
  --topic LIST      produce: the topics, 0 to 254, used in turn: 3 or 1,2,7   (0)
  --rate N          produce: send at most N messages per second
  --work US         consume: spend US microseconds on each message, so that producers wait
  --version

Either side may start first: produce waits 2 s for a consumer that has not started yet.
At its end, and on Ctrl-C, the consumer prints the number of messages of each topic, and whether any
are missing or arrived twice. On a terminal a line shows its progress once a second.

Exit codes
  0 ok   1 error   2 usage   4 messages missing or repeated   5 consumer lost or not reached
  7 ok, but a capture (pcap) lacks packets   130 Ctrl-C, after the table
)";

}  // namespace

std::string help() { return std::string(screen); }

apps::Service service() {
  return {.name = "urma_feed",
          .role = "consumer",
          .serve = "urma_feed consume",
          .ask = "urma_feed produce"};
}

Options parse_options(int count, char** arguments) {
  constexpr uint64_t most = uint64_t{1} << 50;
  Options options;
  std::string what;
  apps::CommandLine line("urma_feed");
  line.text("what", what);
  line.value("host", options.host, apps::Host{});
  line.texts("--device", options.devices);
  line.value("--count", options.count, apps::WholeNumber{1, most});
  line.value("--producers", options.producers, apps::WholeNumber{1, most});
  line.value("--topic", options.topics, apps::ListOf{apps::WholeNumber{0, end_topic - 1}});
  line.value("--rate", options.rate, apps::WholeNumber{1, 1'000'000'000});
  line.value("--work", options.work_us, apps::WholeNumber{1, 1'000'000});
  if (const Asked asked = line.parse(count, arguments); asked != Asked::nothing) {
    options.mode = asked == Asked::help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  const bool consumes = what == "consume";
  if (!consumes && what != "produce") {
    usage(fmt::format("{}. Fix: urma_feed consume, urma_feed produce HOST, or see --help",
                      what.empty() ? "missing command: consume or produce"
                                   : fmt::format("\"{}\" is not a command", what)));
  }
  options.mode = consumes ? Options::Mode::consume : Options::Mode::produce;
  if (consumes &&
      ((line.given("host") && !options.host.empty()) || line.first_given({"--topic", "--rate"}))) {
    usage("consume takes no host, no --topic and no --rate. Fix: give them to urma_feed produce");
  }
  if (!consumes && (line.first_given({"--producers", "--work"}) || options.devices.size() > 1)) {
    usage(
        "produce takes one --device, no --producers and no --work. Fix: give them to urma_feed "
        "consume");
  }
  if (options.host.empty()) options.host = Options().host;
  return options;
}

}  // namespace urma::apps::feed
