// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drivers/driver.h"
#include "drivers/udp/udp_port.h"

namespace urma::drivers {
namespace {

// Returns why a device cannot have this address, or an empty text if it can.
std::string_view objection(const Eid& address) {
  if (address == Eid{} || address == ipv4(0, 0, 0, 0)) {
    return "a device cannot have a wildcard address; name one address of this machine";
  }
  const bool link_local = address.bytes[0] == std::byte{0xfe} &&
                          (address.bytes[1] & std::byte{0xc0}) == std::byte{0x80};
  if (link_local) {
    return "a link-local address is valid on one link only, and an EID must be valid everywhere. "
           "Fix: use a global address of this machine, IPv6 or IPv4 (see: ip addr)";
  }
  return {};
}

Result<void> read_address(const DeviceString& device, udp::Settings& settings) {
  std::string_view text = device.address;
  const bool bracket = text.starts_with('[');
  const bool written = bracket ? text.find("]:") != text.npos : std::ranges::count(text, ':') == 1;
  // Port 0 is valid only here: parse_endpoint refuses it, as a destination cannot have it.
  settings.any_port = written && text.ends_with(":0");
  if (settings.any_port) text.remove_suffix(2);
  const Result<Endpoint> endpoint = parse_endpoint(text);
  if (!endpoint) return device_error(device, device.address_offset, endpoint.error().message);
  settings.address = endpoint->address;
  if (written && !settings.any_port) settings.port = endpoint->port;
  const std::string_view why = objection(settings.address);
  if (!why.empty()) return device_error(device, device.address_offset, why);
  return {};
}

void read_options(OptionReader& options, udp::Settings& settings) {
  uint64_t mtu = 0;
  options.size("mtu", mtu, 1024, 8192,
               {"largest payload of a packet: 1024, 2048, 4096 or 8192",
                "the largest that the interface carries"});
  if ((mtu & (mtu - 1)) != 0) options.refuse("mtu", "1024, 2048, 4096 or 8192");
  settings.mtu = static_cast<uint32_t>(mtu);
  options.size("rcvbuf", settings.rcvbuf, 64 * 1024, 1 << 30,
               {"the size of the send and receive buffers; the system may allow less"});
  options.flag("gso", settings.gso, {"let the kernel split bursts into packets"});
  options.flag("gro", settings.gro, {"let the kernel join packets into bursts"});
  options.flag("ecn", settings.ecn,
               {"carry the ECN field of the IP header, for congestion control by marks"});
  std::string io = "auto";
  options.text("io", io,
               {"how batches are sent and received: mmsg (sendmmsg, recvmmsg), uring (io_uring, if "
                "the kernel permits it), or auto, which is mmsg today"});
  if (io != "auto" && io != "mmsg" && io != "uring") options.refuse("io", "auto, mmsg or uring");
  settings.io = io == "uring"  ? udp::IoChoice::uring
                : io == "mmsg" ? udp::IoChoice::mmsg
                               : udp::IoChoice::automatic;
  std::string id = "kernel";
  options.text(
      "ipid", id,
      {"IPv4 identification of sent packets: kernel, or 0, which a strict implementation of UB 3.3 "
       "expects. 0 disables GSO and the connected socket; IPv6 has no identification"});
  if (id != "kernel" && id != "0") options.refuse("ipid", "0 or kernel");
  settings.zero_id = id == "0";
  const auto wanted = [](const OptionReader::Row& row) {
    return row.key == "gso" && row.given && row.value == "yes";
  };
  if (settings.zero_id && std::ranges::any_of(options.rows(), wanted)) {
    options.refuse("gso", "no, with ipid=0: the kernel numbers the packets that it splits");
  }
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  udp::Settings settings;
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  if (!device.address.empty()) {
    if (auto done = read_address(device, settings); !done) return done.error();
  }
  // IPv6 has no identification.
  if (!settings.is_ipv4()) settings.zero_id = false;
  return udp::UdpPort::open(settings);
}

constexpr Driver::Pair pairs[] = {{"udp:", "udp:"}, {"udp:?ecn=yes", "udp:?ecn=yes"}};

constexpr Driver::Form forms[] = {
    {"udp:ADDRESS:PORT",
     "an address of this machine, IPv6 in brackets. Without PORT the port is 4792, or another one "
     "if that is taken; with PORT 0 it is any free port. Without both the device takes the first "
     "free 127.0.0.N",
     "udp:", [](OptionReader& options) {
       udp::Settings settings;
       read_options(options, settings);
     }}};

}  // namespace

extern const Driver udp_driver;
const Driver udp_driver = {"udp", "UDP sockets: any network, no privilege", pairs, open, forms};

}  // namespace urma::drivers
