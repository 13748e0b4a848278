// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/command_line.h"
#include "apps/urma_feed/immediates.h"
#include "apps/urma_feed/messages.h"

namespace urma::apps::feed {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_feed - many producers, and consumers that sleep until a message arrives

  urma_feed consume                      receives messages from this host and others until Ctrl-C
  urma_feed produce --topic 3            sends numbers to the consumer on this host
  urma_feed produce 10.0.0.5 --topic 3   sends to another host: HOST, ADDRESS or ADDRESS:PORT
  urma_feed consume --print > log        writes the payloads of messages to standard output
  tail -f log | urma_feed produce --lines --to 10.0.0.5 --to 10.0.0.6     lines, to several

  --device STRING   consume: use only this device (repeatable); produce: use this device
                    cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --count N         consume: end after N messages; produce: send N messages  (until Ctrl-C)
  --producers N     consume: end after N producers have ended
  --print           consume: write payloads to stdout, and all else to stderr
  --work US         consume: spend US microseconds on each message, so that producers wait
  --topic LIST      produce: the topics, 0 to 254, used in turn: 3 or 1,2,7   (0)
  --rate N          produce: send at most N messages per second
  --lines           produce: send each line of stdin
  --records N       produce: send each N bytes of stdin
  --to HOST         produce, with those two: send to this consumer (repeatable)  (localhost)
  --patience S      produce, with those two: wait S seconds for a new consumer if one ends  (10)
  --version
Either side may start first: produce waits 2 s for a consumer that has not started yet.
A payload counts as delivered when the consumer has written it. If a consumer ends, a new one gets
all that were not. It may write some again; the producer says how many at most.
Exit codes: 0 ok  1 error  2 usage  4 messages missing or repeated  5 consumer lost or not reached
  7 ok, but a capture (pcap) lacks packets  130 Ctrl-C, after the table
)";

void check_producing(const Options& options, const apps::CommandLine& line) {
  if (line.first_given({"--producers", "--work", "--print"}) || options.devices.size() > 1) {
    usage(
        "produce takes one --device, and no option of consume. Fix: give them to urma_feed "
        "consume");
  }
  line.exclude({"--lines", "--records"});
  if (options.input) return;
  if (const auto given = line.first_given({"--to", "--patience"})) {
    usage(
        fmt::format("{} belongs to messages from standard input. Fix: give --lines, or --records "
                    "N, too",
                    *given));
  }
}

void choose_hosts(Options& options, const std::string& host, std::vector<std::string> named) {
  if (!host.empty()) named.insert(named.begin(), host);
  for (const std::string& one : named) {
    const apps::Host valid;
    if (one.empty() || !valid.read(one)) {
      usage(fmt::format("--to: \"{}\" is invalid. Fix: give {}", one, valid.valid()));
    }
    if (std::ranges::count(named, one) > 1) {
      usage(fmt::format("the consumer {} is named twice. Fix: name each consumer once", one));
    }
  }
  if (!named.empty()) options.hosts = std::move(named);
}

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
  std::string host;
  bool lines = false;
  std::vector<std::string> hosts;
  apps::CommandLine line("urma_feed", help);
  line.text("what", what);
  line.offer("what", {"consume", "produce"});
  line.value("host", host, apps::Host{});
  line.texts("--to", hosts);
  line.texts("--device", options.devices);
  line.value("--count", options.count, apps::WholeNumber{1, most});
  line.value("--producers", options.producers, apps::WholeNumber{1, most});
  line.value("--topic", options.topics, apps::ListOf{apps::WholeNumber{0, end_topic - 1}});
  line.value("--rate", options.rate, apps::WholeNumber{1, 1'000'000'000});
  line.value("--work", options.work_us, apps::WholeNumber{1, 1'000'000});
  line.value("--patience", options.patience_seconds, apps::WholeNumber{1, 86400});
  line.value("--records", options.record_bytes, apps::Bytes{most_payload_bytes});
  line.flag("--lines", lines);
  line.flag("--print", options.print);
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
  options.input = lines || options.record_bytes > 0;
  if (consumes && (!host.empty() || line.first_given({"--topic", "--rate", "--to", "--patience",
                                                      "--lines", "--records"}))) {
    usage("consume takes no host, and no option of produce. Fix: give them to urma_feed produce");
  }
  if (!consumes) {
    check_producing(options, line);
    choose_hosts(options, host, std::move(hosts));
  }
  return options;
}

}  // namespace urma::apps::feed
