#include "apps/urma_feed/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "apps/urma_feed/message.h"

namespace urma::feed {
namespace {

constexpr std::string_view screen =
    R"(urma_feed - many producers, one consumer that sleeps until it is told something

  urma_feed consume                     takes messages from this host and others; until Ctrl-C
  urma_feed produce --topic 3           to the one on this host, through shared memory
  urma_feed produce 10.0.0.5 --topic 3  to another host: HOST, ADDRESS or ADDRESS:PORT

  --device STRING   consume: only this one (again for more); produce: this one
                    cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --count N         consume: end after N messages; produce: N messages       (until Ctrl-C)
  --producers N     consume: end after so many producers have ended
  --topic LIST      produce: topics 0 to 254, in turns: 3 or 1,2,7           (0)
  --rate N          produce: at most so many messages a second
  --work US         consume: handle each message for so many microseconds: producers then wait
  --version

At its end, and on Ctrl-C, the consumer prints what came for each topic. On a terminal a line tells
once a second how it goes.

Exit codes
  0 ok   1 error   2 usage   4 messages missing or repeated   5 consumer lost or not reached
  7 ok, but a capture (pcap) lacks packets   130 Ctrl-C, after the table
)";

[[noreturn]] void usage(std::string message) { throw Failure(Exit::usage, std::move(message)); }

uint64_t number(std::string_view option, std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc{} && end == text.data() + text.size() && value >= least &&
      value <= most) {
    return value;
  }
  usage(fmt::format("{}: \"{}\" is invalid. Fix: a whole number from {} to {}", option, text, least,
                    most));
}

std::vector<uint32_t> read_topics(std::string_view text) {
  std::vector<uint32_t> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    all.push_back(
        static_cast<uint32_t>(number("--topic", text.substr(at, comma - at), 0, end_topic - 1)));
    at = comma + 1;
  }
  return all;
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
  Options options;
  std::string what, host;
  std::optional<std::string> messages, producers, topic, rate, work;
  bool help = false, version = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  app.add_option("what", what);
  app.add_option("host", host);
  app.add_option("--device", options.devices)->expected(1)->take_all();
  app.add_option("--count", messages);
  app.add_option("--producers", producers);
  app.add_option("--topic", topic);
  app.add_option("--rate", rate);
  app.add_option("--work", work);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& e) {
    usage(fmt::format("{}. Fix: see urma_feed --help", e.what()));
  }
  if (help || version) {
    options.mode = help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  if (what != "consume" && what != "produce") {
    usage(fmt::format(
        "{}. Fix: urma_feed consume, urma_feed produce HOST, or see --help",
        what.empty() ? "what is to be done?" : fmt::format("\"{}\" is not what it can do", what)));
  }
  const bool consumes = what == "consume";
  options.mode = consumes ? Options::Mode::consume : Options::Mode::produce;
  if (consumes && (!host.empty() || topic || rate)) {
    usage("consume: it takes no host, --topic or --rate. Fix: give them to urma_feed produce");
  }
  if (!consumes && (producers || work || options.devices.size() > 1)) {
    usage(
        "produce: it takes one --device, no --producers and no --work. Fix: give them to "
        "urma_feed consume");
  }
  if (!host.empty()) options.host = host;
  if (options.host.find('/') != std::string::npos) {
    usage(fmt::format("\"{}\" is no host. Fix: localhost, ADDRESS or ADDRESS:PORT", options.host));
  }
  constexpr uint64_t most = uint64_t{1} << 50;
  if (messages) options.count = number("--count", *messages, 1, most);
  if (producers) options.producers = number("--producers", *producers, 1, most);
  if (rate) options.rate = number("--rate", *rate, 1, 1'000'000'000);
  if (work) options.work_us = number("--work", *work, 1, 1'000'000);
  options.topics = read_topics(topic.value_or("0"));
  return options;
}

}  // namespace urma::feed
