// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/forwarder.h"

#include <algorithm>
#include <array>

#include "base/copy.h"
#include "wire/cci.h"

namespace urma::apps::switches {
namespace {

// Packets that have left the switch, and that the port still reads.
constexpr uint32_t leaving_packets = 512;
constexpr uint32_t cache_line = 64;
// Strangers are told so, at most once in this time: a flood of packets would double itself.
constexpr Duration between_unknown = std::chrono::milliseconds(1);

Forwarder::Settings completed(Forwarder::Settings settings) {
  settings.fabric.keeps = fabric::Keeps::until_collected;
  settings.fabric.ports = settings.hosts.ports + static_cast<uint32_t>(settings.trunks.size());
  settings.port.host = true;
  settings.hosts.metering = congestion::find_port_meter(settings.fabric.meter)->metering;
  return settings;
}

}  // namespace

Forwarder::Forwarder(const Settings& settings)
    : settings_(completed(settings)),
      hosts_(settings_.hosts),
      switches_(settings_.trunks, settings_.trunk_nonce, settings_.hosts.mtu_log2,
                settings_.hosts.metering),
      fabric_(settings_.fabric),
      slot_bytes_((settings.fabric.packet_bytes + cache_line - 1) / cache_line * cache_line),
      memory_(size_t{settings.fabric.packets + leaving_packets} * slot_bytes_),
      last_cna_(settings_.fabric.ports),
      used_ports_(trunks()),
      busy_(settings_.fabric.ports) {
  const uint32_t slots = settings.fabric.packets + leaving_packets;
  free_.reserve(slots);
  for (uint32_t slot = slots; slot-- > 0;) free_.push_back(slot);
  connect_trunks();
}

// Routes never change, and each switch counts the hops of a packet, so that a loop of routes ends
// each packet and nothing else.
void Forwarder::connect_trunks() {
  fabric::SwitchPort trunk = settings_.port;
  trunk.bytes_per_second = settings_.trunk_rate;
  trunk.host = false;
  trunk.checks_routes = true;
  for (uint32_t port = 0; port < trunks(); ++port) fabric_.connect(port, trunk);
  for (const Route& route : settings_.routes) {
    fabric_.routes().set(route.first_cna, route.last_cna, route.trunks);
  }
}

// Returns the port behind which this place is, or Hosts::none.
uint32_t Forwarder::port_of(const Place& at) const {
  const uint32_t trunk = at.medium == 0 ? switches_.find(at.endpoint) : Trunks::none;
  if (trunk != Trunks::none) return trunk;
  const uint32_t port = hosts_.port_of(at);
  return port == Hosts::none ? Hosts::none : port + trunks();
}

std::optional<LinkControl> Forwarder::take(std::span<const std::byte> datagram, const Place& from,
                                           Ecn ecn, Time now) {
  if (const auto packet = parse_link_packet(datagram)) {
    const uint32_t port = port_of(from);
    if (port == Hosts::none) return unknown(now);
    forward(datagram, *packet, port, ecn, now);
    return std::nullopt;
  }
  if (const auto message = parse_link_control(datagram)) return handle(*message, from, now);
  ++counters_.malformed;
  return std::nullopt;
}

std::optional<LinkControl> Forwarder::unknown(Time now) {
  ++counters_.strangers;
  if (unknown_said_ != Time::min() && now < unknown_said_ + between_unknown) return std::nullopt;
  unknown_said_ = now;
  return LinkControl{.type = LinkMessage::unknown};
}

std::optional<LinkControl> Forwarder::handle(const LinkControl& message, const Place& from,
                                             Time now) {
  const uint32_t port = port_of(from);
  if (port != Hosts::none && port < trunks()) return handle_trunk(message, port);
  const bool of_device = message.type == LinkMessage::attach || message.type == LinkMessage::detach;
  if (!of_device) {
    ++counters_.misdirected;
    return std::nullopt;
  }
  Hosts::Outcome outcome = hosts_.handle(message, from, now);
  if (outcome.closed != Hosts::none) close(outcome.closed + trunks(), now);
  if (outcome.opened != Hosts::none) open(outcome.opened + trunks(), now);
  if (message.rated && outcome.answer && outcome.answer->type == LinkMessage::attached) {
    add_rate(*outcome.answer, port_settings(outcome.answer->cna).bytes_per_second);
  }
  return outcome.answer;
}

std::optional<LinkControl> Forwarder::handle_trunk(const LinkControl& message, uint32_t trunk) {
  std::optional<LinkControl> answer;
  if (!switches_.handle(trunk, message, answer)) ++counters_.misdirected;
  fabric_.routes().avoid(trunk, switches_[trunk].silent());
  return answer;
}

LinkControl Forwarder::ask(uint32_t trunk) {
  const LinkControl message = switches_.ask(trunk);
  fabric_.routes().avoid(trunk, switches_[trunk].silent());
  return message;
}

fabric::SwitchPort Forwarder::port_settings(uint32_t cna) const {
  fabric::SwitchPort port = settings_.port;
  const auto rate = settings_.rates.find(cna);
  if (rate != settings_.rates.end()) port.bytes_per_second = rate->second;
  return port;
}

void Forwarder::open(uint32_t port, Time now) {
  used_ports_ = std::max(used_ports_, port + 1);
  const uint32_t cna = host_at(port).cna;
  fabric_.connect(port, port_settings(cna), cna == last_cna_[port]);
  last_cna_[port] = cna;
  fabric_.bring_up(port, now);
  fabric_.routes().attach(last_cna_[port], port);
}

void Forwarder::close(uint32_t port, Time now) {
  fabric_.routes().detach(last_cna_[port]);
  std::array<fabric::Packet, 64> lost;
  for (size_t count = 0; (count = fabric_.take_down(port, now, lost)) > 0;) {
    for (size_t i = 0; i < count; ++i) release(static_cast<uint32_t>(lost[i].handle));
  }
  busy_.remove(port);
}

void Forwarder::age(Time now) {
  for (uint32_t port; (port = hosts_.age(now)) != Hosts::none;) close(port + trunks(), now);
}

void Forwarder::forward(std::span<const std::byte> datagram, const LinkPacket& in, uint32_t port,
                        Ecn ecn, Time now) {
  if (free_.empty()) {
    ++counters_.no_memory;
    return;
  }
  const uint32_t slot = free_.back();
  const auto signal = signal_of(in.nth.cci, in.word.switch_queue);
  fabric::Packet packet{.source = in.nth.source,
                        .destination = in.nth.destination,
                        .bytes = static_cast<uint32_t>(datagram.size()),
                        .lane = in.nth.service_level,
                        .lbf = in.nth.lbf,
                        .hops = in.word.hops,
                        .per_packet = in.word.per_packet,
                        .signal = signal.value_or(congestion::Signal{}),
                        .ecn = ecn,
                        .handle = slot};
  const fabric::Arrival arrival = fabric_.arrive(packet, port, now);
  if (arrival.drop != fabric::Drop::none) return;
  busy_.add(arrival.port);
  free_.pop_back();
  copy_bytes(memory(slot).data(), datagram.data(), datagram.size());
}

Place Forwarder::place_of(uint32_t port) const {
  return port < trunks() ? Place(switches_[port].at) : host_at(port).at;
}

bool Forwarder::next(Time now, Leaving& leaving, Media full) {
  fabric::Departure departure;
  for (uint32_t left = busy_.size(); left > 0; --left, ++port_) {
    port_ = busy_.from(port_);
    if (port_ == PortSet::none) port_ = busy_.from(0);
    if (!waits(port_, full) && fabric_.collect(port_, now, departure)) {
      leaving = leave(departure.packet);
      counters_.latest = std::max(counters_.latest, now - departure.departs);
      if (fabric_.due(port_) == never) busy_.remove(port_);
      return true;
    }
  }
  return false;
}

// Returns a packet that leaves through `port_`, with what the switch has edited.
Forwarder::Leaving Forwarder::leave(const fabric::Packet& packet) {
  const auto slot = static_cast<uint32_t>(packet.handle);
  const auto datagram = memory(slot).first(packet.bytes);
  LinkPacket out = *parse_link_packet(datagram);
  out.word.hops = packet.hops;
  if (signal_of(out.nth.cci, 0)) {
    // A packet that the next switch would misread asks it for nothing, and has S no longer.
    const bool asks = port_ >= trunks() || !switches_.misreads(port_);
    out.word.switch_queue = asks ? packet.signal.switch_queue : uint8_t{0};
    out.nth.cci = asks ? cci_with(packet.signal) : uint16_t{0};
  }
  edit_link_packet(datagram, out.word, out.nth.cci);
  return {datagram, place_of(port_), packet.ecn, slot};
}

Time Forwarder::due(Media full) const {
  Time first = never;
  for (uint32_t port = busy_.from(0); port != PortSet::none; port = busy_.from(port + 1)) {
    if (!waits(port, full)) first = std::min(first, fabric_.due(port));
  }
  return first;
}

}  // namespace urma::apps::switches
