// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include "apps/common/command_line.h"
#include "apps/urma_stat/users.h"

namespace urma::apps::stat {

namespace {

// An address to listen at.
struct Place {
  std::optional<Endpoint> read(std::string_view word) const {
    // Without a port it would be an address.
    const Result<Endpoint> at = parse_endpoint(word);
    return at && !parse_address(word) ? std::optional(*at) : std::nullopt;
  }
  std::string valid() const { return "ADDRESS:PORT, as 127.0.0.1:9464"; }
};

// A user, by name or number.
struct User {
  std::optional<uint32_t> read(std::string_view word) const { return find_user(word); }
  std::string valid() const { return "the name or the number of a user"; }
};

// Options that both urma_stat and urma_top have.
void add_common(CommandLine& line, Options& options) {
  line.text("process", options.process);
  // Devices report every tenth of a second.
  line.value("-w,--watch", options.watch, Seconds{0.2, 3600});
  line.value("--count", options.count, WholeNumber{.least = 1});
  line.value("--user", options.user, User{});
  line.flag("-a,--all", options.all);
}

// Only root may look at what belongs to others.
void check_user(const Options& options) {
  if (!options.user || *options.user == geteuid() || geteuid() == 0) return;
  throw Failure(Exit::error, fmt::format("--user {}: only root sees the devices of other users. "
                                         "Fix: run this command as root, or as that user",
                                         user_name(*options.user)));
}

}  // namespace

Options parse_options(int count, char** arguments) {
  Options options;
  bool wants_metrics = false;
  CommandLine line("urma_stat", help);
  line.flag("--metrics", wants_metrics);
  add_common(line, options);
  line.flag("--wide", options.wide);
  line.flag("--peers", options.peers);
  line.flag("--json", options.json);
  line.flag("--prometheus", options.prometheus);
  line.value("--listen", options.listen, Place{});
  const CommandLine::Asked asked = line.parse(count, arguments);
  options.mode = asked == CommandLine::Asked::help      ? Options::Mode::help
                 : asked == CommandLine::Asked::version ? Options::Mode::version
                 : wants_metrics                        ? Options::Mode::metrics
                                                        : Options::Mode::show;
  if (line.given("--count") && !line.given("--watch")) {
    usage("--count belongs to --watch. Fix: add --watch SECONDS");
  }
  line.exclude({"--json", "--prometheus", "--peers"});
  line.exclude({"--listen", "--watch"});
  if (options.listen && !options.prometheus) {
    usage("--listen belongs to --prometheus. Fix: add --prometheus");
  }
  check_user(options);
  const bool shows = options.mode == Options::Mode::show;
  if (!shows && (line.given("--watch") || options.peers || !options.process.empty())) {
    usage("--metrics, --help and --version show no device. Fix: leave out the rest");
  }
  return options;
}

std::string help() {
  return R"(urma_stat - shows the counters of open devices: of this user, or for root of all users

  urma_stat                    a table: each device of each process
  urma_stat PID                all counters of the devices of this process, with unit and meaning
  urma_stat NAME               the same for all processes of the program with this name
  urma_stat --peers            each channel and path: peer, state, rate, window, RTT, losses, age
  urma_stat --watch 1          rates, each second; Ctrl-C ends it
  urma_stat PID --watch 1 --count 10 --json > ten.json       ten lines, a JSON object each
  urma_stat --prometheus --listen 127.0.0.1:9464             http://127.0.0.1:9464/metrics
  urma_stat --metrics          the counters, their units, and since when they count

  -w, --watch SECONDS   repeat every SECONDS, 0.2 to 3600; on a terminal on one screen
  --count N             end after N outputs
  --peers               show channels; with PID or NAME, those of this process or program
  -a, --all             also counters that are 0, and channels that are idle
  --wide                all columns, also if the terminal is too narrow for them
  --user USER           only the devices of this user
  --json                output for programs: every metric with its value, unit, window and
                        meaning, and every channel
  --prometheus          the counters and channels in the text format of Prometheus
  --listen ADDRESS:PORT with --prometheus: answer requests for /metrics there until Ctrl-C
  --metrics             list the metrics of this version of the library; also with --json
  --version

Table
  open        the time since the device was opened
  works, done, executed, bytes
              works taken from Jetties, completions shown to them, slices of peers executed here,
              bytes moved, and so on: since the device was opened; with --watch, each second
  unknown     works that may or may not have executed; refused: slices of peers
  resent      packets sent again; dropped: packets that could not be used
  --peers: rate is bytes/s that the peer acknowledged, since the channel was made; with --watch,
              since the previous look. Below is why a cc with * is not the one asked for
  "-": the process has another version of the library, which does not count this

A device is shown unless it was opened with DeviceOptions::observable off, or cannot write to
/dev/shm. Containers with their own /dev/shm are not seen. Live view: urma_top.
Values are at most 0.1 s old, except for devices that no thread runs (Threads::inlined).

Exit codes: 0 ok, even if no device is open   1 error   2 usage   130 Ctrl-C
)";
}

Options parse_top_options(int count, char** arguments) {
  Options options;
  CommandLine line("urma_top", top_help);
  add_common(line, options);
  const CommandLine::Asked asked = line.parse(count, arguments);
  options.mode = asked == CommandLine::Asked::help      ? Options::Mode::help
                 : asked == CommandLine::Asked::version ? Options::Mode::version
                                                        : Options::Mode::show;
  if (!options.watch) options.watch = 1;
  check_user(options);
  return options;
}

std::string top_help() {
  return R"(urma_top - shows, live, which devices and channels move most bytes

  urma_top                    all devices of this user, or for root of all users, each second
  urma_top PID | NAME         those of this process, or of the program with this name

  -w, --watch SECONDS   look again every SECONDS, 0.2 to 3600 (1)
  --count N             end after N looks
  --user USER           only the devices of this user
  -a, --all             also channels that are idle
  --version

Keys: q ends it, as Ctrl-C does; a shows or hides idle channels.

Above are the devices, below their channels, each sorted by bytes per second. The columns are those
of urma_stat --watch and urma_stat --peers; those for which the terminal is too narrow are named.
It needs a terminal; for a file or a program use urma_stat --watch.

Exit codes: 0 ended by q or --count   1 error   2 usage   130 Ctrl-C
)";
}

}  // namespace urma::apps::stat
