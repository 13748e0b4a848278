#include "apps/urma_notify/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>

namespace urma::notify {
namespace {

constexpr std::string_view screen =
    R"(urma_notify - sends files straight into another process's memory, and resumes

  urma_notify serve DIR            takes files into DIR, from this host and others; until Ctrl-C
  urma_notify send FILE            to the one on this host, through shared memory
  urma_notify send FILE 10.0.0.5   to another host: HOST, ADDRESS or ADDRESS:PORT

  --device STRING   serve: only this one (again for more); send: this one
                    cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --as NAME         send: under this name there              (the file's own)
  --replace         send: instead of another file of that name
  --rate BYTES      send: at most so many a second: 500K, 20M
  --patience S      send: wait so long for a lost receiver, or for another sender of that name (10)
  --version

A file has its name there when it is complete, verified and on the disk; until then, and if it was
interrupted, it is .NAME.urma-part. Send it again and it resumes: what is there is compared first.
Whoever reaches the receiver may send it files; what travels is not encrypted.

Exit codes
  0 ok   1 error   2 usage   4 wrong bytes   5 receiver lost or not reached   6 version mismatch
  7 ok, but a capture (pcap) lacks packets   130 Ctrl-C
)";

[[noreturn]] void usage(std::string message) { throw Failure(Exit::usage, std::move(message)); }

uint64_t number(std::string_view option, std::string_view text, uint64_t most, bool units) {
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const int shift = unit.empty()  ? 0
                    : !units      ? -1
                    : unit == "K" ? 10
                    : unit == "M" ? 20
                    : unit == "G" ? 30
                                  : -1;
  if (failure == std::errc{} && shift >= 0 && value > 0 && value <= most >> shift) {
    return value << shift;
  }
  const std::string limit =
      units ? fmt::format("{}G, as 500K or 20M", most >> 30) : fmt::format("{}", most);
  usage(
      fmt::format("{}: \"{}\" is invalid. Fix: a whole number from 1 to {}", option, text, limit));
}

}  // namespace

std::string help() { return std::string(screen); }

apps::Service service(const std::string& file) {
  return {.name = "urma_notify",
          .role = "receiver",
          .serve = "urma_notify serve DIR",
          .ask = "urma_notify send " + apps::quoted(file)};
}

Options parse_options(int count, char** arguments) {
  Options options;
  std::string what, first, second;
  std::optional<std::string> rate, patience, speaks;
  bool help = false, version = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  app.add_option("what", what);
  app.add_option("first", first);
  app.add_option("second", second);
  app.add_option("--device", options.devices)->expected(1)->take_all();
  app.add_option("--as", options.name);
  app.add_flag("--replace", options.replace);
  app.add_option("--rate", rate);
  app.add_option("--patience", patience);
  app.add_option("--speaks", speaks);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& e) {
    usage(fmt::format("{}. Fix: see urma_notify --help", e.what()));
  }
  if (help || version) {
    options.mode = help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  if (what != "serve" && what != "send") {
    usage(fmt::format(
        "{}. Fix: urma_notify serve DIR, urma_notify send FILE HOST, or see --help",
        what.empty() ? "what is to be done?" : fmt::format("\"{}\" is not what it can do", what)));
  }
  const bool serves = what == "serve";
  options.mode = serves ? Options::Mode::serve : Options::Mode::send;
  options.path = first;
  if (first.empty())
    usage(fmt::format("{}: {} is missing. Fix: name it", what, serves ? "the folder" : "the file"));
  if (serves && (!second.empty() || !options.name.empty() || options.replace || rate || patience)) {
    usage("serve: it takes a folder and --device. Fix: give the others to urma_notify send");
  }
  if (!second.empty()) options.host = second;
  if (options.host.find('/') != std::string::npos) {
    usage(fmt::format("\"{}\" is no host. Fix: localhost, ADDRESS or ADDRESS:PORT", options.host));
  }
  if (!serves && options.devices.size() > 1) {
    usage("send: one --device is enough. Fix: leave the others out");
  }
  if (rate) options.bytes_per_second = number("--rate", *rate, uint64_t{1} << 40, true);
  if (patience) options.patience_seconds = number("--patience", *patience, 86400, false);
  if (speaks) options.speaks = static_cast<int>(number("--speaks", *speaks, INT32_MAX, false));
  return options;
}

}  // namespace urma::notify
