#include "drivers/sim/clocked_port.h"

namespace urma::drivers {
namespace {

Result<std::unique_ptr<PacketPort>> open_clocked(const DeviceString& device) {
  std::string name;
  uint64_t seed = 1;
  OptionReader options(device);
  options.text("net", name);
  options.number("seed", seed);
  if (auto done = options.finish(); !done) return done.error();
  if (name.empty()) {
    return device_error(device, device.place,
                        "the network whose time it lives in is missing: sim(net=NAME):cxl:");
  }
  Result<std::unique_ptr<PacketPort>> inner = open_port(*device.inner);
  if (!inner) return inner.error();
  if ((*inner)->bell() == nullptr) {
    return device_error(device, device.inner->place,
                        "its time cannot be simulated: only a window's can, sim(net=NAME):cxl:");
  }
  return std::unique_ptr<PacketPort>(
      std::make_unique<sim::ClockedPort>(sim::Network::named(name, seed), std::move(*inner)));
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  if (device.inner) return open_clocked(device);
  sim::Port::Settings settings;
  uint64_t seed = 1;
  uint64_t mtu = settings.mtu;
  uint64_t buffer = settings.buffer_bytes;
  OptionReader options(device);
  options.number("seed", seed);
  options.size("mtu", mtu, 1024, 8192);
  options.size("buffer", buffer, 64 * 1024, 1 << 30);
  options.duration("hold", settings.hold);
  options.address("address", settings.address);
  settings.impairment.read_options(options);
  if (auto done = options.finish(); !done) return done.error();
  if ((mtu & (mtu - 1)) != 0) {
    return device_error(device, device.place, "mtu must be 1024, 2048, 4096 or 8192");
  }
  settings.mtu = static_cast<uint32_t>(mtu);
  settings.buffer_bytes = static_cast<uint32_t>(buffer);
  if (device.address.empty()) {
    return device_error(device, device.address_place, "the network's name is missing here");
  }
  return sim::Port::open(sim::Network::named(device.address, seed), settings);
}

constexpr Driver::Pair pairs[] = {
    {"sim:conformance", "sim:conformance?hold=2us"},
    {"sim(net=conformance-window):cxl:", "sim(net=conformance-window):cxl:"}};

}  // namespace

extern const Driver sim_driver;
const Driver sim_driver = {
    "sim", "an in-process network under virtual time, for tests and teaching", pairs, open};

}  // namespace urma::drivers
