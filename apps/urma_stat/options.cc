#include "apps/urma_stat/options.h"

#include <fmt/format.h>

#include "apps/common/command_line.h"

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

}  // namespace

Options parse_options(int count, char** arguments) {
  Options options;
  bool wants_metrics = false;
  CommandLine line("urma_stat");
  line.flag("--metrics", wants_metrics);
  line.text("process", options.process);
  // Devices report every tenth of a second.
  line.value("-w,--watch", options.watch, Seconds{0.2, 3600});
  line.value("--count", options.count, WholeNumber{.least = 1});
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
  const bool shows = options.mode == Options::Mode::show;
  if (!shows && (line.given("--watch") || options.peers || !options.process.empty())) {
    usage("--metrics, --help and --version show no device. Fix: leave out the rest");
  }
  return options;
}

std::string help() {
  return R"(urma_stat - shows the counters of the open devices of this user

  urma_stat                    a table: each device of each process
  urma_stat PID                all counters of the devices of this process, with unit and meaning
  urma_stat NAME               the same for all processes of the program with this name
  urma_stat --peers            each channel of each process, and each path: peer, window, rate
  urma_stat --watch 1          rates, each second; Ctrl-C ends it
  urma_stat PID --watch 1 --count 10 --json > ten.json       ten lines, a JSON object each
  urma_stat --prometheus --listen 127.0.0.1:9464             http://127.0.0.1:9464/metrics
  urma_stat --metrics          the counters, their units, and since when they count

  -w, --watch SECONDS   repeat every SECONDS, 0.2 to 3600; on a terminal on one screen
  --count N             end after N outputs
  --peers               show channels; with PID or NAME, those of this process or program
  --json                output for programs: every metric with its value, unit, window and
                        meaning, and every channel
  --prometheus          the counters and channels in the text format of Prometheus
  --listen ADDRESS:PORT with --prometheus: answer requests for /metrics there until Ctrl-C
  --metrics             list the metrics of this version of the library; also with --json
  --version

Table
  open        the time since the device was opened
  works, done, executed
              works taken from Jetties, completions shown to them, slices of peers executed here,
              and so on: since the device was opened; with --watch, each second
  unknown     works that may or may not have executed; refused: slices of peers
  resent      packets sent again; dropped: packets that could not be used
  --peers: cc is the congestion control; below is why one with * is not the one asked for
  "-": the process has another version of the library, which does not count this

A device is shown unless it was opened with DeviceOptions::observable off, or cannot write to
/dev/shm. Devices of other users, and of containers with their own /dev/shm, are not shown.
Values are at most 0.1 s old, except for devices that no thread runs (Threads::inlined).

Exit codes: 0 ok, even if no device is open   1 error   2 usage   130 Ctrl-C
)";
}

}  // namespace urma::apps::stat
