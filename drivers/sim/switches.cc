// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/switches.h"

#include <iterator>
#include <utility>

namespace urma::drivers::sim {
namespace {

using fabric::Topology;

constexpr std::string_view shape_names[] = {"star", "parking", "leaf_spine"};

Topology topology_of(const Switches::Settings& settings) {
  switch (settings.shape) {
    case Switches::Shape::parking:
      return fabric::parking_lot({.hops = settings.hops,
                                  .pairs = settings.pairs,
                                  .host_cable = settings.trunk,
                                  .trunk_cable = settings.trunk});
    case Switches::Shape::leaf_spine:
      return fabric::leaf_spine({.leaves = settings.leaves,
                                 .hosts_per_leaf = settings.leaf_hosts,
                                 .spines = settings.spines,
                                 .host_cable = settings.trunk,
                                 .spine_cable = settings.trunk});
    case Switches::Shape::star:
      break;
  }
  return fabric::star(Switches::most_hosts, settings.trunk);
}

// The queues are limited for each port alone.
fabric::SwitchSettings each_switch(const Switches::Settings& settings) {
  return {.lanes = settings.lanes,
          .packet_bytes = settings.packet_bytes,
          .buffer_bytes = uint64_t{1} << 40,
          .meter = settings.meter,
          .base_rtt = settings.base_rtt,
          .seed = settings.seed * 1000};
}

}  // namespace

std::optional<Switches::Shape> Switches::shape_of(std::string_view name) {
  for (size_t i = 0; i < std::size(shape_names); ++i) {
    if (shape_names[i] == name) return static_cast<Shape>(i);
  }
  return std::nullopt;
}

std::string_view Switches::name_of(Shape shape) { return shape_names[static_cast<size_t>(shape)]; }

Switches::Switches(const Settings& settings)
    : settings_(settings),
      hosts_(topology_of(settings).hosts),
      network_(topology_of(settings),
               {.switches = each_switch(settings), .each_port = settings.each_port}) {
  network_.watch(this);
  std::vector<fabric::Switch>& switches = network_.switches();
  if (settings.unmetered >= switches.size()) return;
  fabric::SwitchSettings plain = each_switch(settings);
  plain.meter = "none";
  auto others = fabric::make_switches(topology_of(settings), plain, settings.each_port);
  std::swap(switches[settings.unmetered], others[settings.unmetered]);
}

void Switches::connect(uint32_t host, const Impairment& line) {
  fabric::SwitchPort port = settings_.each_port;
  port.queue_bytes = line.queue_bytes;
  if (line.mark_bytes > 0) port.marking = {.from_bytes = line.mark_bytes};
  network_.set_cable(host, {line.bits_per_second / 8, line.delay}, port);
}

void Switches::send(uint32_t from, uint32_t to, fabric::Packet packet) {
  packet.source = Topology::address_of(from);
  packet.destination = Topology::address_of(to);
  network_.send(from, packet);
}

bool Switches::next(Time until, fabric::Packet& arrived) {
  fabric::Network::Happening it;
  if (!network_.next(until, it)) return false;
  arrived = it.packet;
  return true;
}

bool Switches::take_lost(fabric::Packet& packet) {
  if (lost_.empty()) return false;
  packet = lost_.back();
  lost_.pop_back();
  return true;
}

Switches::Port Switches::port_to(uint32_t host) {
  const fabric::Cable::End end = network_.far_end(host);
  return {network_.switch_at(end.node), end.port};
}

}  // namespace urma::drivers::sim
