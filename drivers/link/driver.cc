// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"
#include "drivers/link/link_port.h"

namespace urma::drivers {
namespace {

void read_options(OptionReader& options, link::Settings& settings) {
  constexpr uint64_t not_given = UINT64_MAX;
  uint64_t cna = not_given;
  options.number("cna", cna,
                 {"the address of the device at the switch, 1 to 16777215", "the switch chooses"});
  if (cna != not_given) {
    if (cna == 0 || cna > most_cna) options.refuse("cna", "a number from 1 to 16777215");
    settings.cna = static_cast<uint32_t>(cna);
  }
  uint64_t service_level = 0;
  options.number("sl", service_level,
                 {"the service level of what the device sends, 0 to 15: its lane at switches"});
  if (service_level > most_service_level) options.refuse("sl", "a number from 0 to 15");
  settings.service_level = static_cast<uint8_t>(service_level);
  std::string balance = "slice";
  options.text("balance", balance,
               {"the unit that switches may spread over their paths: slice (each channel takes one "
                "path) or packet"});
  if (balance != "slice" && balance != "packet") options.refuse("balance", "slice or packet");
  settings.per_packet = balance == "packet";
  options.duration("late", settings.most_late,
                   {"how late this process may run on a busy machine: congestion control does not "
                    "take so much delay for a queue"});
}

Result<void> read_switch(const DeviceString& device, link::Settings& settings) {
  if (device.address.empty()) {
    return device_error(device, device.address_offset,
                        "the address of the switch is missing here. Fix: link(10.0.0.9):udp:");
  }
  const Result<Endpoint> at = parse_switch_endpoint(device.address);
  if (!at) return device_error(device, device.address_offset, at.error().message);
  settings.at = *at;
  return {};
}

Result<void> check_inner(const DeviceString& device, PacketPort& inner,
                         const link::Settings& settings) {
  const PortFacts& facts = inner.facts();
  const bool network = inner.ways() == nullptr && inner.clock() == nullptr && facts.paths.empty();
  if (!network || is_switched(facts.self.address)) {
    return device_error(device, device.offset,
                        "link reaches a switch over one network address in real time. Fix: "
                        "link(10.0.0.9):udp:10.0.0.1");
  }
  if (!may_reach(facts.self.address, settings.at.address)) {
    return device_error(device, device.address_offset,
                        "the device at " + to_string(facts.self) +
                            " cannot reach a switch there, because one address is IPv4 and the "
                            "other IPv6. Fix: use two of one kind");
  }
  return {};
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  if (!device.inner) {
    return device_error(device, device.offset,
                        "link wraps another device. Fix: link(10.0.0.9):udp:10.0.0.1");
  }
  link::Settings settings;
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  if (auto done = read_switch(device, settings); !done) return done.error();
  Result<std::unique_ptr<PacketPort>> inner = open_port(*device.inner);
  if (!inner) return inner.error();
  if (auto done = check_inner(device, **inner, settings); !done) return done.error();
  return link::LinkPort::open(std::move(*inner), settings);
}

constexpr Driver::Form forms[] = {
    {"link(SWITCH,OPTIONS):DEVICE",
     "reaches a UB switch (urma_switch) over DEVICE. SWITCH is ADDRESS or ADDRESS:PORT, IPv6 in "
     "brackets; the port is 4794 if it is left out",
     "link(127.0.0.1):udp:",
     [](OptionReader& options) {
       link::Settings settings;
       read_options(options, settings);
     },
     true, true}};

}  // namespace

extern const Driver link_driver;
// There are no pairs, because they need a switch that runs.
const Driver link_driver = {
    "link", "wraps a device and sends UB packets over it to a switch", {}, open, forms};

}  // namespace urma::drivers
