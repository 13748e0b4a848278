#include "apps/urma_stat/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "apps/urma_stat/failure.h"

namespace urma::stat {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view wanted) {
  throw Failure(Exit::usage, fmt::format("{}: \"{}\" is invalid. Fix: {}", option, text, wanted));
}

template <class Number>
bool read(const std::string& text, Number& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Options parse_options(int count, char** arguments) {
  Options options;
  std::optional<std::string> watch, looks;
  bool wants_help = false, wants_version = false, wants_metrics = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", wants_help);
  app.add_flag("--version", wants_version);
  app.add_flag("--metrics", wants_metrics);
  app.add_option("who", options.who);
  app.add_option("-w,--watch", watch);
  app.add_option("--count", looks);
  app.add_flag("--json", options.json);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& e) {
    throw Failure(Exit::usage, fmt::format("{}. Fix: see urma_stat --help", e.what()));
  }
  if (wants_help || wants_version || wants_metrics) {
    options.mode = wants_help      ? Options::Mode::help
                   : wants_version ? Options::Mode::version
                                   : Options::Mode::metrics;
  }
  if (watch) {
    double seconds = 0;
    // Not a number compares as nothing.
    if (!read(*watch, seconds) || !(seconds >= 0.2 && seconds <= 3600)) {
      refuse("--watch", *watch,
             "seconds from 0.2 to 3600, like 1 (devices report each tenth of a second)");
    }
    options.watch = seconds;
  }
  if (looks) {
    uint64_t number = 0;
    if (!read(*looks, number) || number == 0) {
      refuse("--count", *looks, "how many looks, 1 or more");
    }
    options.count = number;
  }
  const bool shows = options.mode == Options::Mode::show;
  if (options.count && !options.watch) {
    throw Failure(Exit::usage, "--count belongs to --watch. Fix: add --watch SECONDS");
  }
  if (!shows && (options.watch || !options.who.empty())) {
    throw Failure(Exit::usage,
                  "--metrics, --help and --version look at no device. Fix: leave out the rest");
  }
  return options;
}

std::string_view help() {
  return R"(urma_stat - what do the open devices of this user count?

  urma_stat                    a table: each device of each process
  urma_stat PID                all that the devices of this process count, with unit and meaning
  urma_stat NAME               the same for all processes of the program of this name
  urma_stat --watch 1          rates, each second; Ctrl-C ends it
  urma_stat PID --watch 1 --count 10 --json > ten.json       ten lines, a JSON object each
  urma_stat --metrics          what is counted, in which unit, since when

  -w, --watch SECONDS   look again and again, 0.2 to 3600; on a terminal on one screen
  --count N             end after N looks
  --json                for programs: every metric with its value, unit, window and meaning
  --metrics             the metrics that this version of the library has; with --json, too
  --version

Table
  open        for how long the device has been open
  works, done, executed
              works taken from Jetties, completions shown to them, slices of peers executed here,
              and so on: since the device was opened; with --watch, each second
  unknown     works that may or may not have executed; refused: slices of peers
  resent      packets sent again; dropped: packets that could not be used
  "-": the process has another version of the library, which does not count this

A device is seen unless it was opened with DeviceOptions::observable off, or cannot write to
/dev/shm; another user's is not, nor one of a container that has a /dev/shm of its own.
Values are at most a tenth of a second old, but for devices that nobody runs (Threads::inlined).

Exit codes: 0 ok, also when no device is open   1 error   2 usage   130 Ctrl-C
)";
}

}  // namespace urma::stat
