// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"
#include "drivers/fault/fault_port.h"

namespace urma::drivers {
namespace {

constexpr std::string_view no_ecn =
    "the wrapped device does not carry the ECN field, so no packet can be marked. Fix: open it "
    "with ecn=yes, as in fault(rate=1Gbit,mark=64K):udp:?ecn=yes";

void read_options(OptionReader& options, fault::Settings& settings) {
  options.number("seed", settings.seed,
                 {"the seed of the random generator: the same seed makes the same faults"});
  settings.out.read_options(options);
  settings.in.read_options(options, "in.");
  settings.lateness.read_options(options);
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  if (!device.inner) {
    return device_error(device, device.offset,
                        "fault wraps another device. Fix: fault(loss=5%):udp:");
  }
  fault::Settings settings;
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  Result<std::unique_ptr<PacketPort>> inner = open_port(*device.inner);
  if (!inner) return inner.error();
  if (!(*inner)->facts().carries.ecn) {
    for (const char* mark : {"mark", "in.mark"}) options.object(mark, no_ecn);
    if (auto done = options.finish(); !done) return done.error();
  }
  return std::unique_ptr<PacketPort>(
      std::make_unique<fault::FaultPort>(std::move(*inner), settings));
}

constexpr Driver::Pair pairs[] = {{"fault(delay=10us):udp:", "fault(in.delay=20us):udp:"}};

constexpr Driver::Form forms[] = {{"fault(OPTIONS):DEVICE",
                                   "impairs what DEVICE sends, and by in.OPTION what it receives",
                                   "fault(loss=5%):udp:",
                                   [](OptionReader& options) {
                                     fault::Settings settings;
                                     read_options(options, settings);
                                   },
                                   true}};

}  // namespace

extern const Driver fault_driver;
const Driver fault_driver = {
    "fault", "wraps a device and loses, repeats, reorders, delays, corrupts", pairs, open, forms};

}  // namespace urma::drivers
