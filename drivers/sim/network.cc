// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/network.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "base/assert.h"
#include "base/flat_map.h"
#include "drivers/sim/clocked_port.h"
#include "drivers/sim/port.h"
#include "wire/cci.h"

namespace urma::drivers::sim {
namespace {

// The delay of every packet, even if no option asks for one.
constexpr Duration least_delay(1000);

Eid address_number(uint32_t n) {
  Eid eid;
  eid.bytes[0] = std::byte{0xfd};
  for (size_t i = 0; i < 4; ++i) eid.bytes[15 - i] = static_cast<std::byte>(n >> 8 * i);
  return eid;
}

// Returns the load-balance factor of a packet: one number for each channel. UTP packets, which have
// no TPNs, share one.
uint8_t lbf_of(std::span<const std::byte> packet) {
  constexpr size_t tpns_at = 2, tpns_bytes = 6;  // in RTPH (UB 4.2)
  if (packet.size() < tpns_at + tpns_bytes) return 0;
  return static_cast<uint8_t>(mix_bits(load_be<tpns_bytes>(packet.data() + tpns_at)) >> 56);
}

}  // namespace

// ---- the network

Network::Network(uint64_t seed) : prng_(seed) {
  std::vector<Event> room;
  room.reserve(Packets::capacity + 4096);
  events_ = std::priority_queue<Event, std::vector<Event>, Later>(Later{}, std::move(room));
}

std::shared_ptr<Network> Network::named(const std::string& name, uint64_t seed) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Network>> networks;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Network> network = networks[name].lock();
  if (!network) networks[name] = network = std::make_shared<Network>(seed);
  return network;
}

bool Network::use_switches(const Switches::Settings& settings) {
  if (switches_ != nullptr) return true;
  if (std::ranges::any_of(ports_, [](const Port* port) { return port != nullptr; })) return false;
  switches_ = std::make_unique<Switches>(settings);
  advance(now_);
  return true;
}

uint32_t Network::host_of(const Endpoint& at) const {
  const uint32_t place = find(at);
  return place == none ? none : places_[place].host;
}

fabric::LaneCounters Network::counters_to(const Endpoint& at) {
  const Switches::Port port = switches_->port_to(host_of(at));
  port.at.settle(port.number, now_);
  return port.at.counters(port.number, 0);
}

// ---- addresses

size_t Network::Hash::operator()(const Endpoint& at) const {
  uint64_t halves[2];
  std::memcpy(halves, at.address.bytes.data(), sizeof halves);
  return mix_bits(halves[0] ^ mix_bits(halves[1] ^ at.port));
}

uint32_t Network::find(const Endpoint& at) const {
  const auto found = place_of_.find(at);
  return found == place_of_.end() ? none : found->second;
}

uint32_t Network::place_of(const Endpoint& at) {
  const auto [found, added] = place_of_.try_emplace(at, static_cast<uint32_t>(places_.size()));
  if (added) places_.push_back({.at = at});
  return found->second;
}

// ---- engines

void Network::attach(Driven& driven, const Endpoint& at) {
  const uint32_t engine = engines_.add(driven, now_);
  Place& place = places_[place_of(at)];
  place.engines.push_back(engine);
  if (place.port != nullptr) {
    engines_.allow_lateness(engine, place.port->settings_.scheduling_delay);
  }
}

void Network::detach(Driven& driven) {
  const uint32_t engine = engines_.remove(driven);
  for (Place& place : places_) std::erase(place.engines, engine);
}

void Network::poke(Driven& driven) { engines_.poke(driven, now_); }

void Network::wake(uint32_t place) {
  for (const uint32_t engine : places_[place].engines) engines_.wake(engine, now_);
}

void Network::stop(const Endpoint& at, bool stopped) {
  const uint32_t place = find(at);
  if (place == none) return;
  for (const uint32_t engine : places_[place].engines) engines_.stop(engine, stopped);
}

// ---- time

Time Network::next_event() const {
  Time next = std::min(events_.empty() ? never : events_.top().at, engines_.next());
  next = std::min(next, pairs_.next());
  if (switches_ != nullptr) next = std::min(next, switches_->next_event());
  return next;
}

void Network::advance(Time to) {
  now_ = std::max(now_, to);
  if (switches_ == nullptr) return;
  fabric::Packet packet;
  while (switches_->next(now_, packet)) {
    const auto slot = static_cast<uint32_t>(packet.handle);
    Packets::Packet& header = packets_[slot];
    header.ecn = packet.ecn;
    if (signal_of(header.cci, 0)) {
      if (faults.forge) faults.forge(packet.signal);
      header.cci = cci_with(packet.signal);
    }
    header.switch_queue = packet.signal.switch_queue;
    deliver(slot);
  }
  while (switches_->take_lost(packet)) packets_.put_back(static_cast<uint32_t>(packet.handle));
}

bool Network::step(Time until) {
  hear_bells();
  const Time next = next_event();
  if (next > until) {
    advance(until);
    return next != never;
  }
  advance(next);
  while (!events_.empty() && events_.top().at <= now_) {
    const Event event = events_.top();
    events_.pop();
    handle(event);
  }
  pairs_.run(now_);
  while (engines_.next() <= now_) engines_.run_next(now_);
  return true;
}

// Rings at the port that has sent, too: it may have sent to itself.
void Network::ring_polled_ports() {
  for (ClockedPort* port : clocked_ports_) {
    if (port != nullptr) port->rung_ = true;
  }
}

// The engine of a rung port runs after the impairment's delay, as if its processor were busy.
void Network::hear_bells() {
  for (uint32_t i = 0; i < clocked_ports_.size(); ++i) {
    if (clocked_ports_[i] == nullptr || !clocked_ports_[i]->was_rung()) continue;
    const Duration late = faults.impairment.lateness(prng_) + least_delay;
    events_.push({now_ + late, order_++, Happens::owner_wakes, i});
  }
}

Endpoint Network::add(Port& port, const Eid& wanted, Status& status) {
  Endpoint at{wanted, ub_port};
  const auto taken = [&](const Endpoint& endpoint) {
    const uint32_t place = find(endpoint);
    return place != none && places_[place].port != nullptr;
  };
  if (wanted == Eid{}) {
    do at.address = address_number(next_address_++);
    while (taken(at));
  } else if (taken(at)) {
    status = Status::address_in_use;
    return at;
  }
  port.place_ = place_of(at);
  Place& place = places_[port.place_];
  if (switches_ != nullptr && !add_host(place, port)) {
    status = Status::no_resources;
    return at;
  }
  place.dead = false;
  place.port = &port;
  port.index_ = static_cast<uint32_t>(ports_.size());
  ports_.push_back(&port);
  return at;
}

// An address that is opened again, by a process that restarts, is the same host.
bool Network::add_host(Place& place, const Port& port) {
  if (place.host == none) {
    if (hosts_ == switches_->hosts()) return false;
    place.host = hosts_++;
  }
  Impairment line = port.settings_.impairment;
  if (line.delay == Duration{}) line.delay = least_delay;
  switches_->connect(place.host, line);
  return true;
}

void Network::remove(Port& port) {
  ports_[port.index_] = nullptr;
  places_[port.place_].port = nullptr;
  for (; port.inbox_count_ > 0; --port.inbox_count_) {
    packets_.put_back(port.inbox_[port.inbox_first_]);
    port.inbox_first_ = (port.inbox_first_ + 1) % port.inbox_.size();
  }
}

void Network::add(ClockedPort& port) {
  port.index_ = static_cast<uint32_t>(clocked_ports_.size());
  clocked_ports_.push_back(&port);
}

void Network::remove(ClockedPort& port) { clocked_ports_[port.index_] = nullptr; }

void Network::kill(const Endpoint& at) {
  for (ClockedPort* port : clocked_ports_) {
    if (port != nullptr && port->facts().self == at) port->abandon();
  }
  Place& place = places_[place_of(at)];
  place.dead = true;
  if (place.port == nullptr) return;
  if (place.port->ends_) place.port->ends_->vanish();
  // Releases the packets in its inbox, which no engine will receive.
  std::array<RxFrame, 1> frame;
  while (place.port->receive(frame, now_) > 0) place.port->release(frame);
}

bool Network::severed(uint32_t from, uint32_t to, size_t bytes) const {
  if (places_[from].dead) return true;
  if (to == none) return false;
  return places_[to].dead || faults.is_cut(places_[from].at, places_[to].at, bytes);
}

void Network::transmit(Port& from, const TxFrame& frame) {
  ++counters_.sent;
  const size_t bytes = frame.bytes();
  URMA_ASSERT(bytes <= Packets::largest,
              "no packet is larger than the largest MTU and its headers");
  // A device does not send what it held for a killed process, whose memory no longer exists.
  if (places_[from.place_].dead) return;
  faults.show(from.facts_.self, frame);
  const uint32_t to = find(frame.to);
  if (bytes > faults.largest_packet || severed(from.place_, to, bytes)) return;
  const auto beginning = beginning_of(frame);
  const Impairment::Fate first = from.line_.decide(from.impairment_, beginning, bytes, now_, prng_);
  for (const Impairment::Copy& port_copy : std::span(first.copies).first(first.count)) {
    const Impairment::Fate second =
        from.wire_.decide(faults.impairment, beginning, bytes, now_, prng_);
    for (const Impairment::Copy& wire_copy : std::span(second.copies).first(second.count)) {
      const uint32_t packet = packets_.take();
      if (packet == Packets::none) {
        ++counters_.overflowed;
        return;
      }
      const bool corrupt = port_copy.corrupt || wire_copy.corrupt;
      packets_[packet] = {.from = from.facts_.self,
                          .to = frame.to,
                          .from_place = from.place_,
                          .to_place = to,
                          .bytes = static_cast<uint32_t>(bytes),
                          .corrupt = corrupt,
                          .ecn = second.arriving(first.arriving(frame.ecn)),
                          .lane = from.settings_.service_level,
                          .cci = switches_ != nullptr ? frame.cci : uint16_t{0}};
      flatten(frame, packets_.bytes_of(packet));
      if (port_copy.corrupt) Impairment::flip_bits({packets_.bytes_of(packet), bytes}, prng_);
      if (wire_copy.corrupt) Impairment::flip_bits({packets_.bytes_of(packet), bytes}, prng_);
      const Duration delay = port_copy.delay + wire_copy.delay;
      if (switches_ != nullptr && delay == Duration{}) {
        leave(packet);
      } else if (switches_ != nullptr) {
        events_.push({now_ + delay, order_++, Happens::packet_leaves, packet});
      } else {
        events_.push({now_ + delay + least_delay, order_++, Happens::packet_arrives, packet});
      }
    }
  }
}

void Network::run_port_at(Port& port, Time at) {
  events_.push({at, order_++, Happens::port_is_due, port.index_});
}

void Network::handle(const Event& event) {
  switch (event.what) {
    case Happens::packet_arrives:
      return deliver(event.index);
    case Happens::packet_leaves:
      return leave(event.index);
    case Happens::port_is_due:
      if (ports_[event.index] != nullptr) ports_[event.index]->run_device();
      return;
    case Happens::owner_wakes:
      if (clocked_ports_[event.index] != nullptr) {
        wake(place_of(clocked_ports_[event.index]->facts().self));
      }
      return;
  }
}

void Network::leave(uint32_t packet) {
  const Packets::Packet& header = packets_[packet];
  const uint32_t to = header.to_place == none ? none : places_[header.to_place].host;
  if (to == none) return packets_.put_back(packet);
  switches_->send(places_[header.from_place].host, to,
                  {.bytes = header.bytes,
                   .lane = header.lane,
                   .lbf = lbf_of({packets_.bytes_of(packet), header.bytes}),
                   .signal = signal_of(header.cci, 0).value_or(congestion::Signal()),
                   .ecn = header.ecn,
                   .handle = packet});
}

void Network::deliver(uint32_t packet) {
  Packets::Packet& header = packets_[packet];
  if (header.to_place == none) header.to_place = find(header.to);
  Port* const port = header.to_place == none ? nullptr : places_[header.to_place].port;
  const bool room = port != nullptr && !severed(header.from_place, header.to_place, header.bytes) &&
                    port->inbox_count_ < port->inbox_.size() &&
                    port->inbox_bytes_ + header.bytes <= port->settings_.buffer_bytes;
  if (!room) return packets_.put_back(packet);
  counters_.corrupted += header.corrupt;
  trace_.add_number(header.ecn);
  // Only the transport header: behind it are addresses, which differ from run to run.
  trace_.add(now_, header.from, header.to, header.bytes,
             {packets_.bytes_of(packet), std::min<size_t>(header.bytes, 16)});
  port->inbox_[(port->inbox_first_ + port->inbox_count_++) % port->inbox_.size()] = packet;
  port->inbox_bytes_ += header.bytes;
  wake(header.to_place);
}

}  // namespace urma::drivers::sim
