// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_sim/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/interrupt.h"

namespace urma::apps::simulation {
namespace {

using namespace std::chrono_literals;

constexpr const char* network_name = "urma_sim";
// The bytes that a flow keeps outstanding: more than a line and its queue hold.
constexpr uint64_t outstanding_bytes = uint64_t{8} << 20;
constexpr uint64_t most_berths = 512, least_berths = 8;
constexpr Duration patience = 1s;
// At 100 Gb/s the queue is sampled so often; packets do not arrive together at such times.
constexpr Duration between_samples = 101ns;

uint32_t berths_for(uint64_t message_bytes) {
  return static_cast<uint32_t>(
      std::clamp(outstanding_bytes / message_bytes, least_berths, most_berths));
}

uint64_t largest_message(const Plan& plan, const Choice& choice) {
  uint64_t most = choice.message_bytes;
  for (const Flow& flow : plan.flows) most = std::max(most, flow.message_bytes(choice));
  return most;
}

std::string device_of(const HostCable& cable) {
  return fmt::format("sim:{}?rate={}Kbit&delay={}ns&queue=4M&mtu={}&sl={}", network_name,
                     cable.bytes_per_second / 125, cable.delay.count(), mtu, cable.lane);
}

}  // namespace

World::World(const Plan& plan, const Choice& choice)
    : plan_(plan),
      choice_(choice),
      data_(largest_message(plan, choice)),
      network_(drivers::sim::Network::named(network_name, choice.seed)),
      progress_(plan.flows.size()) {
  network_->use_switches(plan.switches);
  const DeviceOptions options{.congestion = std::string(choice.cc), .observable = false};
  for (const HostCable& cable : plan.hosts) {
    Device device = must(open(device_of(cable), options), "opening a host");
    std::vector<std::byte> memory(data_.size());
    Segment segment = must(device.register_memory(memory), "registering memory");
    hosts_.push_back({std::move(device), std::move(memory), std::move(segment)});
  }
  for (const Flow& flow : plan.flows) {
    Device& from = hosts_[flow.from].device;
    Jetty jetty = must(from.jetty({.berths = berths_for(choice.message_bytes), .inline_bytes = 0}),
                       "making a Jetty");
    senders_.push_back({std::move(jetty), must(from.import(hosts_[flow.to].segment.descriptor()),
                                               "importing memory")});
  }
}

// One flow after the other, so that each measures its round trip without queues.
void World::connect() {
  for (Sender& sender : senders_) {
    const std::span<const std::byte> first = std::span(data_).first(1);
    if (sender.jetty.post(write(first, sender.target.segment)) != 1) {
      throw Failure(Exit::error, "connecting: a flow could not write. Fix: report this");
    }
    const auto ended = sender.jetty.wait(patience);
    if (ended.empty() || !ended[0].ok()) {
      throw Failure(Exit::error,
                    "connecting: a flow got no answer within 1 s of virtual time. Fix: give a "
                    "larger --rate, or fewer --senders");
    }
  }
  begun_ = now();
}

// Posts as much as there is room for.
void World::feed(uint32_t flow) {
  Progress& progress = progress_[flow];
  const Flow& planned = plan_.flows[flow];
  if (now() < begun_ + planned.start) return;
  if (progress.begun == never) progress.begun = now();
  Sender& sender = senders_[flow];
  const uint64_t bytes = planned.message_bytes(choice_);
  const auto work = write(std::span<const std::byte>(data_).first(bytes), sender.target.segment);
  if (planned.each > 0ns) {
    const auto times = static_cast<uint64_t>((now() - begun_ - planned.start) / planned.each + 1);
    while (progress.posted < times * bytes && sender.jetty.post(work) == 1) {
      progress.posted += bytes;
    }
    return;
  }
  while (choice_.flow_bytes == 0 || progress.posted < choice_.flow_bytes) {
    if (sender.jetty.post(work) != 1) return;
    progress.posted += choice_.message_bytes;
  }
}

// A host that leaves does so at once, with all that it has posted.
bool World::has_left(uint32_t flow) {
  const Flow& planned = plan_.flows[flow];
  if (planned.stop == Duration::max() || now() < begun_ + planned.stop) return false;
  network_->stop(hosts_[planned.from].device.endpoint(), true);
  progress_[flow].left = true;
  return true;
}

// All hosts are there, so one is unreachable only if its port lost all that came for a second.
Failure World::lost_flow(uint32_t flow, Status status) const {
  if (status != Status::peer_unreachable) return failed_work("a flow", status);
  return {Exit::error,
          fmt::format("host {}: its channel ended ({}) after {:.1f} s of virtual time, because "
                      "switches dropped too many packets. Fix: give fewer --senders, a larger "
                      "--rate or another --cc",
                      plan_.flows[flow].from, describe(status).name,
                      std::chrono::duration<double>(now() - begun_).count())};
}

void World::collect(uint32_t flow) {
  Progress& progress = progress_[flow];
  std::array<Completion, 64> ended;
  while (const size_t count = senders_[flow].jetty.poll(ended)) {
    for (const Completion& one : std::span(ended).first(count)) {
      if (!one.ok()) throw lost_flow(flow, one.status);
    }
    progress.delivered += count * plan_.flows[flow].message_bytes(choice_);
    if (choice_.flow_bytes > 0 && progress.delivered >= choice_.flow_bytes) {
      progress.finished = now();
    }
  }
}

// Runs until this time or the next event, and samples the queue at regular times.
void World::advance(Time until) {
  network_->step(std::min(until, next_sample_));
  if (now() < next_sample_) return;
  const Switches::Port port = bottleneck();
  port.at.settle(port.number, now());
  uint64_t bytes = 0;
  for (uint32_t lane = 0; lane < choice_.lanes; ++lane) {
    bytes += port.at.queue_bytes(port.number, lane);
  }
  queue_.add(bytes);
  next_sample_ = now() + choice_.stretched(between_samples);
}

Switches::Port World::bottleneck() {
  Switches& switches = *network_->switches();
  if (!plan_.trunk) return switches.port_to(plan_.observed);
  return {switches.network().switch_at(plan_.trunk->node), plan_.trunk->port};
}

// Looks at the flows eight times in a round trip and at least once in three packets' time; if there
// are many, less often, because each look takes time.
bool World::run(Duration time) {
  constexpr size_t many = 64;
  const Duration few = std::clamp<Duration>(choice_.rtt / 8, 100ns, choice_.stretched(1us));
  const auto each = few * static_cast<int64_t>(std::max<size_t>(senders_.size() / many, 1));
  const Time until = now() + time;
  while (now() < until) {
    for (uint32_t i = 0; i < senders_.size(); ++i) {
      if (has_left(i)) continue;
      collect(i);
      feed(i);
    }
    const Time next = std::min(until, now() + each);
    while (now() < next) advance(next);
    if (interrupted()) return false;
    if (choice_.flow_bytes > 0 && finished()) break;
  }
  return true;
}

bool World::finished() const {
  return std::ranges::none_of(progress_, [](const Progress& one) { return one.finished == never; });
}

// A host that has left does not answer, so its last number stays.
std::vector<uint64_t> World::acknowledged() {
  std::vector<uint64_t> bytes;
  for (uint32_t i = 0; i < progress_.size(); ++i) {
    Device& device = hosts_[plan_.flows[i].from].device;
    uint64_t& count = progress_[i].acknowledged;
    if (!progress_[i].left) count = must(device.stats(), "reading counters").acknowledged_bytes;
    bytes.push_back(count);
  }
  return bytes;
}

Statistics World::statistics() {
  Statistics all;
  for (Host& host : hosts_) {
    const Statistics one = must(host.device.stats(), "reading counters");
    all.packets_sent += one.packets_sent;
    all.retransmitted += one.retransmitted;
    all.packets_marked += one.packets_marked;
    all.acks_sent += one.acks_sent;
    all.retransmission_timeouts += one.retransmission_timeouts;
    all.notifications += one.notifications;
  }
  return all;
}

Setting World::control() {
  for (const Setting& setting : must(hosts_[plan_.flows[0].from].device.settings(), "settings")) {
    if (setting.name == "congestion") return setting;
  }
  return {};
}

}  // namespace urma::apps::simulation
