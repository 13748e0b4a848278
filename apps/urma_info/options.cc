#include "apps/urma_info/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/common/failure.h"

namespace urma::info {
namespace {

using apps::Exit;
using apps::Failure;
using Mode = Options::Mode;

struct Flags {
  bool config = false, doctor = false, error = false, help = false, version = false;
};

[[noreturn]] void usage(std::string message) { throw Failure(Exit::usage, std::move(message)); }

Mode choose_mode(const Flags& flags, bool named) {
  Mode mode = named ? Mode::device : Mode::devices;
  const char* chosen = nullptr;
  for (const auto& [given, option, its] : {std::tuple(flags.config, "--config", Mode::config),
                                           {flags.doctor, "--doctor", Mode::doctor},
                                           {flags.error, "--error", Mode::error},
                                           {flags.help, "--help", Mode::help},
                                           {flags.version, "--version", Mode::version}}) {
    if (!given) continue;
    if (chosen != nullptr) {
      usage(
          fmt::format("{} and {} exclude each other. Fix: leave one of them out", chosen, option));
    }
    chosen = option;
    mode = its;
  }
  return mode;
}

void refuse_strangers(const Options& options, bool named) {
  if (named && (options.mode == Mode::doctor || options.mode == Mode::version)) {
    usage(
        fmt::format("\"{}\": --doctor and --version are about this machine and this program. "
                    "Fix: leave it out; urma_info DEVICE is about a device",
                    options.what));
  }
  if (named && options.what.empty()) {
    usage("\"\": an empty word names nothing. Fix: leave it out, or name a device, as cxl:");
  }
  if (options.verbose && options.mode != Mode::config) {
    usage("--verbose belongs to --config. Fix: leave it out");
  }
}

}  // namespace

Options parse_options(int count, char** arguments) {
  Options options;
  Flags flags;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", flags.help);
  app.add_flag("--version", flags.version);
  app.add_flag("--config", flags.config);
  app.add_flag("--doctor", flags.doctor);
  app.add_flag("--error", flags.error);
  app.add_flag("--json", options.json);
  app.add_flag("-v,--verbose", options.verbose);
  const CLI::Option* const what = app.add_option("what", options.what);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& e) {
    usage(fmt::format("{}. Fix: see urma_info --help", e.what()));
  }
  const bool named = what->count() > 0;
  options.mode = choose_mode(flags, named);
  refuse_strangers(options, named);
  return options;
}

}  // namespace urma::info
