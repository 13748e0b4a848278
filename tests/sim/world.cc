// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <algorithm>

#include "tests/descriptor.h"

namespace urma::test {
namespace {

using Kind = WorkRecord::Kind;

// A window of this size has enough rings for all pairs, and for the rings of dead devices that
// others have not released yet.
constexpr uint64_t many_rings = 128 << 20;

constexpr double take_back_chance = 0.05;  // for each act

// Returns the size of a window with room for one ring in each direction of each pair, and from each
// device to itself.
uint64_t least_window(uint64_t hosts) {
  using namespace drivers::cxl;
  uint64_t bytes = least_window_bytes;
  while (Parts::of(bytes).rings < hosts * hosts) bytes += page_bytes;
  return bytes;
}

Eid address_of(uint32_t host, const WorldOptions& options) {
  if (options.rings) return ipv4(10, 9, 0, static_cast<uint8_t>(host + 1));
  Eid eid;
  eid.bytes[0] = std::byte{0xfd};
  eid.bytes[15] = static_cast<std::byte>(host + 1);
  return eid;
}

std::string lateness_options(const WorldOptions& options) {
  const auto ns = [](Duration time) { return std::to_string(time.count()) + "ns"; };
  return "hold=" + ns(options.hold) + "&hold_jitter=" + ns(options.hold_jitter) +
         "&settle=" + ns(options.settle) + "&settle_jitter=" + ns(options.settle_jitter) +
         "&ring=" + std::to_string(options.ring);
}

}  // namespace

World::World(uint64_t seed, const WorldOptions& options)
    : seed_(seed),
      options_(options),
      prng_(seed ^ 0x776f726c64),
      name_("world-" + std::to_string(seed)),
      network_(drivers::sim::Network::named(name_, seed)),
      hosts_(options.hosts) {
  network_->faults.impairment = options.impairment;
  network_->faults.pairs = {.failed = options.pair_fails,
                            .late = options.pair_late,
                            .late_up_to = std::chrono::milliseconds(20)};
  network_->faults.on_leave = [this](const Endpoint&, std::span<const std::byte> packet) {
    leaked_ = leaked_ || has_scribble(packet);
  };
  if (options.window) {
    window_.emplace("world-" + std::to_string(seed));
    window_->write("");
    window_->cut(options.scarce ? least_window(options.hosts) : many_rings);
  }
  for (uint32_t i = 0; i < options.hosts; ++i) {
    hosts_[i].address = address_of(i, options);
    hosts_[i].imports.assign(options.hosts, std::vector<Host::Import>(options.jetties));
    start(i);
  }
}

World::~World() {
  network_->faults.on_leave = nullptr;
  // After a violation works are still in flight: they must not touch memory that is destroyed with
  // the world.
  for (Host& host : hosts_) {
    if (host.device) network_->kill(host.device->endpoint());
  }
  for (Host& host : hosts_) host.close();
}

// ---- hosts

// Returns the options of a host's window. Each incarnation has a seed of its own for the double
// that acts as caches, so each may evict lines differently.
std::string World::window_options(const Host& host) const {
  if (options_.handed) return "?share=segment";
  if (!options_.acted) return "";
  const auto index = static_cast<uint64_t>(&host - hosts_.data());
  const uint64_t seed = seed_ << 20 | memories_.size() << 8 | index;
  return "?coherent=no&double=" + std::to_string(seed + 1);
}

std::string World::device_of(const Host& host) {
  if (window_) return "sim(net=" + name_ + "):" + window_->device(window_options(host));
  if (options_.rings) return ring_device_of(host);
  const bool rdma = options_.rdma > 0 && prng_.chance(options_.rdma);
  return "sim:" + name_ + "?address=" + to_string(host.address) +
         "&mtu=" + std::to_string(options_.mtu) + "&" + lateness_options(options_) +
         (rdma ? "&rdma=any" : "");
}

std::string World::ring_device_of(const Host& host) const {
  constexpr uint32_t most_header_bytes = 256;
  const drivers::Impairment& faults = options_.impairment;
  std::string lateness = lateness_options(options_);
  std::ranges::replace(lateness, '&', ',');
  const std::string wrapper = "fault(dup=" + std::to_string(faults.duplicate) +
                              ",reorder=" + std::to_string(faults.reorder) +
                              ",corrupt=" + std::to_string(faults.corrupt) + "," + lateness +
                              ",seed=" + std::to_string(seed_ << 10 | memories_.size()) + "):";
  return "sim(net=" + name_ + "):" + (options_.impaired_by_wrapper() ? wrapper : "") +
         "dpdk:net_ring" + std::to_string(&host - hosts_.data()) + ",pair=" + name_ +
         "?ip=" + to_string(host.address) +
         "/24&mtu=" + std::to_string(options_.mtu + most_header_bytes) +
         "&gather=" + std::string(options_.gather);
}

void World::start(uint32_t index) {
  Host& host = hosts_[index];
  // Some hosts poll their engine, so that fast paths are used; others are served by a thread.
  host.inlined = prng_.chance(0.5);
  DeviceOptions device{.threads = host.inlined ? Threads::inlined : Threads::served,
                       .operation_timeout = options_.operation_timeout};
  if (options_.idle_timeout > Duration{}) device.idle_timeout = options_.idle_timeout;
  if (options_.modes) {
    const NamedRetransmissions named = named_retransmissions();
    const auto count = static_cast<uint64_t>(named.last - named.first);
    device.retransmission = named.first[prng_.below(count)].mode;
  }
  host.device.emplace(open(device_of(host), device).value());
  if (options_.mapped) {
    host.segment.emplace(host.device->allocate(memory_bytes).value());
    host.memory = std::make_shared<Memory>(host.segment->bytes());
  } else {
    host.memory = std::make_shared<Memory>(memory_bytes);
    host.segment.emplace(host.device->register_memory(host.memory->bytes()).value());
  }
  memories_.push_back(host.memory);
  host.words.assign(options_.works + options_.hosts * options_.jetties + 1, 0);
  host.word_segment.emplace(
      host.device->register_memory(std::as_writable_bytes(std::span(host.words))).value());
  host.not_notified.clear();
  make_counter(host);
  host.lent.resize(lent_bytes);
  lend(host);
  make_queues(host);
}

// Registers memory that others may read until it is revoked.
void World::lend(Host& host) {
  std::ranges::fill(host.lent, lent_byte);
  host.lent_segment.emplace(
      host.device->register_memory(host.lent, {.rights = Rights::read}).value());
  host.lent_descriptor = host.lent_segment->descriptor();
}

// Revokes that memory. From here on no application and no device reads it: its present contents
// must never be sent.
void World::take_back(uint32_t index) {
  Host& host = hosts_[index];
  if (host.stopped) return;
  host.lent_segment->unregister().value();
  std::ranges::fill(host.lent, scribble);
  advance(Duration(static_cast<int64_t>(prng_.below(1'000'000))));
  lend(host);
}

void World::make_counter(Host& host) {
  const SegmentOptions options{
      .rights = Rights::read | Rights::atomic,
      .atomics = prng_.chance(0.5) ? AtomicDomain::processor : AtomicDomain::engine};
  host.own_word = 0;
  if (options_.mapped) {
    host.counter_segment.emplace(host.device->allocate(sizeof(uint64_t), options).value());
    host.counted = reinterpret_cast<uint64_t*>(host.counter_segment->bytes().data());
  } else {
    host.counted = &host.own_word;
    host.counter_segment.emplace(
        host.device->register_memory(std::as_writable_bytes(std::span(host.counted, 1)), options)
            .value());
  }
  host.counter = std::make_shared<Counter>();
}

void World::make_queues(Host& host) {
  host.jetties.clear();
  host.jetties.resize(options_.jetties);
  host.descriptors.clear();
  const bool shared = options_.shared > 0 && prng_.chance(options_.shared);
  if (shared) {
    host.jfr.emplace(host.device->jfr({.receives = options_.receives}).value());
    host.receive_buffers.assign(options_.receives, std::vector<std::byte>(message_bytes));
    post_receives(*host.jfr, host.receive_buffers);
  }
  for (HostJetty& jetty : host.jetties) {
    jetty.jetty.emplace(host.device
                            ->jetty({.berths = options_.berths,
                                     .receives = shared ? 0 : options_.receives,
                                     .receiver_timeout = std::chrono::seconds(3),
                                     .receives_from = shared ? &*host.jfr : nullptr})
                            .value());
    if (!shared) {
      jetty.receive_buffers.assign(options_.receives, std::vector<std::byte>(message_bytes));
    }
    post_receives(*jetty.jetty, jetty.receive_buffers);
    host.descriptors.push_back(descriptor_of(*host.segment, *jetty.jetty));
  }
  if (options_.grouped == 0) return;
  const auto policy = static_cast<GroupPolicy>(prng_.below(3));
  host.group.emplace(host.device->jetty_group({.policy = policy}).value());
  for (const HostJetty& jetty : host.jetties) host.group->add(*jetty.jetty).value();
}

// Ends the process: it sends nothing more, its works have no owner, and its memory must not change.
void World::kill(uint32_t index) {
  Host& host = hosts_[index];
  const bool leaves = options_.leave > 0 && prng_.chance(options_.leave);
  host.left.push_back(leaves);
  check_counter(index);
  leaves ? host.device->close() : network_->kill(host.device->endpoint());
  abandon_works(index, leaves);
  // This is done only in half of the cases, because memory that was overwritten can no longer be
  // checked.
  if (leaves && !options_.mapped && prng_.chance(0.5)) {
    host.memory->overwrite(scribble);
    std::ranges::fill(host.lent, scribble);
  } else {
    host.memory->freeze();
  }
  host.close();
  ++host.life;
}

// `ended` says that a close has ended the works, so the application may use their buffers again.
void World::abandon_works(uint32_t index, bool ended) {
  const Host& host = hosts_[index];
  for (WorkRecord& work : works_) {
    if (work.host != index || work.life != host.life || work.completed) continue;
    work.completed = work.abandoned = true;
    if (ended) std::ranges::fill(work.buffer, scribble);
    if (work.kind == Kind::add) work.counter->may_have_added(work.number);
    if (work.kind == Kind::read) work.memory->end_read(work.offset);
    if (changes_memory(work.kind)) work.memory->unknown(work.offset);
  }
}

void World::restart(uint32_t host) {
  go_on(host);
  kill(host);
  advance(
      Duration(static_cast<int64_t>(prng_.below(prng_.chance(0.3) ? 2'000'000'000 : 1'000'000))));
  start(host);
}

void World::stop(uint32_t index) {
  Host& host = hosts_[index];
  if (host.stopped) return;
  host.stopped = true;
  network_->stop(host.device->endpoint(), true);
  // Some stops are long enough for a silent channel to be declared dead, some for the works to time
  // out.
  const bool long_one = prng_.chance(0.2);
  const auto length = static_cast<int64_t>(prng_.below(long_one ? 5'000'000'000 : 5'000'000));
  stops_.push_back({network_->now() + Duration(length), index, long_one});
}

void World::go_on(uint32_t index) {
  Host& host = hosts_[index];
  if (!host.stopped) return;
  host.stopped = false;
  network_->stop(host.device->endpoint(), false);
  std::erase_if(stops_, [&](const Stop& stop) { return stop.host == index; });
}

template <class Queue>
void World::post_receives(Queue& queue, Buffers& buffers) {
  for (uint64_t tag = 0; tag < buffers.size(); ++tag) {
    if (!queue.receive(buffers[tag], tag))
      throw Violation("a receive is refused although slots are vacant");
  }
}

// ---- time

void World::advance(Duration by) {
  const Time until = network_->now() + by;
  while (network_->now() < until && network_->step(until)) {
    if (leaked_) throw Violation("no device sends memory that was returned to the application");
    // Only the application's polls run an inlined engine.
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      if (hosts_[host].inlined && prng_.chance(0.2)) poll(host);
    }
  }
  if (network_->now() < until) network_->step(until);
}

// Returns the time between two acts, which is 1000 times longer while a host is stopped or
// transfers are stuck for long.
Duration World::pace() {
  const Duration usual(options_.slowness * static_cast<int64_t>(prng_.between(1'000, 100'000)));
  const bool stuck = stuck_until_ - network_->now() > std::chrono::milliseconds(5);
  return stuck || std::ranges::any_of(stops_, &Stop::long_one) ? 1000 * usual : usual;
}

void World::run() {
  // A slow world may need more rounds for all its works, but not for one more.
  constexpr uint32_t patience = 200'000;
  uint32_t rounds_without_work = 0;
  while (works_.size() < options_.works) {
    const size_t before = works_.size();
    act();
    advance(pace());
    rounds_without_work = works_.size() > before ? 0 : rounds_without_work + 1;
    if (rounds_without_work > patience) throw Violation("the world makes no progress");
  }
  end_peacefully();
  check_end();
}

void World::act() {
  make_trouble();
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].stopped) continue;
    if (!prng_.chance(options_.lazy)) poll(host);
    for (uint64_t posts = prng_.below(6); posts > 0; --posts) post_something(host);
  }
}

void World::make_trouble() {
  end_trouble();
  const auto any = [&] { return static_cast<uint32_t>(prng_.below(hosts_.size())); };
  constexpr size_t most_cuts = 2;
  if (healings_.size() < most_cuts && prng_.chance(options_.partition)) cut_something();
  if (prng_.chance(options_.restart)) restart(any());
  if (prng_.chance(options_.flush)) flush(any());
  if (options_.lend > 0 && prng_.chance(take_back_chance)) take_back(any());
  if (options_.stop > 0 && prng_.chance(options_.stop)) stop(any());
  if (options_.rdma > 0 && prng_.chance(options_.stick)) stick();
}

// Ends the cuts and stops that have lasted long enough.
void World::end_trouble() {
  const Time now = network_->now();
  std::erase_if(healings_, [&](const Healing& healing) {
    if (healing.at > now) return false;
    network_->faults.cut(healing.from, healing.to, false);
    return true;
  });
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    const bool over = std::ranges::any_of(
        stops_, [&](const Stop& stop) { return stop.host == host && stop.until <= now; });
    if (over) go_on(host);
  }
  network_->faults.pairs.stuck = now < stuck_until_;
}

void World::cut_something() {
  const auto any = [&] { return static_cast<uint32_t>(prng_.below(hosts_.size())); };
  const Endpoint from{hosts_[any()].address, ub_port};
  const Endpoint to{hosts_[any()].address, ub_port};
  network_->faults.cut(from, to, true);
  const auto length =
      static_cast<int64_t>(prng_.below(prng_.chance(0.05) ? 3'000'000'000 : 5'000'000));
  healings_.push_back({network_->now() + Duration(length), from, to});
}

// Lets no transfer of a pair arrive for a while, perhaps until the works time out.
void World::stick() {
  const auto length =
      static_cast<int64_t>(prng_.below(prng_.chance(0.1) ? 3'000'000'000 : 5'000'000));
  stuck_until_ = std::max(stuck_until_, network_->now() + Duration(length));
}

void World::flush(uint32_t host) {
  const auto which = static_cast<uint32_t>(prng_.below(options_.jetties));
  if (hosts_[host].stopped) return;
  HostJetty& jetty = hosts_[host].jetties[which];
  jetty.flushing = true;
  jetty.jetty->flush().value();
  poll(host);
  jetty.flushing = false;
  // All works have ended, so unsignalled ones that did not fail have succeeded.
  imply(host, which, works_.size());
  if (jetty.outstanding != 0) throw Violation("a flush leaves no work outstanding");
  jetty.jetty->reset().value();
  post_receives(*jetty.jetty, jetty.receive_buffers);
}

// ---- the end

uint64_t World::outstanding() const {
  return static_cast<uint64_t>(std::count_if(
      works_.begin(), works_.end(), [](const WorkRecord& work) { return !work.completed; }));
}

void World::end_peacefully() {
  network_->faults.impairment = {.delay = options_.impairment.delay};
  network_->faults.pairs = {};
  for (const Healing& healing : healings_) network_->faults.cut(healing.from, healing.to, false);
  healings_.clear();
  for (uint32_t host = 0; host < hosts_.size(); ++host) go_on(host);
  // One more work of each Jetty implies its last unsignalled works.
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    for (uint32_t j = 0; j < options_.jetties; ++j) closers_.push_back({host, j});
  }
  // A work ends within its own time-out and that of a receiver. A work behind a fence begins when
  // those before it have ended.
  const Duration longest = 3 * options_.operation_timeout + std::chrono::seconds(5);
  Time until = network_->now() + longest;
  uint64_t completed = completed_;
  while ((outstanding() > 0 || !closers_.empty()) && network_->now() < until) {
    if (std::exchange(completed, completed_) != completed_) until = network_->now() + longest;
    for (uint32_t host = 0; host < hosts_.size(); ++host) poll(host);
    post_closers();
    advance(std::chrono::microseconds(500));
  }
  for (const WorkRecord& work : works_) {
    if (!work.completed) fail(work, "after all cuts and stops have ended, every work ends in time");
  }
  advance(std::chrono::milliseconds(50));
  for (uint32_t host = 0; host < hosts_.size(); ++host) poll(host);
}

// Checks that each partner of a dead device has noticed its end, and has released the shared ring.
void World::check_rings() {
  Intruder shared(*window_);
  for (uint32_t number = 0; number < shared.rings(); ++number) {
    const drivers::cxl::RingRecord& record = shared.record(number);
    if (record.serial == 0) continue;
    const bool sends = shared.slot(record.from).record.generation == record.from_generation;
    const bool receives = shared.slot(record.to).record.generation == record.to_generation;
    if (sends == receives) continue;
    const drivers::cxl::RingControl& control = shared.ring(number).control;
    if ((sends ? control.sender.let_go : control.receiver.let_go) != record.serial) {
      throw Violation("a device releases the ring that it shared with a dead device");
    }
  }
}

}  // namespace urma::test
