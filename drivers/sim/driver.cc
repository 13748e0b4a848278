// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"
#include "congestion/port_meter.h"
#include "drivers/sim/clocked_port.h"
#include "drivers/sim/port.h"

namespace urma::drivers {
namespace {

using sim::Switches;

constexpr OptionSays seed_says = {
    "the seed of the network's random generator; the device that names the network first sets it"};

void read_clock_options(OptionReader& options, std::string& name, uint64_t& seed) {
  options.text("net", name, {"the network whose time it uses", "required"});
  options.number("seed", seed, seed_says);
}

// Reads a number that must be in a range.
void read_count(OptionReader& options, std::string_view key, uint32_t& value, uint32_t most,
                std::string_view meaning) {
  uint64_t wide = value;
  options.number(key, wide, {meaning});
  if (wide < 1 || wide > most) options.refuse(key, "1 to " + std::to_string(most));
  value = static_cast<uint32_t>(wide);
}

void read_meter(OptionReader& options, Switches::Settings& settings, bool has_rate) {
  options.text("meter", settings.meter,
               {"the port meters of the switches, of the controller with this name"});
  std::string names;
  for (const congestion::PortMeterKind& kind : congestion::port_meters()) {
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  if (congestion::find_port_meter(settings.meter) == nullptr) {
    options.refuse("meter", "one of " + names);
  } else if (settings.meter != "none" && !has_rate) {
    options.object("meter",
                   "no packet waits, because the line has no rate. Fix: give one too, such as "
                   "rate=100Gbit");
  }
  options.duration("rtt", settings.base_rtt, {"the round trip over which meters measure"});
  if (settings.base_rtt <= Duration{}) options.refuse("rtt", "more than 0, such as 8us");
}

// The topology of the network, after the impairment, which has the rate.
void read_topology_options(OptionReader& options, sim::Port::Settings& port) {
  Switches::Settings settings{.packet_bytes = sim::packet_bytes(port.mtu)};
  std::string topology;
  options.text("topology", topology,
               {"switches: star, parking or leaf_spine; packets to one device share its line, with "
                "its rate, queue, mark and delay; the first device decides for its network",
                "no switch"});
  const std::optional<Switches::Shape> shape = Switches::shape_of(topology);
  if (!topology.empty() && !shape) options.refuse("topology", "star, parking or leaf_spine");
  settings.shape = shape.value_or(Switches::Shape::star);
  read_count(options, "hops", settings.hops, Switches::most_hops, "parking: cables in the chain");
  read_count(options, "pairs", settings.pairs, 256, "parking: pairs of hosts beside each of these");
  read_count(options, "leaves", settings.leaves, 128, "leaf_spine: switches with hosts");
  read_count(options, "leaf_hosts", settings.leaf_hosts, 64, "leaf_spine: hosts of each leaf");
  read_count(options, "spines", settings.spines, 64, "leaf_spine: switches between the leaves");
  read_count(options, "lanes", settings.lanes, fabric::most_lanes, "virtual lanes of each port");
  uint64_t bits_per_second = port.impairment.bits_per_second;
  options.bit_rate("trunk_rate", bits_per_second,
                   {"the rate of cables between switches", "that of the device"});
  settings.trunk.bytes_per_second = bits_per_second / 8;
  options.duration("trunk_delay", settings.trunk.delay, {"the delay of cables between switches"});
  read_meter(options, settings, port.impairment.bits_per_second > 0);
  settings.each_port.queue_bytes = port.impairment.queue_bytes;
  if (port.impairment.mark_bytes > 0) {
    settings.each_port.marking.from_bytes = port.impairment.mark_bytes;
  }
  if (shape) port.switches = settings;
}

void read_rdma(OptionReader& options, sim::Port::Rdma& rdma) {
  std::string text = "no";
  options.text("rdma", text,
               {"whether the device moves the data of writes and reads between registered segments "
                "by itself: no, yes, or any (its own memory need not be registered)"});
  if (text == "yes") {
    rdma = sim::Port::Rdma::yes;
  } else if (text == "any") {
    rdma = sim::Port::Rdma::any;
  } else if (text != "no") {
    options.refuse("rdma", "no, yes or any");
  }
}

void read_port_options(OptionReader& options, sim::Port::Settings& settings, uint64_t& seed) {
  uint64_t mtu = settings.mtu;
  uint64_t service_level = 0;
  uint64_t buffer = settings.buffer_bytes;
  options.number("seed", seed, seed_says);
  options.size("mtu", mtu, 1024, 8192, {"largest payload of a packet: 1024, 2048, 4096 or 8192"});
  if ((mtu & (mtu - 1)) != 0) options.refuse("mtu", "1024, 2048, 4096 or 8192");
  options.size("buffer", buffer, 64 * 1024, 1 << 30, {"the most bytes that wait for this device"});
  settings.lateness.read_options(options);
  read_rdma(options, settings.rdma);
  options.address("address", settings.address,
                  {"its address", "the next free one, fd00::1 and up"});
  options.duration("scheduling_delay", settings.scheduling_delay,
                   {"how late this device runs after an arrival or a timer, at random up to this"});
  settings.impairment.read_options(options);
  options.number("sl", service_level,
                 {"the service level of what the device sends, 0 to 15: its lane at switches"});
  if (service_level >= fabric::most_lanes) options.refuse("sl", "a number from 0 to 15");
  settings.service_level = static_cast<uint8_t>(service_level);
  settings.mtu = static_cast<uint32_t>(mtu);
  settings.buffer_bytes = static_cast<uint32_t>(buffer);
  read_topology_options(options, settings);
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
  if (!sim::ClockedPort::fits(**inner)) {
    return device_error(device, device.inner->offset,
                        "the time of this device cannot be simulated, only that of a window, or of "
                        "a port that can only be polled. Fix: sim(net=NAME):cxl:");
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
    {"sim(OPTIONS):cxl:PATH", "a window, or rings of DPDK, in the time of a simulated network",
     "sim(net=net):cxl:",
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
