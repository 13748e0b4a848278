#include "apps/urma_notify/options.h"

#include <fmt/format.h>

#include "apps/common/command_line.h"

namespace urma::apps::notify {
namespace {

using Asked = apps::CommandLine::Asked;

constexpr std::string_view screen =
    R"(urma_notify - sends files directly into another process's memory, and resumes

  urma_notify serve DIR            receives files into DIR, from this host and others until Ctrl-C
  urma_notify send FILE            sends to the receiver on this host, through shared memory
  urma_notify send FILE 10.0.0.5   sends to another host: HOST, ADDRESS or ADDRESS:PORT

  --device STRING   serve: use only this device (repeatable); send: use this device
                    cxl: (shared memory), udp:10.0.0.5, "fault(loss=5%):udp:"
  --as NAME         send: store the file under this name       (its own name)
  --replace         send: replace another file of that name
  --rate BYTES      send: send at most BYTES per second: 500K, 20M
  --patience S      send: wait S seconds for a receiver that is lost during the transfer, or for
                    another sender of that name to end         (10)
  --version

Either side may start first: send waits 2 s for a receiver that has not started yet.
A file gets its name when it is complete, verified and on the disk. Until then, and after an
interruption, its name is .NAME.urma-part. If the file is sent again, the transfer resumes: the
blocks that the receiver has are compared first.
Any process that reaches the receiver may send it files; the data is not encrypted.

Exit codes
  0 ok   1 error   2 usage   4 wrong bytes   5 receiver lost or not reached   6 version mismatch
  7 ok, but a capture (pcap) lacks packets   130 Ctrl-C
)";

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
  std::string what;
  apps::CommandLine line("urma_notify");
  line.text("what", what);
  line.text("path", options.path);
  line.value("host", options.host, apps::Host{});
  line.texts("--device", options.devices);
  line.text("--as", options.name);
  line.flag("--replace", options.replace);
  line.value("--rate", options.bytes_per_second, apps::Bytes{uint64_t{1} << 40});
  line.value("--patience", options.patience_seconds, apps::WholeNumber{1, 86400});
  line.value("--speaks", options.speaks, apps::WholeNumber{1, INT32_MAX});
  if (const Asked asked = line.parse(count, arguments); asked != Asked::nothing) {
    options.mode = asked == Asked::help ? Options::Mode::help : Options::Mode::version;
    return options;
  }
  const bool serves = what == "serve";
  if (!serves && what != "send") {
    usage(fmt::format("{}. Fix: urma_notify serve DIR, urma_notify send FILE HOST, or see --help",
                      what.empty() ? "missing command: serve or send"
                                   : fmt::format("\"{}\" is not a command", what)));
  }
  options.mode = serves ? Options::Mode::serve : Options::Mode::send;
  if (options.path.empty()) {
    usage(fmt::format("{}: {} is missing. Fix: name it", what, serves ? "the folder" : "the file"));
  }
  const bool names_host = line.given("host") && !options.host.empty();
  if (serves && (names_host || !options.name.empty() || options.replace ||
                 line.first_given({"--rate", "--patience"}))) {
    usage(
        "serve takes a folder and --device, and nothing else. Fix: give the other options to "
        "urma_notify send");
  }
  if (options.host.empty()) options.host = Options().host;
  if (!serves && options.devices.size() > 1) {
    usage("send takes one --device. Fix: leave the others out");
  }
  return options;
}

}  // namespace urma::apps::notify
