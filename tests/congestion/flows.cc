// SPDX-License-Identifier: Apache-2.0
#include "tests/congestion/flows.h"

#include <algorithm>
#include <utility>

#include "congestion/arithmetic.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::seconds;
using fabric::Network;
using fabric::Packet;
using fabric::Topology;

constexpr Duration between_samples = 101ns;
constexpr size_t samples_between_looks = 1024;
constexpr Duration between_notifications = 50us;
// Bits of a handle: an acknowledgement, and the flow above the packet's number.
constexpr uint64_t is_ack = uint64_t{1} << 63;
constexpr unsigned flow_shift = 40;
constexpr uint64_t number_mask = (uint64_t{1} << flow_shift) - 1;
// A bit of a timer's tag.
constexpr uint32_t is_time_out = uint32_t{1} << 31;

Network::Settings network_settings(const FlowsOptions& options) {
  const auto* meter = options.metered ? congestion::find_port_meter(options.algorithm) : nullptr;
  return {.switches = {.packet_bytes = Flows::mtu,
                       .packets = 1 << 19,  // of which one port gets half
                       .buffer_bytes = uint64_t{1} << 40,
                       .meter = meter == nullptr ? "none" : meter->name,
                       .base_rtt = options.base_rtt,
                       .seed = options.seed * 1000},
          .each_port = {.queue_bytes = options.queue_bytes, .marking = options.marking}};
}

}  // namespace

Flows::Flows(const FlowsOptions& options)
    : options_(options),
      kind_(congestion::find_controller(options.algorithm)),
      needs_(kind_ == nullptr ? congestion::Needs::nothing : kind_->needs),
      network_(options.topology, network_settings(options)),
      hpcc_(options.algorithm == "hpcc") {
  uint32_t ports = 0;
  for (const uint32_t count : options.topology.switch_ports) {
    first_port_.push_back(ports);
    ports += count;
  }
  ports_.resize(ports);
  for (const fabric::Cable& cable : options.topology.cables) {
    for (const fabric::Cable::End& end : {cable.a, cable.b}) {
      if (end.node < options.topology.hosts) continue;
      Port& port = ports_[place_of(end.node - options.topology.hosts, end.port)];
      port.bytes_per_second = static_cast<double>(cable.bytes_per_second);
      if (options.algorithm == "rcp") {
        port.rcp = std::make_unique<RcpPort>(port.bytes_per_second, options.base_rtt);
      }
    }
  }
  if (options.unmetered < network_.switches().size()) {
    Network::Settings plain = network_settings(options);
    plain.switches.meter = "none";
    auto others = fabric::make_switches(options.topology, plain.switches, plain.each_port);
    std::swap(network_.switches()[options.unmetered], others[options.unmetered]);
  }
  network_.watch(this);
}

Flows::~Flows() {
  for (const auto& flow : flows_) {
    if (flow->baseline == nullptr) flow->controller->~Controller();
  }
}

Duration Flows::base_of(const Flow& flow) const {
  return flow.options.base_rtt > Duration{} ? flow.options.base_rtt : options_.base_rtt;
}

void Flows::add(const FlowOptions& options) {
  const auto index = static_cast<uint32_t>(flows_.size());
  flows_.push_back(std::make_unique<Flow>());
  Flow& flow = *flows_.back();
  flow.options = options;
  const congestion::Settings settings{.packet_bytes = mtu,
                                      .limit_bytes = 64 << 20,
                                      .bytes_per_second = options.bytes_per_second,
                                      .base_rtt = base_of(flow),
                                      .seed = options_.seed * 7919 + index};
  if (kind_ != nullptr) {
    flow.controller = kind_->make(flow.storage, settings);
  } else {
    flow.baseline = make_baseline(options_.algorithm, settings, base_of(flow));
    flow.controller = flow.baseline.get();
  }
  if (options.bytes != UINT64_MAX) ++unfinished_;
  flow.timer_at = options.start;
  network_.set_timer(options.from, options.start, index);
}

void Flows::run(Time until) {
  Network::Happening it;
  while (now() < until) {
    if (samples_.size() % samples_between_looks == 0 && overloaded()) return;
    const Time next = std::min(until, now() + between_samples);
    while (network_.next(next, it)) step(it);
    sample();
  }
}

void Flows::sample() {
  fabric::Switch& at = network_.switches()[switch_];
  at.settle(port_, now());
  samples_.push_back(
      static_cast<uint32_t>(std::min<uint64_t>(at.queue_bytes(port_, 0), UINT32_MAX)));
}

Time Flows::run_to_completion(Time until) {
  Network::Happening it;
  while (unfinished_ > 0 && network_.next(until, it)) step(it);
  return unfinished_ == 0 ? network_.now() : never;
}

void Flows::step(const Network::Happening& it) {
  const bool timer = it.what == Network::What::timer;
  const uint64_t handle = it.packet.handle;
  const uint32_t index =
      timer ? it.tag & ~is_time_out : static_cast<uint32_t>((handle & ~is_ack) >> flow_shift);
  Flow& flow = *flows_[index];
  if (!timer && (handle & is_ack) == 0) return arrive(flow, index, it.packet);
  if (!timer) {
    acknowledge(flow, handle & number_mask);
  } else if ((it.tag & is_time_out) != 0) {
    look_for_time_out(flow, index);
  } else if (flow.timer_at <= now()) {
    flow.timer_at = never;
  }
  try_send(index);
}

// ---- senders

void Flows::try_send(uint32_t index) {
  Flow& flow = *flows_[index];
  while (now() < flow.options.stop) {
    const bool again = flow.again > 0;
    const uint64_t left = again ? flow.again : flow.options.bytes - flow.sent;
    if (left == 0) return;
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(left, mtu));
    const congestion::Allowance allowance = flow.controller->allowance(now());
    if (flow.inflight > 0 && flow.inflight + bytes > allowance.window_bytes) return;
    const Time may = std::max(allowance.not_before, flow.line_free);
    if (may > now()) return wait(flow, index, may);
    send(index, bytes, again);
  }
}

void Flows::wait(Flow& flow, uint32_t index, Time until) {
  if (flow.timer_at <= until) return;
  flow.timer_at = until;
  network_.set_timer(flow.options.from, until, index);
}

void Flows::send(uint32_t index, uint32_t bytes, bool again) {
  Flow& flow = *flows_[index];
  const uint64_t number = ++flow.number;
  Packet packet{.source = Topology::address_of(flow.options.from),
                .destination = Topology::address_of(flow.options.to),
                .bytes = bytes,
                .lbf = static_cast<uint8_t>(index),
                .ecn = Ecn::ect0,
                .handle = uint64_t{index} << flow_shift | number};
  packet.signal = flow.controller->request({.now = now(),
                                            .number = number,
                                            .bytes = bytes,
                                            .again = again,
                                            .inflight_bytes = flow.inflight});
  if (flow.inflight == 0) flow.progress = now();
  flow.inflight += bytes;
  if (again) {
    flow.again -= bytes;
  } else {
    flow.sent += bytes;
  }
  flow.records.push_back({.number = number, .bytes = bytes, .sent = now()});
  flow.line_free = network_.send(flow.options.from, packet);
  if (options_.queue_bytes == UINT64_MAX || flow.times_out) return;
  flow.times_out = true;
  network_.set_timer(flow.options.from, now() + time_out(flow), index | is_time_out);
}

Duration Flows::time_out(const Flow& flow) const { return 1ms + 4 * flow.smoothed; }

void Flows::look_for_time_out(Flow& flow, uint32_t index) {
  flow.times_out = false;
  if (flow.inflight == 0) return;
  if (now() - flow.progress >= time_out(flow)) {
    lose_until(flow, UINT64_MAX, true);
    flow.progress = now();
  }
  flow.times_out = true;
  const Time due = flow.progress + time_out(flow);
  network_.set_timer(flow.options.from, std::max(due, now() + 1us), index | is_time_out);
}

// Loses the packets before the one of this number.
void Flows::lose_until(Flow& flow, uint64_t number, bool timed_out) {
  uint64_t bytes = 0;
  while (!flow.records.empty() && flow.records.front().number < number) {
    bytes += flow.records.front().bytes;
    flow.records.pop_front();
  }
  if (bytes == 0) return;
  flow.again += bytes;
  flow.controller->handle(
      congestion::Lost{.now = now(), .rtt = flow.smoothed, .bytes = bytes, .timed_out = timed_out});
  flow.inflight -= bytes;
}

void Flows::acknowledge(Flow& flow, uint64_t number) {
  if (find(flow, number) == nullptr) return;  // it was taken for lost
  lose_until(flow, number, false);
  const Record record = flow.records.front();
  flow.records.pop_front();
  flow.progress = now();
  const Duration sample = now() - record.sent;
  flow.round_trips += seconds(sample);
  ++flow.samples;
  flow.least = std::min(flow.least, sample);
  flow.smoothed = flow.smoothed == Duration{} ? sample : (flow.smoothed * 7 + sample) / 8;
  if (flow.baseline != nullptr) flow.baseline->read(stamps_of(record));
  flow.controller->handle(congestion::Acknowledged{.now = now(),
                                                   .rtt = flow.smoothed,
                                                   .bytes = record.bytes,
                                                   .inflight_bytes = flow.inflight,
                                                   .sample = sample,
                                                   .least_rtt = flow.least,
                                                   .feedback = &record.feedback});
  if (record.notifies) {
    flow.controller->handle(
        congestion::Notified{.now = now(), .rtt = flow.smoothed, .severe = true, .last_hop = true});
  }
  flow.inflight -= record.bytes;
}

Flows::Record* Flows::find(Flow& flow, uint64_t number) {
  if (flow.records.empty() || number < flow.records.front().number) return nullptr;
  const auto at = std::lower_bound(
      flow.records.begin(), flow.records.end(), number,
      [](const Record& record, uint64_t wanted) { return record.number < wanted; });
  return at == flow.records.end() || at->number != number ? nullptr : &*at;
}

// ---- receivers

// The record carries the feedback of the acknowledgement, instead of its headers.
void Flows::arrive(Flow& flow, uint32_t index, const Packet& packet) {
  flow.delivered += packet.bytes;
  if (flow.finished == never && flow.delivered >= flow.options.bytes) {
    flow.finished = now();
    --unfinished_;
  }
  const uint64_t number = packet.handle & number_mask;
  flow.echo.add(packet.signal, packet.bytes, needs_);
  congestion::Feedback feedback = flow.echo.take(needs_);
  const bool marked = packet.ecn == Ecn::ce;
  feedback.marked_bytes = marked ? packet.bytes : 0;
  if (Record* record = find(flow, number)) {
    record->feedback = feedback;
    const bool due = flow.notified == Time::min() || now() - flow.notified >= between_notifications;
    if (marked && needs_ == congestion::Needs::notifications && due) {
      record->notifies = true;
      flow.notified = now();
    }
  }
  network_.send(flow.options.to, {.source = Topology::address_of(flow.options.to),
                                  .destination = Topology::address_of(flow.options.from),
                                  .bytes = ack_bytes,
                                  .lbf = static_cast<uint8_t>(index),
                                  .handle = packet.handle | is_ack});
}

// ---- ports

void Flows::accepted(uint32_t at, uint32_t port, const Packet& packet, Time departs) {
  if ((packet.handle & is_ack) != 0) return;
  const uint32_t place = place_of(at, port);
  Port& it = ports_[place];
  const uint64_t queue = network_.switches()[at].queue_bytes(port, packet.lane);
  if (at == switch_ && port == port_) peak_ = std::max(peak_, queue);
  if (it.rcp == nullptr && !hpcc_) return;
  it.arrived += packet.bytes;
  Flow& flow = *flows_[packet.handle >> flow_shift];
  Record* record = find(flow, packet.handle & number_mask);
  if (it.rcp != nullptr) {
    const double rate = it.rcp->arrive(now(), packet.bytes, queue - packet.bytes);
    if (record == nullptr) return;
    record->least_rate = record->least_rate == 0 ? rate : std::min(record->least_rate, rate);
    return;
  }
  it.log.emplace_back(now(), it.arrived);
  if (record != nullptr && record->hops < Stamps::most) {
    record->stamped[record->hops++] = {place, departs, it.arrived};
  }
}

Stamps Flows::stamps_of(const Record& record) const {
  Stamps stamps;
  stamps.least_rate = record.least_rate;
  for (uint32_t i = 0; i < record.hops; ++i) {
    const Stamped& it = record.stamped[i];
    const Port& port = ports_[it.place];
    const auto later = std::upper_bound(
        port.log.begin(), port.log.end(), it.departs,
        [](Time departs, const std::pair<Time, uint64_t>& entry) { return departs < entry.first; });
    stamps.of[stamps.count++] = {.port = it.place,
                                 .departs = it.departs,
                                 .sent_bytes = it.sent_bytes,
                                 .queue_bytes = std::prev(later)->second - it.sent_bytes,
                                 .bytes_per_second = port.bytes_per_second};
  }
  return stamps;
}

// ---- results

void Flows::begin_count() {
  count_began_ = now();
  for (const auto& flow : flows_) {
    flow->counted = flow->delivered;
    flow->round_trips = 0;
    flow->samples = 0;
  }
  samples_.clear();
  peak_ = 0;
}

double Flows::rate(size_t index) const {
  const Flow& flow = *flows_[index];
  return static_cast<double>(flow.delivered - flow.counted) / seconds(now() - count_began_);
}

double Flows::round_trip(size_t index) const {
  const Flow& flow = *flows_[index];
  return flow.samples == 0 ? 0 : flow.round_trips / static_cast<double>(flow.samples);
}

void Flows::observe(uint32_t at, uint32_t port) {
  switch_ = at;
  port_ = port;
  samples_.clear();
  peak_ = 0;
}

double Flows::queue_packets(double quantile) const {
  std::vector<uint32_t> sorted = samples_;
  if (sorted.empty()) return 0;
  const auto index = static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1));
  const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(sorted.begin(), place, sorted.end());
  return *place / double{mtu};
}

uint64_t Flows::drops() {
  uint64_t sum = 0;
  for (const fabric::Switch& at : network_.switches()) {
    for (uint32_t port = 0; port < at.settings().ports; ++port) {
      for (const uint64_t count : at.counters(port).drops) sum += count;
    }
  }
  return sum;
}

}  // namespace urma::test
