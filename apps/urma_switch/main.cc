// SPDX-License-Identifier: Apache-2.0
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
#include "drivers/driver.h"

namespace urma::apps::switches {
namespace {

// A medium, and the name of the driver with which devices attach over it.
struct Listener {
  std::string driver;
  std::unique_ptr<drivers::PacketPort> port;
};
using Listeners = std::vector<Listener>;

// Wrappers have no name at the other end.
const std::string& driver_of(const drivers::DeviceString& device) {
  return device.inner == nullptr ? device.name : driver_of(*device.inner);
}

Listeners listen(const std::vector<std::string>& devices) {
  Listeners listeners;
  for (const std::string& device : devices) {
    const drivers::DeviceString parsed = must(drivers::parse_device_string(device), "the address");
    listeners.push_back({driver_of(parsed), must(drivers::open_port(parsed), "listening")});
    drivers::PacketPort& port = *listeners.back().port;
    const bool network =
        port.ways() == nullptr && port.clock() == nullptr && port.facts().paths.empty();
    if (!network || is_switched(port.facts().self.address)) {
      usage(
          fmt::format("--device: \"{}\" is not a network address in real time. Fix: give a udp: "
                      "or dpdk: device",
                      device));
    }
  }
  return listeners;
}

// About as many bytes of headers precede the payload of a full packet.
constexpr uint32_t full_packet_headers = 64;

// Returns the largest MTU that all media have.
uint32_t common_mtu(const Listeners& listeners) {
  uint32_t mtu = listeners[0].port->facts().mtu;
  for (const Listener& one : listeners) mtu = std::min(mtu, one.port->facts().mtu);
  return mtu;
}

// Says how devices attach over each medium.
void announce(const Forwarder::Settings& settings, const Listeners& listeners) {
  std::string how;
  for (const Listener& one : listeners) {
    how += fmt::format("{}'link({}):{}:{}'", how.empty() ? "" : " or ",
                       to_string(one.port->facts().self), one.driver,
                       one.driver == "udp" ? "" : "PORT");
  }
  print_error(fmt::format(
      "urma_switch: {} ports of {} Mb/s at {}, --cc {}; a device attaches by: --device {}",
      settings.hosts.ports, static_cast<double>(settings.port.bytes_per_second) * 8e-6,
      to_string(listeners[0].port->facts().self), settings.fabric.meter, how));
}

double seconds_since(Time begun) {
  return std::chrono::duration<double>(read_clock() - begun).count();
}

void say(const Options& options, const Loop& loop, Time begun) {
  if (options.json) {
    print(report_json(loop, seconds_since(begun)).dump() + "\n");
  } else {
    print(report_text(loop, seconds_since(begun)));
  }
}

Exit forward(const Options& options) {
  const Listeners listeners = listen(options.devices);
  SecureEntropy entropy;
  Forwarder::Settings settings = options.forwarder;
  settings.hosts.mtu_log2 = static_cast<uint8_t>(std::bit_width(common_mtu(listeners)) - 1);
  settings.fabric.full_packet_bytes = (1u << settings.hosts.mtu_log2) + full_packet_headers;
  settings.hosts.key[0] = entropy.next();
  settings.hosts.key[1] = entropy.next();
  settings.trunk_nonce = entropy.next();
  settings.fabric.seed = entropy.next32();
  std::vector<drivers::PacketPort*> media;
  for (const Listener& one : listeners) media.push_back(one.port.get());
  Loop loop(media, settings);
  announce(settings, listeners);
  const Time begun = read_clock();
  const bool repeats = options.interval_seconds > 0;
  const auto interval =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.interval_seconds));
  Time next = begun + interval;
  loop.run(
      [&] {
        if (repeats && read_clock() >= next) {
          say(options, loop, begun);
          next = read_clock() + interval;
        }
        return interrupted();
      },
      interrupt_descriptor());
  say(options, loop, begun);
  return Exit::ok;
}

}  // namespace
}  // namespace urma::apps::switches

int main(int count, char** arguments) {
  using namespace urma::apps;
  return run_program<switches::Options>({.name = "urma_switch",
                                         .version = library_version(),
                                         .help = switches::help,
                                         .parse = switches::parse_options,
                                         .run = switches::forward},
                                        count, arguments);
}
