// SPDX-License-Identifier: Apache-2.0
#include "fabric/network.h"

#include <array>

#include "base/assert.h"
#include "base/prefetch.h"

namespace urma::fabric {

Network::Network(const Topology& topology, const Settings& settings)
    : switches_(make_switches(topology, settings.switches, settings.each_port)),
      leaving_(topology.switch_ports.size()),
      hosts_(topology.hosts),
      packets_(settings.packets),
      events_(settings.events) {
  for (size_t i = 0; i < leaving_.size(); ++i) leaving_[i].resize(topology.switch_ports[i]);
  for (const Cable& cable : topology.cables) {
    for (const bool back : {false, true}) {
      const Cable::End& from = back ? cable.b : cable.a;
      const Cable::End& to = back ? cable.a : cable.b;
      const auto channel = static_cast<uint32_t>(channels_.size());
      channels_.push_back({from, to, cable.delay, 0, 0, false, false});
      if (is_host(from.node)) {
        hosts_[from.node] = {Line(cable.bytes_per_second), channel};
      } else {
        leaving_[from.node - topology.hosts][from.port] = channel;
      }
    }
  }
}

Time Network::send(uint32_t host, const Packet& packet) {
  Host& from = hosts_[host];
  const Time departs = from.line.send(packet.bytes, now_);
  Packet* const copy = packets_.create(packet);
  URMA_ASSERT(copy != nullptr, "the settings bound the number of packets on cables");
  launch(from.channel, packets_.index_of(copy), departs);
  return departs;
}

void Network::set_cable(uint32_t host, const CableKind& cable, SwitchPort port) {
  Host& it = hosts_[host];
  it.line = Line(cable.bytes_per_second);
  // The two directions of a cable are neighbours.
  channels_[it.channel].delay = channels_[it.channel ^ 1].delay = cable.delay;
  port.bytes_per_second = cable.bytes_per_second;
  port.host = true;
  const Cable::End end = far_end(host);
  switch_at(end.node).connect(end.port, port);
}

void Network::set_timer(uint32_t host, Time at, uint32_t tag) {
  events_.push({std::max(at, now_), place_of(timer, host), hosts_[host].timers++, tag, timer});
}

bool Network::next(Time until, Happening& happening) {
  Event event;
  while (events_.pop(until, event)) {
    now_ = event.at;
    prefetch();
    if (handle(event, happening)) return true;
  }
  now_ = std::max(now_, until);
  return false;
}

// In a large fabric most of the time goes into waiting for memory, so what the next arrivals need
// is fetched before: first their packets, then what the switches need.
void Network::prefetch() {
  const Event* const later = events_.soon(8);
  if (later != nullptr && later->what % (1u << kind_bits) == arrival) {
    prefetch_to_write(&packets_.at(later->index));
    prefetch_to_read(&channels_[later->to]);
  }
  const Event* const sooner = events_.soon(3);
  if (sooner == nullptr || sooner->what % (1u << kind_bits) != arrival) return;
  const Channel& channel = channels_[sooner->to];
  if (!is_host(channel.to.node)) {
    switch_at(channel.to.node).prefetch(packets_.at(sooner->index), channel.to.port);
  }
}

// Lets a packet arrive at the other end of a channel.
void Network::launch(uint32_t channel, uint32_t packet, Time departs) {
  Channel& it = channels_[channel];
  events_.push({departs + it.delay, place_of(arrival, channel), it.sequence++, packet,
                arrival | uint32_t{it.epoch} << kind_bits});
}

// Returns whether a host is concerned.
bool Network::handle(const Event& event, Happening& happening) {
  switch (static_cast<Kind>(event.what & ((1u << kind_bits) - 1))) {
    case arrival:
      return land(event, happening);
    case decision:
      decide(event.index);
      return false;
    case timer:
      happening.what = What::timer;
      happening.host = event.to - place_of(timer, 0);
      happening.tag = event.index;
      return true;
  }
  return false;
}

bool Network::land(const Event& event, Happening& happening) {
  const Channel& channel = channels_[event.to];
  Packet& packet = packets_.at(event.index);
  if (channel.severed || channel.epoch != event.what >> kind_bits) {
    ++lost_;
    lose(event.index);
    return false;
  }
  ++hops_;
  if (!is_host(channel.to.node)) {
    hop(channel.to.node, channel.to.port, event.index);
    return false;
  }
  happening.what = What::packet;
  happening.host = channel.to.node;
  happening.packet = packet;
  packets_.destroy(&packet);
  trace_.add(static_cast<uint64_t>(now_.time_since_epoch().count()));
  trace_.add(uint64_t{happening.packet.source} << 32 | happening.packet.destination);
  trace_.add(uint64_t{happening.packet.bytes} << 32 | uint64_t{happening.packet.signal.hint} << 8 |
             static_cast<unsigned>(happening.packet.ecn));
  return true;
}

void Network::hop(uint32_t node, uint32_t port, uint32_t packet) {
  Switch& at = switch_at(node);
  Packet& it = packets_.at(packet);
  const Arrival done = at.arrive(it, port, now_);
  if (watcher_ != nullptr && done.drop == Drop::none) {
    watcher_->accepted(node - static_cast<uint32_t>(hosts_.size()), done.port, it, done.departs);
  }
  if (done.departs != never) {
    return launch(leaving_[node - hosts_.size()][done.port], packet, done.departs);
  }
  if (done.drop != Drop::none) return lose(packet);
  packets_.destroy(&it);  // the switch has a description of its own
  plan_decision(at, leaving_[node - hosts_.size()][done.port]);
}

void Network::lose(uint32_t packet) {
  Packet& it = packets_.at(packet);
  if (watcher_ != nullptr) watcher_->lost(it);
  packets_.destroy(&it);
}

void Network::plan_decision(Switch& at, uint32_t channel) {
  Channel& it = channels_[channel];
  if (it.decision_planned) return;
  const Time due = at.due(it.from.port);
  if (due == never) return;
  it.decision_planned = true;
  events_.push({std::max(due, now_), place_of(decision, channel), 0, channel, decision});
}

void Network::decide(uint32_t channel) {
  Channel& it = channels_[channel];
  it.decision_planned = false;
  Switch& at = switch_at(it.from.node);
  Departure departure;
  if (at.decide(it.from.port, now_, departure)) {
    Packet* const copy = packets_.create(departure.packet);
    URMA_ASSERT(copy != nullptr, "the settings bound the number of packets on cables");
    launch(channel, packets_.index_of(copy), departure.departs);
  }
  plan_decision(at, channel);
}

void Network::cut(uint32_t cable, bool severed) {
  cut_end(2 * cable, severed);
  cut_end(2 * cable + 1, severed);
}

void Network::cut_end(uint32_t channel, bool severed) {
  Channel& it = channels_[channel];
  if (it.severed == severed) return;
  it.severed = severed;
  it.epoch = static_cast<uint8_t>(it.epoch + severed);
  if (is_host(it.from.node)) return;
  Switch& at = switch_at(it.from.node);
  if (!severed) return at.bring_up(it.from.port, now_);
  std::array<Packet, 64> lost;
  while (const size_t count = at.take_down(it.from.port, now_, lost)) {
    if (watcher_ == nullptr) continue;
    for (const Packet& packet : std::span(lost).first(count)) watcher_->lost(packet);
  }
}

}  // namespace urma::fabric
