// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/options.h"

#include <fmt/format.h>

#include "apps/common/command_line.h"
#include "apps/urma_info/help.h"

namespace urma::apps::info {
namespace {

using Mode = Options::Mode;

Mode choose_mode(const CommandLine& line) {
  line.exclude({"--config", "--doctor", "--error", "--help", "--version"});
  if (line.given("--config")) return Mode::config;
  if (line.given("--doctor")) return Mode::doctor;
  if (line.given("--error")) return Mode::error;
  if (line.given("--help")) return Mode::help;
  if (line.given("--version")) return Mode::version;
  return line.given("device") ? Mode::device : Mode::devices;
}

// Refuses words and options that this mode does not have.
void refuse_others(const Options& options, bool named) {
  if (named && (options.mode == Mode::doctor || options.mode == Mode::version)) {
    usage(
        fmt::format("\"{}\": --doctor and --version are about this machine and this program. "
                    "Fix: leave it out; urma_info DEVICE is about a device",
                    options.what));
  }
  if (named && options.what.empty()) {
    usage("\"\": an empty word is not a device. Fix: leave it out, or name a device, as cxl:");
  }
  if (options.verbose && options.mode != Mode::config) {
    usage("--verbose belongs to --config. Fix: leave it out");
  }
}

// Shells offer these words behind the options that may have a word.
void offer_words(CommandLine& line) {
  std::vector<std::string> statuses, drivers;
  for (const StatusInfo& info : all_statuses()) statuses.emplace_back(info.name);
  for (const DriverInfo& driver : list_drivers()) drivers.push_back(driver.name);
  line.offer("--error", statuses);
  line.offer("--help", drivers);
}

}  // namespace

Options parse_options(int count, char** arguments) {
  Options options;
  bool config = false, doctor = false, error = false;
  CommandLine line("urma_info", help);
  line.flag("--config", config);
  line.flag("--doctor", doctor);
  line.flag("--error", error);
  line.flag("--json", options.json);
  line.flag("-v,--verbose", options.verbose);
  line.text("device", options.what);
  offer_words(line);
  line.parse(count, arguments);
  options.mode = choose_mode(line);
  refuse_others(options, line.given("device"));
  return options;
}

}  // namespace urma::apps::info
