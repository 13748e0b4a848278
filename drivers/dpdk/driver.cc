// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "drivers/dpdk/loader.h"
#include "drivers/driver.h"

namespace urma::drivers {
namespace {

constexpr unsigned ipv4_prefix = 24;
constexpr unsigned ipv6_prefix = 64;
constexpr uint64_t least_ip_mtu = 1280;
constexpr uint64_t most_ip_mtu = 9600;
constexpr uint64_t most_queues = 16;
constexpr uint64_t most_vlan = 4094;
constexpr uint64_t most_dscp = 63;
constexpr uint16_t most_udp_port = 60999;  // higher ones are path entropy (Envelope::first_entropy)

// Reads ADDRESS or ADDRESS/BITS. Returns false if the text is not one.
bool read_network(std::string_view text, dpdk::Settings& settings) {
  const size_t slash = text.find('/');
  const Result<Eid> address = parse_address(text.substr(0, slash));
  if (!address) return false;
  const bool four = Endpoint{*address, 0}.is_ipv4();
  settings.address = *address;
  settings.prefix_bits = four ? ipv4_prefix : ipv6_prefix;
  if (slash == text.npos) return true;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data() + slash + 1, end, settings.prefix_bits);
  return failure == std::errc{} && stop == end && settings.prefix_bits >= 1 &&
         settings.prefix_bits <= (four ? 32u : 128u);
}

// Returns whether a device can have the address.
bool is_usable(const Eid& address) {
  const auto byte = [&](unsigned i) { return static_cast<unsigned>(address.bytes[i]); };
  if (address == Eid{}) return false;
  if (Endpoint{address, 0}.is_ipv4()) return byte(12) != 0 && byte(12) != 127 && byte(12) < 224;
  const bool link_local = byte(0) == 0xfe && (byte(1) & 0xc0) == 0x80;
  return byte(0) != 0xff && !link_local && !in_window(address) && !is_switched(address);
}

template <class Number>
void read_number(OptionReader& options, std::string_view key, Number& value, uint64_t most,
                 OptionSays says) {
  uint64_t read = value;
  options.number(key, read, says);
  if (read > most) options.refuse(key, "a whole number up to " + std::to_string(most));
  value = static_cast<Number>(read);
}

void read_gather(OptionReader& options, dpdk::Gather& gather) {
  using enum dpdk::Gather;
  constexpr std::pair<std::string_view, dpdk::Gather> values[] = {
      {"auto", automatic}, {"always", always}, {"registered", registered}, {"never", never}};
  std::string text = "auto";
  options.text("gather", text,
               {"whether data is sent from the application's memory, without a copy: auto (where "
                "measurements at open show that it costs less), always (where the port can), "
                "registered (the same, from registered memory only), never"});
  const auto* const found = std::ranges::find(values, text, [](auto& one) { return one.first; });
  if (found == std::end(values)) {
    return options.refuse("gather", "auto, always, registered or never");
  }
  gather = found->second;
}

void read_options(OptionReader& options, dpdk::Settings& settings) {
  std::string ip;
  options.text("ip", ip,
               {"the port's IP address and the length of its prefix, as 10.0.0.5/24 or fd00::5/64",
                "fd55:4201::/64 with the MAC address"});
  if (!ip.empty() && !(read_network(ip, settings) && is_usable(settings.address))) {
    options.refuse("ip", "an address of one host, not a link-local one, and a prefix: 10.0.0.5/24");
  }
  options.address("gw", settings.gateway, {"the gateway to addresses with another prefix", "none"});
  if (settings.gateway != Eid{} &&
      Endpoint{settings.gateway, 0}.is_ipv4() != Endpoint{settings.address, 0}.is_ipv4()) {
    options.refuse("gw", "of the same version of IP as ip");
  }
  uint64_t mtu = settings.ip_mtu;
  options.size("mtu", mtu, least_ip_mtu, most_ip_mtu,
               {"the largest IP packet; all hosts on the link need the same"});
  settings.ip_mtu = static_cast<uint32_t>(mtu);
  read_number(options, "queues", settings.queues, most_queues,
              {"pairs of queues; the port spreads flows over them, if it can"});
  if (settings.queues == 0) options.refuse("queues", "from 1 to 16");
  read_number(options, "vlan", settings.vlan, most_vlan, {"the VLAN of all packets; 0: untagged"});
  read_number(options, "dscp", settings.dscp, most_dscp, {"the DSCP of sent packets"});
  options.flag("entropy", settings.entropy,
               {"choose the UDP source port by the flow, so that switches and queues spread flows; "
                "all peers must be dpdk: devices"});
  read_number(options, "port", settings.udp_port, most_udp_port,
              {"the UDP port; that of switches is 4794"});
  if (settings.udp_port == 0) options.refuse("port", "from 1 to 60999");
  if (settings.entropy && settings.udp_port != ub_port) {
    options.refuse("port",
                   "4792 with entropy=yes, as the source port of packets then tells nothing");
  }
  read_gather(options, settings.gather);
  options.text("eal", settings.eal,
               {"more arguments of EAL, separated by spaces; the first device of a process starts "
                "EAL",
                "none"});
}

Result<dpdk::Settings> settings_of(const DeviceString& device) {
  dpdk::Settings settings;
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  const size_t comma = device.address.find(',');
  settings.port = device.address.substr(0, comma);
  if (comma != device.address.npos) settings.arguments = device.address.substr(comma + 1);
  if (settings.port.empty()) {
    return device_error(device, device.address_offset,
                        "the port is missing. Fix: name a port of DPDK, for example "
                        "dpdk:net_memif0,role=server,socket=/tmp/ub.sock or dpdk:0000:3b:00.0");
  }
  return settings;
}

// Calls `open(plugin, settings)` with the settings of a device.
template <class Open>
auto open_with(const DeviceString& device, Open&& open)
    -> decltype(open(std::declval<const dpdk::Plugin&>(), dpdk::Settings{})) {
  const Result<dpdk::Settings> settings = settings_of(device);
  if (!settings) return settings.error();
  const Result<const dpdk::Plugin*> plugin = dpdk::load_plugin();
  if (!plugin) return plugin.error();
  return open(**plugin, *settings);
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  return open_with(device, [](const dpdk::Plugin& plugin, const dpdk::Settings& settings) {
    return plugin.open(settings);
  });
}

constexpr Driver::Form forms[] = {
    {"dpdk:PORT,ARGUMENTS",
     "a port of DPDK and its arguments, as EAL takes them: a virtual one (net_memif0, "
     "net_virtio_user0, net_vhost0, net_af_packet0, net_af_xdp0), or the PCI address of a NIC that "
     "is bound to a driver of user space. net_ring0,pair=NAME joins two devices of one process",
     "dpdk:net_ring0,pair=example?ip=10.9.0.1/24", [](OptionReader& options) {
       dpdk::Settings settings;
       read_options(options, settings);
     }}};

}  // namespace

namespace dpdk {

Result<std::unique_ptr<RawPort>> open_raw_port(std::string_view device, uint64_t number) {
  const Result<DeviceString> parsed = parse_device_string(device);
  if (!parsed) return parsed.error();
  return open_with(*parsed, [number](const Plugin& plugin, const Settings& settings) {
    return plugin.open_raw(settings, number);
  });
}

}  // namespace dpdk

extern const Driver dpdk_driver;
const Driver dpdk_driver = {
    "dpdk", "polled ports of DPDK: NICs in user space, memif, vhost", {}, open, forms};

}  // namespace urma::drivers
