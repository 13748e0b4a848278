// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"
#include "drivers/pcap/pcap_port.h"

namespace urma::drivers {
namespace {

void read_options(OptionReader& options, pcap::CaptureSettings& settings) {
  options.text("file", settings.path,
               {"the pcapng file to write; an older capture is overwritten", "required"});
  options.size("snap", settings.snap_bytes, 64, 128 * 1024,
               {"the bytes of each packet that are kept", "all"});
  options.size("limit", settings.limit_bytes, 4096, uint64_t{1} << 60,
               {"the largest size of the file, in bytes", "none"});
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  if (!device.inner) {
    return device_error(device, device.offset,
                        "pcap wraps another device. Fix: pcap(file=/tmp/x.pcapng):udp:");
  }
  pcap::CaptureSettings settings;
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  if (settings.path.empty()) {
    return device_error(
        device, device.offset,
        "the name of the capture's file is missing. Fix: pcap(file=/tmp/x.pcapng):udp:");
  }
  // Opened before the file, so that a device that cannot be opened does not destroy an older
  // capture.
  Result<std::unique_ptr<PacketPort>> inner = open_port(*device.inner);
  if (!inner) return inner.error();
  const PortFacts& facts = (*inner)->facts();
  auto file = pcap::CaptureFile::open(settings, to_string(facts.self), facts.description);
  if (!file) return file.error();
  return std::unique_ptr<PacketPort>(
      std::make_unique<pcap::PcapPort>(std::move(*inner), std::move(*file), settings));
}

constexpr Driver::Pair pairs[] = {
    {"pcap(file=/dev/null):udp:", "pcap(file=/dev/null,snap=100):fault(in.delay=20us):udp:"},
    {"pcap(file=/dev/null):cxl:", "cxl:"},
    {"fault(delay=10us):pcap(file=/dev/null):sim:conformance-pcap",
     "pcap(file=/dev/null):sim:conformance-pcap?hold=2us"}};

constexpr Driver::Form forms[] = {{"pcap(OPTIONS):DEVICE", "writes the packets of DEVICE to a file",
                                   "pcap(file=/dev/null):udp:",
                                   [](OptionReader& options) {
                                     pcap::CaptureSettings settings;
                                     read_options(options, settings);
                                   },
                                   true}};

}  // namespace

extern const Driver pcap_driver;
const Driver pcap_driver = {"pcap", "wraps a device and writes its packets to a pcapng file", pairs,
                            open, forms};

}  // namespace urma::drivers
