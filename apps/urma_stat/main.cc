// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_stat/exporter.h"
#include "apps/urma_stat/json.h"
#include "apps/urma_stat/look.h"
#include "apps/urma_stat/options.h"
#include "apps/urma_stat/output.h"
#include "apps/urma_stat/peers.h"
#include "apps/urma_stat/prometheus.h"
#include "apps/urma_stat/text.h"

namespace urma::apps::stat {
namespace {

void rest(double seconds) {
  const double whole = std::floor(seconds);
  timespec left{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  nanosleep(&left, nullptr);  // Ctrl-C ends the sleep early
}

// Prints on stderr which pages cannot be read: once, and again when that has changed. The JSON
// output contains it in each look.
class Complaints {
 public:
  void say(const Look& look) {
    constexpr size_t most = 3;
    size_t more = 0;
    size_t printed = 0;
    for (const std::string& one : look.skipped) {
      if (std::ranges::find(said_, one) != said_.end()) continue;
      if (printed == most) {
        ++more;
      } else {
        print_error(fmt::format("urma_stat: {}", one));
        ++printed;
      }
    }
    if (more > 0) {
      print_error(
          fmt::format("urma_stat: and {} more pages cannot be read; --json names them", more));
    }
    said_ = look.skipped;
  }

 private:
  std::vector<std::string> said_;  // of the previous look
};

Failure no_device_of(const std::string& process) {
  return {Exit::error, fmt::format("no process {} has an open device here. Fix: run urma_stat, "
                                   "which lists the processes that have one",
                                   process)};
}

std::string text_of(const Options& options, const Look& look, std::optional<size_t> room = {}) {
  const bool rates = options.watch.has_value();
  if (options.json) return look_json(look, options.watch);
  if (options.prometheus) return prometheus_text(look);
  if (options.peers) return peers_table(look, {.room = room, .all = options.all});
  return options.process.empty() ? table(look, rates, room)
                                 : details(look, rates, options.all, room);
}

// Returns the width of the table; no limit without a terminal.
std::optional<size_t> room_in(const Options& options, const Output& output) {
  const bool limited = output.terminal() && !options.wide;
  return limited ? std::optional(output.columns()) : std::nullopt;
}

Exit show_once(const Options& options, Output& output) {
  Watcher watcher(options.process, options.user);
  Complaints complaints;
  const Look look = watcher.look();
  complaints.say(look);
  if (look.rows.empty() && !options.process.empty()) throw no_device_of(options.process);
  output.write(text_of(options, look, room_in(options, output)));
  return Exit::ok;
}

Exit watch(const Options& options, Output& output) {
  Watcher watcher(options.process, options.user);
  Complaints complaints;
  // Rates are known from the second look on.
  if (watcher.look().rows.empty() && !options.process.empty()) throw no_device_of(options.process);
  for (uint64_t looks = 0; looks < options.count.value_or(UINT64_MAX); ++looks) {
    rest(*options.watch);
    if (interrupted()) return Exit::interrupted;
    const Look look = watcher.look();
    const bool redraws = output.terminal() && !options.json;
    if (!redraws) complaints.say(look);
    if (look.rows.empty() && !options.process.empty()) {
      print_error(
          fmt::format("urma_stat: process {} has closed its device, or ended", options.process));
      return Exit::ok;
    }
    std::string text = text_of(options, look, room_in(options, output));
    if (options.json) {
      output.write(text);
    } else if (redraws) {
      for (const std::string& one : look.skipped) text += "\n" + one + "\n";
      output.redraw(fmt::format("{}   each {} s   Ctrl-C ends it\n\n{}", date(look.time),
                                *options.watch, text));
    } else {
      output.write(fmt::format("{}\n{}\n", date(look.time), text));
    }
  }
  return Exit::ok;
}

Exit serve(const Options& options, Output& output) {
  Exporter exporter(*options.listen);
  Watcher watcher(options.process, options.user);
  Complaints complaints;
  output.write(fmt::format("http://{}/metrics\n", to_string(*options.listen)));
  exporter.run([&] {
    const Look look = watcher.look();
    complaints.say(look);
    return prometheus_text(look);
  });
  return Exit::interrupted;
}

Exit run(const Options& options) {
  Output output;
  if (options.listen) return serve(options, output);
  if (options.mode == Options::Mode::metrics) {
    output.write(options.json ? metrics_json() : metrics_text());
    return Exit::ok;
  }
  return options.watch ? watch(options, output) : show_once(options, output);
}

}  // namespace
}  // namespace urma::apps::stat

int main(int count, char** arguments) {
  namespace program = urma::apps::stat;  // ::stat is a struct of the system
  return urma::apps::run_program<program::Options>({.name = "urma_stat",
                                                    .version = urma::apps::library_version(),
                                                    .help = program::help,
                                                    .parse = program::parse_options,
                                                    .run = program::run},
                                                   count, arguments);
}
