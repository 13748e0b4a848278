// SPDX-License-Identifier: Apache-2.0
#include "fabric/switch.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/assert.h"
#include "base/flat_map.h"
#include "base/prefetch.h"

namespace urma::fabric {
namespace {

// Returns a number below `bound` that is as good as random if the hash is.
uint32_t scaled(uint64_t hash, size_t bound) {
  return static_cast<uint32_t>((hash >> 32) * bound >> 32);
}

// Returns a number in [0, 1) that follows from seed and packet.
double chance_of(uint64_t seed, uint64_t packet) {
  return static_cast<double>(mix_bits(mix_bits(seed + 1) ^ packet) >> 11) * 0x1p-53;
}

// Returns whether a packet that meets this queue is marked. `draw` returns a number in [0, 1).
template <class Draw>
bool marks(const Marking& marking, const Packet& packet, uint64_t queue_bytes, const Draw& draw) {
  if (queue_bytes <= marking.from_bytes) return false;
  if (urma::marked(packet.ecn) == packet.ecn) return false;
  if (queue_bytes > marking.all_bytes) return true;
  const double part = static_cast<double>(queue_bytes - marking.from_bytes) /
                      static_cast<double>(marking.all_bytes - marking.from_bytes);
  return draw() < part * marking.most_chance;
}

// Returns one of the ports for which `leads` returns true, the same one for a hash; or
// Routes::none. Seldom needed, so it costs the other packets nothing.
template <class Leads>
[[gnu::noinline]] uint32_t one_of(std::span<const uint16_t> ports, uint64_t hash,
                                  const Leads& leads) {
  const auto left = static_cast<size_t>(std::count_if(ports.begin(), ports.end(), leads));
  if (left == 0) return Routes::none;
  uint32_t skip = scaled(mix_bits(hash), left);
  return *std::find_if(ports.begin(), ports.end(),
                       [&](uint16_t port) { return leads(port) && skip-- == 0; });
}

// Hosts ask, and only switches answer. Otherwise an answer that a host forged would slow other
// senders, because port meters count on what marked packets make their senders do.
congestion::Signal asked_by_host(congestion::Signal signal) {
  return {.increase = signal.increase, .hint = signal.hint};
}

// The meter must exist.
const congestion::PortMeterKind& kind_of(const SwitchSettings& settings) {
  const congestion::PortMeterKind* const kind = congestion::find_port_meter(settings.meter);
  URMA_ASSERT(kind != nullptr, "the meter exists");
  return *kind;
}

// The switch outlives the caller's text, so it names its meter as the list of meters does.
SwitchSettings kept(SwitchSettings settings) {
  settings.meter = kind_of(settings).name;
  if (settings.full_packet_bytes == 0) settings.full_packet_bytes = settings.packet_bytes;
  return settings;
}

}  // namespace

Switch::Switch(const SwitchSettings& settings)
    : settings_(kept(settings)),
      early_(settings.lanes == 1 && !kind_of(settings).edits_departures),
      routes_(settings.addresses, settings.ports),
      ports_(settings.ports),
      lanes_(size_t{settings.ports} * settings.lanes),
      held_(settings.packets) {
  URMA_ASSERT(settings.lanes >= 1 && settings.lanes <= most_lanes, "a packet names its lane");
  if (settings.meter != "none") meters_ = std::vector<Meter>(lanes_.size());
  if (settings.histograms) histograms_.resize(lanes_.size());
}

// ---- control

void Switch::connect(uint32_t port, const SwitchPort& as, bool is_back) {
  Port& it = ports_[port];
  it.line = Line(as.bytes_per_second);
  it.as = as;
  it.as.marking.all_bytes = std::max(as.marking.all_bytes, as.marking.from_bytes);
  it.up = true;
  if (!is_back) it.counters = {};
  for (uint32_t lane = 0; lane < settings_.lanes; ++lane) {
    const uint32_t number = number_of(port, lane);
    if (!is_back) lanes_[number].counters = {};
    if (!is_back && !histograms_.empty()) histograms_[number] = {};
    if (meters_.empty()) continue;
    meters_[number].clear();
    // A line without a rate has no queue to meter.
    if (as.bytes_per_second == 0) continue;
    meters_[number].make(kind_of(settings_),
                         {.bytes_per_second = static_cast<double>(as.bytes_per_second),
                          .base_rtt = settings_.base_rtt,
                          .packet_bytes = settings_.full_packet_bytes,
                          .seed = static_cast<uint32_t>(mix_bits(settings_.seed) + number),
                          .last_hop = as.host});
  }
}

void Switch::bring_up(uint32_t port, Time now) {
  Port& it = ports_[port];
  if (it.up) return;
  URMA_ASSERT(it.waiting == 0 && it.decided.first == PacketLists::none,
              "take_down has emptied the queues");
  it.line = Line(it.line.bytes_per_second());
  it.line.send(0, now);
  it.up = true;
}

size_t Switch::take_down(uint32_t port, Time now, std::span<Packet> lost) {
  Port& it = ports_[port];
  settle(port, now);
  it.up = false;
  size_t count = 0;
  while (it.decided.first != PacketLists::none) {
    const bool held = settings_.keeps == Keeps::until_collected;
    if (held && count == lost.size()) return count;
    const uint32_t slot = held_.remove_first(it.decided);
    if (held) lost[count++] = held_[slot].packet;
    it.counters.recalled += !held;
    lose(it, slot);
  }
  while (it.waiting != 0 && count < lost.size()) {
    Lane& lane = lanes_[number_of(port, static_cast<uint32_t>(std::countr_zero(it.waiting)))];
    const uint32_t slot = held_.remove_first(lane.waiting);
    if (lane.waiting.first == PacketLists::none) it.waiting &= it.waiting - 1;
    lost[count++] = held_[slot].packet;
    lose(it, slot);
  }
  return count;
}

// ---- the way of a packet

Arrival Switch::arrive(Packet& packet, uint32_t from, Time now) {
  Port& in = ports_[from];
  ++in.counters.received_packets;
  in.counters.received_bytes += packet.bytes;
  ++arrivals_;
  const Drop refused = check(packet, from);
  if (refused != Drop::none) return drop(from, refused, packet.bytes);
  const uint32_t to = choose(packet);
  if (to == Routes::none) return drop(from, Drop::unknown_destination, packet.bytes);
  Port& out = ports_[to];
  if (!out.up) return drop(to, Drop::port_down, packet.bytes);
  settle(to, now);
  const uint32_t number = number_of(to, packet.lane);
  Lane& lane = lanes_[number];
  congestion::Signal signal;
  congestion::PortMeter* const meter = meter_of(number);
  // Before admission, because dropped packets load the port, too.
  if (in.as.host) packet.signal = asked_by_host(packet.signal);
  if (meter != nullptr) {
    signal = meter->arrive(now, packet.bytes, lane.bytes, packet.signal);
  }
  const Drop full = admit(out, lane, packet.bytes, now);
  if (full != Drop::none) return drop(to, full, packet.bytes);

  if (meter != nullptr) {
    lane.counters.congested += signal.congested && !packet.signal.congested;
    packet.signal = signal;
  }
  const auto draw = [this] { return chance_of(settings_.seed, arrivals_); };
  if (marks(out.as.marking, packet, lane.bytes, draw)) {
    packet.ecn = urma::marked(packet.ecn);
    ++lane.counters.marked;
  }
  ++packet.hops;
  count_queue(lane);
  lane.bytes += packet.bytes;
  used_bytes_ += packet.bytes;
  const uint32_t slot = held_.take(packet);
  ++out.held;
  if (early_) return {Drop::none, to, depart_behind(out, slot, now)};
  const Time departs = wait(out, slot, now);
  if (departs != never) packet = held_[slot].packet;
  return {Drop::none, to, departs};
}

void Switch::prefetch(const Packet& packet, uint32_t from) const {
  prefetch_to_write(&ports_[from]);
  const uint32_t to = choose(packet);
  if (to == Routes::none || packet.lane >= settings_.lanes) return;
  prefetch_to_write(&ports_[to]);
  prefetch_to_write(&lanes_[number_of(to, packet.lane)]);
}

Drop Switch::check(const Packet& packet, uint32_t from) const {
  const Port& in = ports_[from];
  if (!in.up) return Drop::port_down;
  if (packet.bytes == 0 || packet.bytes > settings_.packet_bytes) return Drop::bad_size;
  if (packet.lane >= settings_.lanes) return Drop::bad_lane;
  if (!may_come_from(packet.source, from)) return Drop::spoofed_source;
  if (packet.hops >= settings_.hops) return Drop::hop_limit;
  return Drop::none;
}

bool Switch::may_come_from(uint32_t source, uint32_t port) const {
  const SwitchPort& as = ports_[port].as;
  const uint32_t owner = routes_.owner(source);
  if (as.host) return owner == port;
  if (owner != Routes::none) return false;
  if (!as.checks_routes) return true;
  const std::span<const uint16_t> ports = routes_.find(source);
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

// A flow keeps its port while other ports of equal cost go down and come up.
uint32_t Switch::choose(const Packet& packet) const {
  const std::span<const uint16_t> ports = routes_.find(packet.destination);
  if (ports.size() < 2) return ports.empty() ? Routes::none : ports[0];
  const uint64_t addresses = uint64_t{packet.source} << 24 | packet.destination;
  const uint64_t hash =
      mix_bits(mix_bits(addresses ^ uint64_t{packet.lbf} << 48) ^ mix_bits(settings_.seed + 1) ^
               (packet.per_packet ? arrivals_ : 0));
  const uint32_t first = ports[scaled(hash, ports.size())];
  const auto up = [&](uint32_t port) { return ports_[port].up; };
  const auto leads = [&](uint32_t port) { return up(port) && !routes_.avoided(port); };
  if (leads(first)) return first;
  const uint32_t answers = one_of(ports, hash, leads);
  if (answers != Routes::none) return answers;
  const uint32_t silent = up(first) ? first : one_of(ports, hash, up);
  return silent != Routes::none ? silent : first;
}

// Departures are counted only at the port of the packet. So the other queues may be shorter than
// their counts say, which matters only if there seems to be no room. If a caller collects
// departures, they are counted when it does, and looking at the ports finds nothing.
Drop Switch::admit(const Port& port, const Lane& lane, uint32_t bytes, Time now) {
  if (lane.bytes + bytes > port.as.queue_bytes) return Drop::queue_full;
  const Drop drop = room_for(port, lane, bytes);
  if (drop == Drop::none || settings_.keeps == Keeps::until_collected) return drop;
  for (uint32_t each = 0; each < ports_.size(); ++each) settle(each, now);
  return room_for(port, lane, bytes);
}

Drop Switch::room_for(const Port& port, const Lane& lane, uint32_t bytes) const {
  if (port.held >= held_.vacant()) return Drop::no_slot;
  const uint64_t free = settings_.buffer_bytes - used_bytes_;
  if (bytes > free) return Drop::buffer_full;
  if (settings_.share > 0 &&
      static_cast<double>(lane.bytes + bytes) > settings_.share * static_cast<double>(free)) {
    return Drop::queue_full;
  }
  return Drop::none;
}

Arrival Switch::drop(uint32_t port, Drop reason, uint32_t bytes) {
  PortCounters& counters = ports_[port].counters;
  ++counters.drops[static_cast<size_t>(reason)];
  counters.dropped_bytes += bytes;
  return {reason, port, never};
}

Time Switch::depart_behind(Port& port, uint32_t slot, Time earliest) {
  Slot& it = held_[slot];
  it.when = port.line.send(it.packet.bytes, earliest);
  held_.append(port.decided, slot);
  return it.when;
}

// Returns the departure if the packet need not wait.
Time Switch::wait(Port& port, uint32_t slot, Time now) {
  Slot& it = held_[slot];
  it.when = now;
  const auto first_lane = static_cast<uint32_t>(&port - ports_.data()) * settings_.lanes;
  Lane& lane = lanes_[first_lane + it.packet.lane];
  // A lane that was empty does not make up for what it could have sent.
  if (lane.waiting.first == PacketLists::none) lane.served = std::max(lane.served, port.served);
  held_.append(lane.waiting, slot);
  const bool alone = port.waiting == 0;
  port.waiting |= 1u << it.packet.lane;
  if (!alone || port.line.free_at() > now) return never;
  decide_next(port, now);
  return it.when;
}

Time Switch::due(uint32_t port) const {
  const Port& it = ports_[port];
  if (settings_.keeps == Keeps::until_collected && it.decided.first != PacketLists::none) {
    return held_[it.decided.first].when;
  }
  return it.waiting != 0 ? it.line.free_at() : never;
}

bool Switch::decide(uint32_t port, Time now, Departure& departure) {
  Port& it = ports_[port];
  if (!it.up || it.waiting == 0 || it.line.free_at() > now) return false;
  settle(port, now);
  const Slot& slot = held_[decide_next(it, now)];
  departure = {slot.packet, slot.when};
  return true;
}

bool Switch::collect(uint32_t port, Time now, Departure& departure) {
  Port& it = ports_[port];
  if (!it.up) return false;
  if (it.decided.first == PacketLists::none) {
    if (it.waiting == 0 || it.line.free_at() > now) return false;
    decide_next(it, now);
  }
  const Slot& slot = held_[it.decided.first];
  if (slot.when > now) return false;
  departure = {slot.packet, slot.when};
  leave_queue(it, held_.remove_first(it.decided));
  return true;
}

uint32_t Switch::next_lane(const Port& port, uint32_t first_lane) const {
  if (settings_.service == Service::strict) {
    return static_cast<uint32_t>(std::bit_width(port.waiting)) - 1;
  }
  uint32_t best = most_lanes;
  for (uint32_t left = port.waiting; left != 0; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    if (best == most_lanes || lanes_[first_lane + lane].served < lanes_[first_lane + best].served) {
      best = lane;
    }
  }
  return best;
}

// Returns the slot of the packet that leaves next.
uint32_t Switch::decide_next(Port& port, Time now) {
  const auto first_lane = static_cast<uint32_t>(&port - ports_.data()) * settings_.lanes;
  const uint32_t number = next_lane(port, first_lane);
  Lane& lane = lanes_[first_lane + number];
  const uint32_t slot = held_.remove_first(lane.waiting);
  if (lane.waiting.first == PacketLists::none) port.waiting &= ~(1u << number);
  Packet& packet = held_[slot].packet;
  port.served = lane.served;
  lane.served += packet.bytes;
  if (congestion::PortMeter* meter = meter_of(first_lane + number)) {
    const bool before = packet.signal.congested;
    packet.signal = meter->depart(now, packet.bytes, lane.bytes - packet.bytes, packet.signal);
    lane.counters.congested += packet.signal.congested && !before;
  }
  depart_behind(port, slot, held_[slot].when);
  return slot;
}

// ---- queues

void Switch::settle(uint32_t port, Time now) {
  if (settings_.keeps == Keeps::until_collected) return;
  Port& it = ports_[port];
  while (it.decided.first != PacketLists::none && held_[it.decided.first].when <= now) {
    leave_queue(it, held_.remove_first(it.decided));
  }
}

void Switch::leave_queue(Port& port, uint32_t slot) {
  const Slot& it = held_[slot];
  const Packet& packet = it.packet;
  const auto first_lane = static_cast<uint32_t>(&port - ports_.data()) * settings_.lanes;
  const uint32_t number = first_lane + packet.lane;
  Lane& lane = lanes_[number];
  lane.bytes -= packet.bytes;
  --port.held;
  used_bytes_ -= packet.bytes;
  ++lane.counters.packets;
  lane.counters.bytes += packet.bytes;
  if (early_) {
    // The packet has gone, and this meter does not edit it.
    if (congestion::PortMeter* meter = meter_of(number)) {
      meter->depart(it.when, packet.bytes, lane.bytes, packet.signal);
    }
  }
  held_.put_back(slot);
}

void Switch::lose(Port& port, uint32_t slot) {
  const Packet& packet = held_[slot].packet;
  const auto number = static_cast<uint32_t>(&port - ports_.data());
  lanes_[number_of(number, packet.lane)].bytes -= packet.bytes;
  --port.held;
  used_bytes_ -= packet.bytes;
  drop(number, Drop::port_down, packet.bytes);
  held_.put_back(slot);
}

void Switch::count_queue(Lane& lane) {
  const auto queue = static_cast<uint32_t>(std::min<uint64_t>(lane.bytes, UINT32_MAX));
  lane.counters.least_queue = std::min(lane.counters.least_queue, queue);
  lane.counters.most_queue = std::max(lane.counters.most_queue, queue);
  if (!histograms_.empty()) {
    ++histograms_[static_cast<size_t>(&lane - lanes_.data())][std::bit_width(queue)];
  }
}

void Switch::restart_extremes() {
  for (Lane& lane : lanes_) {
    lane.counters.least_queue = UINT32_MAX;
    lane.counters.most_queue = 0;
  }
}

uint64_t queue_quantile(const QueueHistogram& histogram, double share) {
  const uint64_t all = std::accumulate(histogram.begin(), histogram.end(), uint64_t{0});
  uint64_t sum = 0;
  for (size_t i = 0; i < histogram.size(); ++i) {
    sum += histogram[i];
    if (all > 0 && static_cast<double>(sum) >= share * static_cast<double>(all)) {
      return (uint64_t{1} << i) - 1;
    }
  }
  return 0;
}

}  // namespace urma::fabric
