#include "drivers/sim/network.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "base/assert.h"
#include "base/flat_map.h"
#include "drivers/sim/clocked_port.h"
#include "wire/cci.h"

namespace urma::drivers::sim {
namespace {

// The simulated duration of a pass, so that the clock advances even if an engine always has work.
constexpr Duration pass_cost(200);
// The delay of every packet, even if no option asks for one.
constexpr Duration least_delay(1000);

void mix(uint64_t& hash, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3;
}

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

Network::Network(uint64_t seed) : prng_(seed), storage_(size_t{packets} * packet_capacity) {
  headers_.resize(packets);
  free_.reserve(packets);
  for (uint32_t i = packets; i-- > 0;) free_.push_back(i);
  std::vector<Event> room;
  room.reserve(packets + 4096);
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
  auto found = engine_of_.find(&driven);
  if (found == engine_of_.end()) {
    const auto vacant = std::ranges::find(engines_, nullptr, &Engine::driven);
    const auto index = static_cast<uint32_t>(vacant - engines_.begin());
    if (vacant == engines_.end()) engines_.emplace_back();
    engines_[index] = {.driven = &driven, .next = now_};
    found = engine_of_.emplace(&driven, index).first;
    plan(index);
  }
  Place& place = places_[place_of(at)];
  place.engines.push_back(found->second);
  if (place.port == nullptr) return;
  Engine& engine = engines_[found->second];
  engine.most_late = std::max(engine.most_late, place.port->settings_.scheduling_delay);
}

void Network::detach(Driven& driven) {
  const auto found = engine_of_.find(&driven);
  if (found == engine_of_.end()) return;
  const uint32_t index = found->second;
  for (Place& place : places_) std::erase(place.engines, index);
  wakes_.set(index, never);
  engines_[index] = {};
  engine_of_.erase(found);
}

// Draws how much later than it should an engine runs.
Duration Network::late(const Engine& engine) {
  if (engine.most_late == Duration{}) return {};
  return Duration(
      static_cast<int64_t>(prng_.below(static_cast<uint64_t>(engine.most_late.count()))));
}

void Network::plan(uint32_t engine) {
  wakes_.set(engine, engines_[engine].stopped ? never : engines_[engine].next);
}

void Network::poke(Driven& driven) {
  const auto found = engine_of_.find(&driven);
  if (found == engine_of_.end()) return;
  Engine& engine = engines_[found->second];
  if (engine.next <= now_) return;
  engine.next = now_;
  plan(found->second);
}

void Network::wake(uint32_t place) {
  for (const uint32_t index : places_[place].engines) {
    Engine& engine = engines_[index];
    // Several packets wake it once.
    if (engine.next <= now_ + engine.most_late) continue;
    engine.next = now_ + late(engine);
    plan(index);
  }
}

void Network::stop(const Endpoint& at, bool stopped) {
  const uint32_t place = find(at);
  if (place == none) return;
  for (const uint32_t index : places_[place].engines) {
    engines_[index].stopped = stopped;
    plan(index);
  }
}

void Network::run(uint32_t index) {
  Driven* const driven = engines_[index].driven;
  const Time wanted = driven->pass(now_);
  // The pass may have detached the engine.
  Engine& engine = engines_[index];
  if (engine.driven != driven) return;
  // An engine that has more to do keeps its processor.
  const bool sleeps = wanted > now_ + pass_cost && wanted != never;
  engine.next = std::max(wanted, now_ + pass_cost);
  if (sleeps) engine.next += late(engine);
  plan(index);
}

// ---- time

Time Network::next_event() const {
  Time next = std::min(events_.empty() ? never : events_.top().at, wakes_.next());
  if (switches_ != nullptr) next = std::min(next, switches_->next_event());
  return next;
}

void Network::advance(Time to) {
  now_ = std::max(now_, to);
  if (switches_ == nullptr) return;
  fabric::Packet packet;
  while (switches_->next(now_, packet)) {
    const auto slot = static_cast<uint32_t>(packet.handle);
    Packet& header = headers_[slot];
    header.ecn = packet.ecn;
    header.switch_queue = packet.signal.switch_queue;
    if (signal_of<congestion::Signal>(header.cci, 0)) header.cci = cci_with(packet.signal);
    deliver(slot);
  }
  while (switches_->take_lost(packet)) put_back(static_cast<uint32_t>(packet.handle));
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
  while (wakes_.next() <= now_) run(wakes_.first());
  return true;
}

// The engine of a rung port runs after the impairment's delay, as if its processor were busy.
void Network::hear_bells() {
  for (uint32_t i = 0; i < clocked_ports_.size(); ++i) {
    if (clocked_ports_[i] == nullptr || !clocked_ports_[i]->was_rung()) continue;
    const Duration late = impairment.lateness(prng_) + least_delay;
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
    put_back(port.inbox_[port.inbox_first_]);
    port.inbox_first_ = (port.inbox_first_ + 1) % port.inbox_.size();
  }
}

void Network::add(ClockedPort& port) {
  port.index_ = static_cast<uint32_t>(clocked_ports_.size());
  clocked_ports_.push_back(&port);
}

void Network::remove(ClockedPort& port) { clocked_ports_[port.index_] = nullptr; }

void Network::cut(const Endpoint& from, const Endpoint& to, bool severed_now, size_t longest) {
  std::erase_if(cuts_, [&](const Cut& cut) { return cut.from == from && cut.to == to; });
  if (severed_now) cuts_.push_back({from, to, longest});
}

void Network::kill(const Endpoint& at) {
  for (ClockedPort* port : clocked_ports_) {
    if (port != nullptr && port->facts().self == at) port->abandon();
  }
  Place& place = places_[place_of(at)];
  place.dead = true;
  if (place.port == nullptr) return;
  // Releases the packets in its inbox, which no engine will receive.
  std::array<RxFrame, 1> frame;
  while (place.port->receive(frame, now_) > 0) place.port->release(frame);
}

bool Network::severed(uint32_t from, uint32_t to, size_t bytes) const {
  if (places_[from].dead || (to != none && places_[to].dead)) return true;
  if (cuts_.empty() || to == none) return false;
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    return cut.from == places_[from].at && cut.to == places_[to].at && bytes > cut.longest;
  });
}

void Network::transmit(Port& from, const TxFrame& frame) {
  ++sent_;
  const size_t bytes = frame.bytes();
  URMA_ASSERT(bytes <= packet_capacity, "no packet is larger than the largest MTU and its headers");
  // A device does not send what it held for a killed process, whose memory no longer exists.
  if (places_[from.place_].dead) return;
  if (on_leave) {
    leaving_.resize(bytes);
    flatten(frame, leaving_.data());
    on_leave(from.facts_.self, leaving_);
  }
  const uint32_t to = find(frame.to);
  if (bytes > largest_packet || severed(from.place_, to, bytes)) return;
  const auto beginning = beginning_of(frame);
  const Impairment::Fate first = from.line_.decide(from.impairment_, beginning, bytes, now_, prng_);
  for (const Impairment::Copy& port_copy : std::span(first.copies).first(first.count)) {
    const Impairment::Fate second = from.wire_.decide(impairment, beginning, bytes, now_, prng_);
    for (const Impairment::Copy& wire_copy : std::span(second.copies).first(second.count)) {
      if (free_.empty()) {
        ++overflowed_;
        return;
      }
      const uint32_t packet = free_.back();
      free_.pop_back();
      const bool corrupt = port_copy.corrupt || wire_copy.corrupt;
      headers_[packet] = {.from = from.facts_.self,
                          .to = frame.to,
                          .from_place = from.place_,
                          .to_place = to,
                          .bytes = static_cast<uint32_t>(bytes),
                          .corrupt = corrupt,
                          .ecn = second.arriving(first.arriving(frame.ecn)),
                          .cci = switches_ != nullptr ? frame.cci : uint16_t{0}};
      flatten(frame, bytes_of(packet));
      if (port_copy.corrupt) Impairment::flip_bits({bytes_of(packet), bytes}, prng_);
      if (wire_copy.corrupt) Impairment::flip_bits({bytes_of(packet), bytes}, prng_);
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
  const Packet& header = headers_[packet];
  const uint32_t to = header.to_place == none ? none : places_[header.to_place].host;
  if (to == none) return put_back(packet);
  switches_->send(
      places_[header.from_place].host, to,
      {.bytes = header.bytes,
       .lbf = lbf_of({bytes_of(packet), header.bytes}),
       .signal = signal_of<congestion::Signal>(header.cci, 0).value_or(congestion::Signal()),
       .ecn = header.ecn,
       .handle = packet});
}

void Network::deliver(uint32_t packet) {
  Packet& header = headers_[packet];
  if (header.to_place == none) header.to_place = find(header.to);
  Port* const port = header.to_place == none ? nullptr : places_[header.to_place].port;
  const bool room = port != nullptr && !severed(header.from_place, header.to_place, header.bytes) &&
                    port->inbox_count_ < port->inbox_.size() &&
                    port->inbox_bytes_ + header.bytes <= port->settings_.buffer_bytes;
  if (!room) return put_back(packet);
  corrupted_ += header.corrupt;
  mix(trace_hash_, &header.ecn, sizeof header.ecn);
  // Only the transport header: behind it are addresses, which differ from run to run.
  trace(header.from, header.to, header.bytes,
        {bytes_of(packet), std::min<size_t>(header.bytes, 16)});
  port->inbox_[(port->inbox_first_ + port->inbox_count_++) % port->inbox_.size()] = packet;
  port->inbox_bytes_ += header.bytes;
  wake(header.to_place);
}

// Includes only the last bytes of addresses: the others may be random, whatever the seed.
void Network::trace(const Endpoint& from, const Endpoint& to, uint32_t length,
                    std::span<const std::byte> bytes) {
  const int64_t when = now_.time_since_epoch().count();
  mix(trace_hash_, &when, sizeof when);
  for (const Endpoint* end : {&from, &to}) mix(trace_hash_, end->address.bytes.data() + 14, 2);
  mix(trace_hash_, &length, sizeof length);
  mix(trace_hash_, bytes.data(), bytes.size());
}

// ---- a port

Port::Port(std::shared_ptr<Network> network, const Settings& settings)
    : network_(std::move(network)),
      settings_(settings),
      impairment_(settings.impairment),
      held_(frame_count, settings.lateness),
      inbox_(16 * 1024) {
  if (network_->switches() == nullptr) return;
  // The cable of the host has these.
  impairment_.bits_per_second = 0;
  impairment_.mark_bytes = 0;
  impairment_.delay = {};
}

Result<std::unique_ptr<PacketPort>> Port::open(const std::shared_ptr<Network>& network,
                                               const Settings& settings) {
  if (settings.switches && !network->use_switches(*settings.switches)) {
    return Error{Status::invalid_argument,
                 "sim: this network has devices and no switch. Fix: give topology=star to the "
                 "first device that is opened"};
  }
  const Switches* const switches = network->switches();
  if (switches != nullptr && packet_bytes(settings.mtu) > switches->settings().packet_bytes) {
    return Error{Status::invalid_argument,
                 "sim: the switches of this network forward no packets with mtu=" +
                     std::to_string(settings.mtu) +
                     ", because their first device has a smaller mtu. Fix: give each device the "
                     "mtu of the first one"};
  }
  std::unique_ptr<Port> port(new Port(network, settings));
  Status status = Status::ok;
  const Endpoint self = network->add(*port, settings.address, status);
  if (status == Status::no_resources) {
    return Error{status, "sim: the topology of this network has " +
                             std::to_string(switches->hosts()) +
                             " hosts, and had as many addresses. Fix: open devices at earlier "
                             "addresses again, by address=, or give the first device a larger "
                             "topology"};
  }
  if (status != Status::ok) {
    return Error{status, "sim: another port of this network has the address " +
                             to_string(settings.address) + ". Fix: give each another address="};
  }
  port->facts_ = {.self = self,
                  .eid = self.address,
                  .mtu = settings.mtu,
                  .buffer_bytes = settings.buffer_bytes,
                  .reorders = settings.impairment.reorders(),
                  .carries = {.ecn = true, .cci = switches != nullptr, .lbf = switches != nullptr},
                  .scheduling_delay = settings.scheduling_delay,
                  .description = "simulated network, virtual time",
                  .settings = settings.options};
  for (const Setting& setting : std::initializer_list<Setting>{
           {"address", to_string(self),
            settings.address == Eid{} ? Origin::drawn : Origin::device_string,
            settings.address == Eid{} ? "the next free one of this network" : "",
            "where devices of this process reach this device"},
           {"eid", to_string(self.address), Origin::driver, "the address",
            "the identity of this device"},
           {"mtu", size_text(settings.mtu), Origin::driver, "as sim.mtu says",
            "largest payload of a packet, in bytes"},
           {"receive_buffer", size_text(settings.buffer_bytes), Origin::driver,
            "as sim.buffer says", "the most bytes that wait for this device"}}) {
    port->facts_.settings.push_back(setting);
  }
  return std::unique_ptr<PacketPort>(std::move(port));
}

Port::~Port() {
  if (network_ && index_ < network_->ports_.size() && network_->ports_[index_] == this) {
    network_->remove(*this);
  }
}

size_t Port::lend(std::span<TxFrame*> frames) { return pool_.lend(frames); }

void Port::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

size_t Port::send(std::span<TxFrame* const> frames, Time) {
  ++counters_.calls_sent;
  size_t taken = 0;
  for (; taken < frames.size() && !held_.full(); ++taken) {
    held_.take(frames[taken], network_->now(), network_->prng_);
  }
  counters_.frames_sent += taken;
  run_device();
  return taken;
}

// Reads and settles the frames that are due. Does not wake the engine, as a device that must be
// polled does not.
void Port::run_device() {
  const Time now = network_->now();
  if (planned_ <= now) planned_ = never;
  while (TxFrame* frame = held_.read(now)) network_->transmit(*this, *frame);
  while (TxFrame* frame = held_.settle(now)) pool_.take_back(frame);
  plan();
}

void Port::plan() {
  const Time next = held_.next();
  if (next >= planned_) return;
  planned_ = next;
  network_->run_port_at(*this, next);
}

size_t Port::receive(std::span<RxFrame> frames, Time) {
  size_t count = 0;
  while (count < frames.size() && inbox_count_ > 0) {
    const uint32_t packet = inbox_[inbox_first_];
    inbox_first_ = (inbox_first_ + 1) % inbox_.size();
    --inbox_count_;
    const auto& header = network_->headers_[packet];
    inbox_bytes_ -= header.bytes;
    frames[count++] = {.data = network_->bytes_of(packet),
                       .bytes = header.bytes,
                       .cookie = packet,
                       .from = &header.from,
                       .ecn = header.ecn,
                       .cci = header.cci,
                       .switch_queue = header.switch_queue};
  }
  counters_.frames_received += count;
  counters_.calls_received += count > 0;
  return count;
}

void Port::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) network_->put_back(frame.cookie);
}

}  // namespace urma::drivers::sim
