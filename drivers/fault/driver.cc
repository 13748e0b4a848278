#include "drivers/fault/fault_port.h"

namespace urma::drivers {
namespace {

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  if (!device.inner) {
    return device_error(device, device.place, "fault wraps another device: fault(loss=5%):udp:");
  }
  fault::Settings settings;
  OptionReader options(device);
  options.number("seed", settings.seed);
  settings.out.read_options(options);
  settings.in.read_options(options, "in.");
  if (auto done = options.finish(); !done) return done.error();
  Result<std::unique_ptr<PacketPort>> inner = open_port(*device.inner);
  if (!inner) return inner.error();
  return std::unique_ptr<PacketPort>(
      std::make_unique<fault::FaultPort>(std::move(*inner), settings));
}

constexpr Driver::Pair pairs[] = {{"fault(delay=10us):udp:", "fault(in.delay=20us):udp:"}};

}  // namespace

extern const Driver fault_driver;
const Driver fault_driver = {
    "fault", "wraps a device and loses, repeats, reorders, delays, corrupts", pairs, open};

}  // namespace urma::drivers
