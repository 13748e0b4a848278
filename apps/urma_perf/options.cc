#include "apps/urma_perf/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "apps/common/servers.h"
#include "apps/urma_perf/budget.h"
#include "apps/urma_perf/failure.h"

namespace urma::perf {
namespace {

// The words as they were given, if they were.
struct Words {
  std::string what, host;
  std::optional<std::string> size, seconds, count, depth, signal_every, jetties, threads, rounds,
      seed, spread, churn, cpu, report_to, speaks, retransmit, order, mode, fence_every, atomic;
  std::array<bool, threads_modes.size()> modes{};
  bool no_verify = false;
  bool help = false, help_all = false, version = false, budget = false;
};

[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view wanted) {
  throw Failure(Exit::usage, fmt::format("{}: \"{}\" is invalid. Fix: {}", option, text, wanted));
}

uint64_t whole_number(std::string_view option, std::string_view text, uint64_t least,
                      uint64_t most) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc{} && end == text.data() + text.size() && value >= least &&
      value <= most) {
    return value;
  }
  refuse(option, text, fmt::format("a whole number from {} to {}", least, most));
}

template <class Number>
void read_number(std::string_view option, const std::optional<std::string>& text, Number& value,
                 uint64_t least, uint64_t most) {
  if (text) value = static_cast<Number>(whole_number(option, *text, least, most));
}
template <class Number>
void read_number(std::string_view option, const std::optional<std::string>& text,
                 std::optional<Number>& value, uint64_t least, uint64_t most) {
  if (text) value = static_cast<Number>(whole_number(option, *text, least, most));
}

double read_seconds(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0.01 || value > 3600) {
    refuse("--seconds", text, "seconds from 0.01 to 3600, like 2 or 0.5");
  }
  return value;
}

// `several`: a list of sizes may stand there.
uint64_t read_size(std::string_view option, std::string_view text, uint64_t most, bool several) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (failure != std::errc{} || shift < 0 || value == 0 || value > (most >> shift)) {
    refuse(option, text,
           fmt::format("1 to {} bytes, as 64, 4K{}", size_text(most),
                       several ? " or 64,4K,1M" : " or 1M"));
  }
  return value << shift;
}

std::vector<uint64_t> read_sizes(std::string_view text) {
  std::vector<uint64_t> sizes;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    sizes.push_back(read_size("--size", text.substr(at, comma - at), max_write_bytes, true));
    at = comma + 1;
  }
  return sizes;
}

template <class Named>
void read_named(std::string_view option, const std::optional<std::string>& text,
                std::span<const Named> all, const Named*& out) {
  if (!text) return;
  if (const Named* found = find_named(all, *text)) {
    out = found;
    return;
  }
  std::string names;
  for (const Named& one : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  refuse(option, *text, "one of " + names);
}

const NamedRetransmission* read_retransmission(std::string_view text) {
  if (const NamedRetransmission* found = find_retransmission(text)) return found;
  std::string names;
  for (const NamedRetransmission& one : named_retransmissions()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  }
  refuse("--retransmit", text, "one of " + names);
}

void add_options(CLI::App& app, Options& options, Words& words) {
  app.set_help_flag();
  app.add_flag("-h,--help", words.help);
  app.add_flag("--help-all", words.help_all);
  app.add_flag("--version", words.version);
  app.add_flag("--budget", words.budget);
  app.add_option("what", words.what);
  app.add_option("host", words.host);
  app.add_flag("--self", options.self);
  app.add_option("--size", words.size);
  app.add_flag("--sweep", options.sweep);
  app.add_option("--seconds", words.seconds);
  app.add_option("--count", words.count);
  app.add_option("--depth", words.depth);
  app.add_option("--signal-every", words.signal_every);
  app.add_option("--jetties", words.jetties);
  app.add_option("--threads", words.threads);
  app.add_option("--rounds", words.rounds);
  app.add_option("--seed", words.seed);
  app.add_option("--device", options.device);
  app.add_option("--retransmit", words.retransmit);
  app.add_option("--peer-device", options.peer_device);
  for (size_t i = 0; i < threads_modes.size(); ++i)
    app.add_flag(threads_modes[i].option, words.modes[i]);
  app.add_flag("--no-verify", words.no_verify);
  app.add_flag("--private", options.own_memory);
  app.add_option("--spread", words.spread);
  app.add_option("--order", words.order);
  app.add_option("--mode", words.mode);
  app.add_option("--fence-every", words.fence_every);
  app.add_option("--atomic", words.atomic);
  app.add_option("--churn", words.churn);
  app.add_flag("--limit", options.limit);
  app.add_flag("--json", options.json);
  app.add_option("--json-file", options.json_file);
  app.add_flag("-v,--verbose", options.verbose);
  app.add_flag("--once", options.once);
  app.add_option("--cpu", words.cpu);
  app.add_option("--report-to", words.report_to);
  app.add_option("--speaks", words.speaks);
}

void read_words(const Words& words, Options& options) {
  constexpr uint64_t any = UINT64_MAX;
  if (words.size) options.sizes = read_sizes(*words.size);
  if (words.spread) options.spread = read_size("--spread", *words.spread, most_memory_bytes, false);
  if (words.seconds) options.seconds = read_seconds(*words.seconds);
  read_number("--count", words.count, options.count, 1, any);
  read_number("--depth", words.depth, options.depth, 1, most_depth);
  read_number("--signal-every", words.signal_every, options.signal_every, 1, most_depth);
  read_number("--jetties", words.jetties, options.jetties, words.budget ? least_budget_jetties : 1,
              words.budget ? 999'998 : most_jetties);
  read_number("--threads", words.threads, options.threads, 1, most_jetties);
  read_number("--rounds", words.rounds, options.rounds, 1, 1000);
  read_number("--seed", words.seed, options.seed, 0, UINT32_MAX);
  read_named<NamedOrder>("--order", words.order, named_orders, options.ordering.order);
  read_named<NamedMode>("--mode", words.mode, named_modes, options.ordering.mode);
  read_named<NamedAtomic>("--atomic", words.atomic, named_atomics, options.atomic);
  read_number("--fence-every", words.fence_every, options.ordering.fence_every, 1, most_depth);
  read_number("--churn", words.churn, options.churn, 1, 1'000'000);
  read_number("--cpu", words.cpu, options.cpu, 0, 1023);
  read_number("--report-to", words.report_to, options.report_to, 0, 1023);
  if (words.retransmit) options.retransmit = read_retransmission(*words.retransmit);
  read_number("--speaks", words.speaks, options.speaks, 0, INT32_MAX);
  // A thread has a Jetty at least; one for each unless more are asked for.
  if (!words.jetties) options.jetties = options.threads;
}

[[noreturn]] void usage(std::string message) { throw Failure(Exit::usage, std::move(message)); }

void choose_mode(const Words& words, Options& options) {
  using Mode = Options::Mode;
  const std::string& what = words.what;
  options.host = words.host;
  if (words.budget) {
    options.mode = Mode::budget;
    if (!what.empty() || options.self) {
      usage("--budget is a measurement of its own. Fix: urma_perf --budget, with --jetties or not");
    }
    return;
  }
  if (what == "server") {
    options.mode = Mode::server;
    if (!words.host.empty() || options.self) {
      usage(
          "server: it takes no host and no --self. Fix: urma_perf server, and on the other "
          "machine urma_perf TEST HOST; or urma_perf --self TEST");
    }
    return;
  }
  if (what.empty() || what == "main") {
    options.mode = Mode::main_job;
    if (options.self && words.host.empty()) return;
    usage(what.empty() ? "what is to be done? Fix: urma_perf --self, urma_perf server, urma_perf "
                         "TEST HOST, or see --help"
                       : "main runs both sides here. Fix: urma_perf --self");
  }
  if (what == "reg") {
    options.mode = Mode::registration;
    if (options.self && words.host.empty()) return;
    usage("reg is measured in this process. Fix: urma_perf reg --self");
  }
  options.mode = Mode::test;
  options.test = find_test(what);
  if (options.test == nullptr) {
    usage(fmt::format("\"{}\" is no test. Fix: server, reg, or one of {}", what, test_names()));
  }
  if (options.self && !words.host.empty()) {
    usage(
        fmt::format("--self runs both sides here and takes no host (\"{}\"). Fix: leave one of "
                    "them out",
                    words.host));
  }
  if (!options.self && words.host.empty()) options.host = "localhost";
}

void choose_threads(const Words& words, Options& options) {
  bool chosen = false;
  for (size_t i = 0; i < threads_modes.size(); ++i) {
    if (!words.modes[i]) continue;
    if (chosen) {
      usage(fmt::format("{} and {} exclude each other. Fix: leave one of them out",
                        options.threads_mode->option, threads_modes[i].option));
    }
    options.threads_mode = &threads_modes[i];
    chosen = true;
  }
}

// Options that this use of the program does not have.
void refuse_strangers(const Words& words, const Options& options) {
  const bool measures = options.mode == Options::Mode::test;
  const bool registers = options.mode == Options::Mode::registration;
  if (words.churn && !registers) usage("--churn belongs to reg. Fix: urma_perf reg --self");
  for (const auto& [name, given] : {std::pair("--size", words.size && !registers),
                                    {"--sweep", options.sweep},
                                    {"--seconds", options.seconds && !registers},
                                    {"--count", options.count.has_value()},
                                    {"--depth", options.depth.has_value()},
                                    {"--signal-every", words.signal_every.has_value()},
                                    {"--jetties", words.jetties.has_value()},
                                    {"--threads", words.threads.has_value()},
                                    {"--rounds", words.rounds.has_value()},
                                    {"--limit", options.limit},
                                    {"--spread", words.spread.has_value()},
                                    {"--order", words.order.has_value()},
                                    {"--mode", words.mode.has_value()},
                                    {"--fence-every", words.fence_every.has_value()},
                                    {"--atomic", words.atomic.has_value()},
                                    {"--seed", words.seed.has_value()}}) {
    const bool counted = words.budget && name == std::string_view("--jetties");
    if (given && !measures && !counted)
      usage(fmt::format("{} belongs to a test. Fix: name one of {}", name, test_names()));
  }
  const bool server = options.mode == Options::Mode::server;
  const bool job = options.mode == Options::Mode::main_job;
  for (const std::string& device : {options.device, options.peer_device}) {
    if (measures || server || job) apps::refuse_simulation(device);
  }
  if (server && (options.json || !options.json_file.empty() || !options.verify)) {
    usage(
        "server: results and checks are the client's. Fix: give --json, --json-file and "
        "--no-verify to urma_perf TEST HOST");
  }
  if (options.once && !server) usage("--once belongs to urma_perf server. Fix: leave it out");
  if (!options.peer_device.empty() && job && options.device.empty()) {
    usage("--peer-device goes with the --device that it answers. Fix: give --device, too");
  }
  if (!options.peer_device.empty() && !options.self) {
    usage("--peer-device is for --self. Fix: urma_perf server --device STRING, over there");
  }
  if (!options.host.empty() && options.host.find('/') != std::string::npos) {
    usage(fmt::format("\"{}\" is no host. Fix: localhost, ADDRESS or ADDRESS:PORT", options.host));
  }
}

void check_cases(const Options& options) {
  if (options.mode != Options::Mode::test) return;
  if (options.threads > options.jetties) {
    usage(
        fmt::format("--threads {} with --jetties {}: each thread has a Jetty of its own. Fix: as "
                    "many --jetties as --threads, or more",
                    options.threads, options.jetties));
  }
  if (options.sweep && !options.sizes.empty()) {
    usage("--sweep is a list of sizes, as --size is. Fix: leave one of them out");
  }
  for (const Case& what : options.cases()) {
    if (const std::string why = objection(what); !why.empty()) usage(why);
  }
}

}  // namespace

Case Options::case_for(uint64_t bytes) const {
  const uint32_t whole_groups = default_depth(*test, bytes) / signal_every * signal_every;
  return {.test = test,
          .bytes = bytes,
          .depth = depth.value_or(std::max(whole_groups, test->bandwidth() ? signal_every : 1)),
          .jetties = jetties,
          .signal_every = signal_every,
          .verify = verify,
          .limit = limit,
          .own_memory = own_memory,
          .spread = spread,
          .ordering = ordering,
          .atomic = atomic,
          .seed = seed};
}

std::vector<Case> Options::cases() const {
  constexpr uint64_t small = 64;
  constexpr uint64_t word = most_atomic_bytes;
  constexpr uint64_t large = 64 * 1024;
  constexpr uint64_t least_swept = 8;
  constexpr uint64_t most_swept = 4 << 20;
  std::vector<Case> cases;
  if (sweep && test->atomics()) {
    for (uint64_t bytes = 1; bytes <= word; bytes *= 2) cases.push_back(case_for(bytes));
    return cases;
  }
  if (sweep) {
    const uint64_t most = test->sends() ? std::min(max_send_bytes, most_swept) : most_swept;
    for (uint64_t bytes = least_swept; bytes <= most; bytes *= 2) cases.push_back(case_for(bytes));
    return cases;
  }
  for (const uint64_t bytes : sizes) cases.push_back(case_for(bytes));
  if (!sizes.empty()) return cases;
  cases.push_back(case_for(test->atomics() ? word : test->bandwidth() ? large : small));
  return cases;
}

Options parse_options(int count, char** arguments) {
  Options options;
  Words words;
  CLI::App app;
  add_options(app, options, words);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& e) {
    usage(fmt::format("{}. Fix: see urma_perf --help", e.what()));
  }
  options.command.assign(arguments, arguments + count);
  if (words.help || words.help_all || words.version) {
    options.mode = words.help_all  ? Options::Mode::help_all
                   : words.version ? Options::Mode::version
                                   : Options::Mode::help;
    return options;
  }
  choose_threads(words, options);
  options.verify = !words.no_verify;
  read_words(words, options);
  choose_mode(words, options);
  refuse_strangers(words, options);
  check_cases(options);
  return options;
}

}  // namespace urma::perf
