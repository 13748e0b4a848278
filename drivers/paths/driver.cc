// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"
#include "drivers/paths/paths_port.h"

namespace urma::drivers {
namespace {

constexpr std::string_view fix = ". Fix: paths():udp:10.0.0.1+udp:10.0.1.1";

Balance read_options(OptionReader& options) {
  std::string balance = "slice";
  options.text("balance", balance, {"the unit that is spread over the paths: slice or packet"});
  if (balance == "packet") return Balance::packet;
  if (balance != "slice") options.refuse("balance", "slice or packet");
  return Balance::slice;
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  OptionReader options(device);
  const Balance balance = read_options(options);
  if (auto done = options.finish(); !done) return done.error();
  const size_t count = device.inner ? 1 + device.others.size() : 0;
  if (count < 2 || count > most_paths) {
    return device_error(device, device.offset,
                        "paths joins 2 to 8 devices, separated by \"+\"" + std::string(fix));
  }
  std::vector<std::unique_ptr<PacketPort>> ports;
  for (size_t i = 0; i < count; ++i) {
    const DeviceString& inner = i == 0 ? *device.inner : device.others[i - 1];
    Result<std::unique_ptr<PacketPort>> port = open_port(inner);
    if (!port) return port.error();
    ports.push_back(std::move(*port));
    const std::string why =
        paths::objection(*ports[i], ports[0]->facts().self.address, ports[0]->clock());
    if (!why.empty()) return device_error(device, inner.offset, why);
  }
  return paths::PathsPort::make(std::move(ports), balance, options.settings());
}

constexpr Driver::Pair pairs[] = {{"paths():udp:+udp:", "paths():udp:+udp:+udp:"},
                                  {"paths():sim:conformance-paths+sim:conformance-paths",
                                   "paths():sim:conformance-paths+sim:conformance-paths"}};

constexpr Driver::Form forms[] = {
    {"paths():DEVICE+DEVICE+...", "one device with a path for each of them, 2 to 8",
     "paths():udp:+udp:", [](OptionReader& options) { read_options(options); }, true}};

}  // namespace

extern const Driver paths_driver;
const Driver paths_driver = {"paths", "joins devices, so that a peer is reached over several paths",
                             pairs, open, forms};

}  // namespace urma::drivers
