#include "drivers/sim/network.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/assert.h"
#include "drivers/sim/clocked_port.h"

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

bool Network::use_star() {
  if (star_ != nullptr) return true;
  if (std::ranges::any_of(ports_, [](const Port* port) { return port != nullptr; })) return false;
  star_ = std::make_unique<Star>();
  return true;
}

void Network::attach(Driven& driven, const Endpoint& at) {
  auto engine = std::ranges::find(engines_, &driven, &Engine::driven);
  if (engine == engines_.end()) {
    engine = engines_.insert(engine, {.driven = &driven, .at = {}, .next = now_});
  }
  engine->at.push_back(at);
  for (const Port* port : ports_) {
    if (port == nullptr || !(port->facts_.self == at)) continue;
    engine->most_late = std::max(engine->most_late, port->settings_.scheduling_delay);
  }
}

// Draws how much later than it should an engine runs.
Duration Network::late(const Engine& engine) {
  if (engine.most_late == Duration{}) return {};
  return Duration(
      static_cast<int64_t>(prng_.below(static_cast<uint64_t>(engine.most_late.count()))));
}

void Network::detach(Driven& driven) {
  std::erase_if(engines_, [&](const Engine& engine) { return engine.driven == &driven; });
}

void Network::poke(Driven& driven) {
  for (Engine& engine : engines_) {
    if (engine.driven == &driven) engine.next = std::min(engine.next, now_);
  }
}

void Network::wake(const Endpoint& at) {
  for (Engine& engine : engines_) {
    // Several packets wake it once.
    if (engine.next <= now_ + engine.most_late || !engine.lives_at(at)) continue;
    engine.next = now_ + late(engine);
  }
}

void Network::stop(const Endpoint& at, bool stopped) {
  for (Engine& engine : engines_) {
    if (engine.lives_at(at)) engine.stopped = stopped;
  }
}

Time Network::next_event() const {
  Time next = events_.empty() ? never : events_.top().at;
  for (const Engine& engine : engines_) {
    if (!engine.stopped) next = std::min(next, engine.next);
  }
  return next;
}

bool Network::step(Time until) {
  hear_bells();
  const Time next = next_event();
  if (next > until) {
    now_ = std::max(now_, until);
    return next != never;
  }
  now_ = std::max(now_, next);
  while (!events_.empty() && events_.top().at <= now_) {
    const Event event = events_.top();
    events_.pop();
    handle(event);
  }
  // The loop uses an index, because a pass may detach an engine.
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (engines_[i].stopped || engines_[i].next > now_) continue;
    Driven* driven = engines_[i].driven;
    const Time wanted = driven->pass(now_);
    if (i >= engines_.size() || engines_[i].driven != driven) continue;
    // An engine that has more to do keeps its processor.
    const bool sleeps = wanted > now_ + pass_cost && wanted != never;
    engines_[i].next = std::max(wanted, now_ + pass_cost);
    if (sleeps) engines_[i].next += late(engines_[i]);
  }
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
    return std::any_of(ports_.begin(), ports_.end(), [&](const Port* other) {
      return other != nullptr && other->facts_.self == endpoint;
    });
  };
  if (wanted == Eid{}) {
    do at.address = address_number(next_address_++);
    while (taken(at));
  } else if (taken(at)) {
    status = Status::address_in_use;
    return at;
  }
  if (star_ != nullptr && !star_->connect(at, port.settings_.impairment)) {
    status = Status::no_resources;
    return at;
  }
  std::erase(dead_, at);
  port.index_ = static_cast<uint32_t>(ports_.size());
  ports_.push_back(&port);
  return at;
}

void Network::remove(Port& port) {
  ports_[port.index_] = nullptr;
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
  dead_.push_back(at);
  for (Port* port : ports_) {
    if (port == nullptr || !(port->facts_.self == at)) continue;
    // Releases the packets in its inbox, which no engine will receive.
    std::array<RxFrame, 1> frame;
    while (port->receive(frame, now_) > 0) port->release(frame);
  }
}

bool Network::dead(const Endpoint& at) const {
  return std::find(dead_.begin(), dead_.end(), at) != dead_.end();
}

bool Network::severed(const Endpoint& from, const Endpoint& to, size_t bytes) const {
  if (dead(from) || dead(to)) return true;
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    return cut.from == from && cut.to == to && bytes > cut.longest;
  });
}

void Network::transmit(Port& from, const TxFrame& frame) {
  ++sent_;
  const size_t bytes = frame.bytes();
  URMA_ASSERT(bytes <= packet_capacity, "no packet is larger than the largest MTU and its headers");
  // A device does not send what it held for a killed process, whose memory no longer exists.
  if (dead(from.facts_.self)) return;
  if (on_leave) {
    leaving_.resize(bytes);
    flatten(frame, leaving_.data());
    on_leave(from.facts_.self, leaving_);
  }
  if (bytes > largest_packet || severed(from.facts_.self, frame.to, bytes)) return;
  const auto beginning = beginning_of(frame);
  const Impairment::Fate first =
      from.line_.decide(from.settings_.impairment, beginning, bytes, now_, prng_);
  for (const Impairment::Copy& port_copy : std::span(first.copies).first(first.count)) {
    const Impairment::Fate second = from.wire_.decide(impairment, beginning, bytes, now_, prng_);
    for (const Impairment::Copy& wire_copy : std::span(second.copies).first(second.count)) {
      if (free_.empty()) return;
      const uint32_t packet = free_.back();
      free_.pop_back();
      const bool corrupt = port_copy.corrupt || wire_copy.corrupt;
      headers_[packet] = {from.facts_.self, frame.to, static_cast<uint32_t>(bytes), corrupt,
                          second.arriving(first.arriving(frame.ecn))};
      flatten(frame, bytes_of(packet));
      if (port_copy.corrupt) Impairment::flip_bits({bytes_of(packet), bytes}, prng_);
      if (wire_copy.corrupt) Impairment::flip_bits({bytes_of(packet), bytes}, prng_);
      const Duration delay = port_copy.delay + wire_copy.delay + least_delay;
      const Happens what = star_ ? Happens::packet_at_switch : Happens::packet_arrives;
      events_.push({now_ + delay, order_++, what, packet});
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
    case Happens::packet_at_switch:
      return forward(event.index);
    case Happens::port_is_due:
      if (ports_[event.index] != nullptr) ports_[event.index]->run_device();
      return;
    case Happens::owner_wakes:
      if (clocked_ports_[event.index] != nullptr) wake(clocked_ports_[event.index]->facts().self);
      return;
  }
}

void Network::forward(uint32_t packet) {
  Packet& header = headers_[packet];
  const Star::Passage passage = star_->pass(header.from, header.to, header.bytes, header.ecn, now_);
  if (passage.arrives == never) return put_back(packet);
  header.ecn = passage.ecn;
  events_.push({passage.arrives + least_delay, order_++, Happens::packet_arrives, packet});
}

void Network::deliver(uint32_t packet) {
  const Packet& header = headers_[packet];
  for (Port* port : ports_) {
    if (port == nullptr || !(port->facts_.self == header.to)) continue;
    if (severed(header.from, header.to, header.bytes)) break;
    const bool room = port->inbox_count_ < port->inbox_.size() &&
                      port->inbox_bytes_ + header.bytes <= port->settings_.buffer_bytes;
    if (!room) break;
    corrupted_ += header.corrupt;
    mix(trace_hash_, &header.ecn, sizeof header.ecn);
    // Only the transport header: behind it are addresses, which differ from run to run.
    trace(header.from, header.to, header.bytes,
          {bytes_of(packet), std::min<size_t>(header.bytes, 16)});
    port->inbox_[(port->inbox_first_ + port->inbox_count_++) % port->inbox_.size()] = packet;
    port->inbox_bytes_ += header.bytes;
    wake(header.to);
    return;
  }
  put_back(packet);
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
      held_(frame_count, settings.lateness),
      inbox_(16 * 1024) {}

Result<std::unique_ptr<PacketPort>> Port::open(const std::shared_ptr<Network>& network,
                                               const Settings& settings) {
  if (settings.star && !network->use_star()) {
    return Error{Status::invalid_argument,
                 "sim: this network has devices and no switch. Fix: give topology=star to the "
                 "first device that is opened"};
  }
  std::unique_ptr<Port> port(new Port(network, settings));
  Status status = Status::ok;
  const Endpoint self = network->add(*port, settings.address, status);
  if (status == Status::no_resources) {
    return Error{status, "sim: the switch of this network has " + std::to_string(Star::most_ports) +
                             " ports, and had as many addresses. Fix: open devices at earlier "
                             "addresses again, by address="};
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
                  .carries = {.ecn = true},
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
                       .ecn = header.ecn};
  }
  counters_.frames_received += count;
  counters_.calls_received += count > 0;
  return count;
}

void Port::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) network_->put_back(frame.cookie);
}

}  // namespace urma::drivers::sim
