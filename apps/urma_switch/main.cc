#include <fmt/format.h>

#include <bit>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_switch/loop.h"
#include "apps/urma_switch/options.h"
#include "apps/urma_switch/report.h"
#include "base/clock.h"
#include "base/entropy.h"

namespace urma::apps::switches {
namespace {

std::unique_ptr<drivers::PacketPort> open_port(const std::string& device) {
  const drivers::DeviceString parsed = must(drivers::parse_device_string(device), "the address");
  return must(drivers::open_port(parsed), "listening");
}

double seconds_since(Time begun) {
  return std::chrono::duration<double>(read_clock() - begun).count();
}

void say(const Options& options, const Forwarder& forwarder, const Endpoint& at, Time begun) {
  if (options.json) {
    print(report_json(forwarder, at, seconds_since(begun)).dump() + "\n");
  } else {
    print(report_text(forwarder, seconds_since(begun)));
  }
}

Exit forward(Options options) {
  const auto port = open_port(options.device);
  const Endpoint at = port->facts().self;
  SecureEntropy entropy;
  Forwarder::Settings& settings = options.forwarder;
  settings.hosts.mtu_log2 = static_cast<uint8_t>(std::bit_width(port->facts().mtu) - 1);
  settings.hosts.key[0] = entropy.next();
  settings.hosts.key[1] = entropy.next();
  settings.fabric.seed = entropy.next32();
  Loop loop(*port, settings);
  print_error(
      fmt::format("urma_switch: {} ports of {} Mb/s at {}, --cc {}; a device attaches by: "
                  "--device 'link({}):udp:'",
                  settings.hosts.ports, static_cast<double>(settings.port.bytes_per_second) * 8e-6,
                  to_string(at), settings.fabric.meter, to_string(at)));
  const Time begun = read_clock();
  const bool repeats = options.interval_seconds > 0;
  const auto interval =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.interval_seconds));
  Time next = begun + interval;
  loop.run(
      [&] {
        if (repeats && read_clock() >= next) {
          say(options, loop.forwarder(), at, begun);
          next = read_clock() + interval;
        }
        return interrupted();
      },
      interrupt_descriptor());
  say(options, loop.forwarder(), at, begun);
  return Exit::ok;
}

Exit run(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help:
      print(help());
      return Exit::ok;
    case Options::Mode::version:
      print(fmt::format("urma_switch {}\n", library_version()));
      return Exit::ok;
    case Options::Mode::run:
      return forward(options);
  }
  return Exit::error;
}

}  // namespace
}  // namespace urma::apps::switches

int main(int count, char** arguments) {
  return urma::apps::run_program("urma_switch", [&] {
    const auto options = urma::apps::switches::parse_options(count, arguments);
    urma::apps::handle_signals();
    return urma::apps::switches::run(options);
  });
}
