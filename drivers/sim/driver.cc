#include "drivers/sim/clocked_port.h"

namespace urma::drivers {
namespace {

constexpr OptionSays seed_says = {
    "the seed of the network's random generator; the device that names the network first sets it"};

void read_clock_options(OptionReader& options, std::string& name, uint64_t& seed) {
  options.text("net", name, {"the network whose time it uses", "required"});
  options.number("seed", seed, seed_says);
}

void read_port_options(OptionReader& options, sim::Port::Settings& settings, uint64_t& seed) {
  uint64_t mtu = settings.mtu;
  uint64_t buffer = settings.buffer_bytes;
  options.number("seed", seed, seed_says);
  options.size("mtu", mtu, 1024, 8192, {"largest payload of a packet: 1024, 2048, 4096 or 8192"});
  if ((mtu & (mtu - 1)) != 0) options.refuse("mtu", "1024, 2048, 4096 or 8192");
  options.size("buffer", buffer, 64 * 1024, 1 << 30, {"the most bytes that wait for this device"});
  settings.lateness.read_options(options);
  options.address("address", settings.address,
                  {"its address", "the next free one, fd00::1 and up"});
  options.duration("scheduling_delay", settings.scheduling_delay,
                   {"how late this device runs after an arrival or a timer, at random up to this"});
  std::string topology;
  options.text("topology", topology,
               {"star: a switch, in which packets to one device share its line, with the rate, "
                "queue, mark and delay of that device; the first device of the network decides",
                "no switch"});
  if (!topology.empty() && topology != "star") options.refuse("topology", "star");
  settings.star = !topology.empty();
  settings.impairment.read_options(options);
  settings.mtu = static_cast<uint32_t>(mtu);
  settings.buffer_bytes = static_cast<uint32_t>(buffer);
}

Result<std::unique_ptr<PacketPort>> open_clocked(const DeviceString& device) {
  std::string name;
  uint64_t seed = 1;
  OptionReader options(device);
  read_clock_options(options, name, seed);
  if (auto done = options.finish(); !done) return done.error();
  if (name.empty()) {
    return device_error(
        device, device.offset,
        "the simulated network that gives it the time is not named. Fix: sim(net=NAME):cxl:");
  }
  Result<std::unique_ptr<PacketPort>> inner = open_port(*device.inner);
  if (!inner) return inner.error();
  if ((*inner)->bell() == nullptr) {
    return device_error(device, device.inner->offset,
                        "the time of this device cannot be simulated, only that of a window can. "
                        "Fix: sim(net=NAME):cxl:");
  }
  return std::unique_ptr<PacketPort>(std::make_unique<sim::ClockedPort>(
      sim::Network::named(name, seed), std::move(*inner), options.settings()));
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  if (device.inner) return open_clocked(device);
  sim::Port::Settings settings;
  uint64_t seed = 1;
  OptionReader options(device);
  read_port_options(options, settings, seed);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  if (device.address.empty()) {
    return device_error(device, device.address_offset,
                        "the network's name is missing here. Fix: sim:NAME");
  }
  return sim::Port::open(sim::Network::named(device.address, seed), settings);
}

constexpr Driver::Pair pairs[] = {
    {"sim:conformance", "sim:conformance?hold=2us"},
    {"sim(net=conformance-window):cxl:", "sim(net=conformance-window):cxl:"}};

constexpr Driver::Form forms[] = {
    {"sim:NAME", "a network inside this process, which is made when it is first named", "sim:net",
     [](OptionReader& options) {
       sim::Port::Settings settings;
       uint64_t seed = 1;
       read_port_options(options, settings, seed);
     }},
    {"sim(OPTIONS):cxl:PATH", "a window, in the time of a simulated network", "sim(net=net):cxl:",
     [](OptionReader& options) {
       std::string name;
       uint64_t seed = 1;
       read_clock_options(options, name, seed);
     },
     true}};

}  // namespace

extern const Driver sim_driver;
const Driver sim_driver = {
    "sim", "an in-process network under virtual time, for tests and teaching", pairs, open, forms};

}  // namespace urma::drivers
