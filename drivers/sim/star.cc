#include "drivers/sim/star.h"

namespace urma::drivers::sim {
namespace {

// The address of the device at a port.
uint32_t cna_of(uint32_t port) { return port + 1; }

}  // namespace

Star::Star()
    // The queues are limited for each port alone, by its line's `queue`.
    : switch_({.ports = most_ports,
               .addresses = most_ports + 1,
               .packet_bytes = 64 << 10,
               .buffer_bytes = uint64_t{1} << 40}) {}

bool Star::connect(const Endpoint& at, const Impairment& line) {
  const auto [found, added] = ports_.try_emplace(at, static_cast<uint32_t>(ports_.size()));
  const uint32_t port = found->second;
  if (port >= most_ports) {
    ports_.erase(found);
    return false;
  }
  if (added) delays_.push_back({});
  delays_[port] = line.delay;
  switch_.connect(port,
                  {.bytes_per_second = line.bits_per_second / 8,
                   .host = true,
                   .queue_bytes = line.queue_bytes,
                   .marking = {.from_bytes = line.mark_bytes > 0 ? line.mark_bytes : UINT64_MAX}});
  switch_.routes().attach(cna_of(port), port);
  return true;
}

Star::Passage Star::pass(const Endpoint& from, const Endpoint& to, uint32_t bytes, Ecn ecn,
                         Time now) {
  const auto source = ports_.find(from);
  const auto destination = ports_.find(to);
  if (source == ports_.end() || destination == ports_.end()) return {};
  fabric::Packet packet{.source = cna_of(source->second),
                        .destination = cna_of(destination->second),
                        .bytes = bytes,
                        .ecn = ecn};
  const fabric::Arrival arrival = switch_.arrive(packet, source->second, now);
  if (arrival.drop != fabric::Drop::none) return {};
  return {arrival.departs + delays_[arrival.port], packet.ecn};
}

fabric::LaneCounters Star::counters_to(const Endpoint& at, Time now) {
  const uint32_t port = ports_.at(at);
  switch_.settle(port, now);
  return switch_.counters(port, 0);
}

}  // namespace urma::drivers::sim
