#include "drivers/udp/udp_port.h"

namespace urma::drivers {
namespace {

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  udp::Settings settings;
  uint64_t mtu = 0;
  OptionReader options(device);
  options.size("mtu", mtu, 1024, 8192);
  options.size("rcvbuf", settings.rcvbuf, 64 * 1024, 1 << 30);
  options.flag("gso", settings.gso);
  options.flag("gro", settings.gro);
  if (auto done = options.finish(); !done) return done.error();
  if ((mtu & (mtu - 1)) != 0) {
    return device_error(device, device.place, "mtu must be 1024, 2048, 4096 or 8192");
  }
  settings.mtu = static_cast<uint32_t>(mtu);
  if (!device.address.empty()) {
    Result<Endpoint> endpoint = parse_endpoint(device.address);
    if (!endpoint) return device_error(device, device.address_place, endpoint.error().message);
    settings.address = endpoint->address;
    // A port is only meant where one is written.
    const bool bracket = device.address.starts_with('[');
    const size_t colon = bracket ? device.address.find("]:") : device.address.find(':');
    const bool bare_v6 = !bracket && !endpoint->is_ipv4();
    if (colon != std::string::npos && !bare_v6) settings.port = endpoint->port;
    if (settings.address == Eid{} || settings.address == ipv4(0, 0, 0, 0)) {
      return device_error(
          device, device.address_place,
          "a wildcard address cannot be an entity; name one address of this machine");
    }
  }
  return udp::UdpPort::open(settings);
}

}  // namespace

extern const Driver udp_driver;
const Driver udp_driver = {"udp", "UDP sockets: any network, no privilege", {"udp:", "udp:"}, open};

}  // namespace urma::drivers
