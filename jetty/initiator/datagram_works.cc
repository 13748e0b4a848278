// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/datagram_works.h"

#include <algorithm>

#include "jetty/slicer.h"

namespace urma::jetty {

DatagramWorks::DatagramWorks(const InitiatorCommon& common, OpenWorks& works)
    : channels_(common.channels),
      counters_(common.counters),
      works_(works),
      staging_(common.staging) {}

uint32_t DatagramWorks::take(Jetty& jetty, uint32_t budget, Time now) {
  const Leases& berths = jetty.queues->jfs();
  const uint32_t count = std::min(budget, berths.waiting());
  for (uint32_t taken = 0; taken < count; ++taken) {
    const std::optional<Status> end = send(jetty, berths.next_posted());
    if (!end) return taken;
    end_next(jetty, *end, now);
  }
  return count;
}

void DatagramWorks::end_next(Jetty& jetty, Status status, Time now) {
  const uint16_t lease = jetty.queues->jfs().take_posted();
  ++counters_.works;
  jetty.works[lease] = {};
  jetty.gate.posted(lease, jetty.queues->jfs().berth(lease).signalled, jetty.ordering.in_order);
  works_.add(jetty, lease, now);
  works_.finish(jetty, lease, status, false, now);
}

void DatagramWorks::flush_memory(Jetty& jetty, const std::byte* base, uint64_t bytes, Time now) {
  const Leases& berths = jetty.queues->jfs();
  uint32_t through = 0;
  for (uint32_t i = 0, count = berths.waiting(); i < count; ++i) {
    if (overlaps(jetty.queues->jfs().pieces(berths.next_posted(i)), base, bytes)) through = i + 1;
  }
  for (; through > 0; --through) end_next(jetty, Status::flushed, now);
}

std::optional<Status> DatagramWorks::send(const Jetty& jetty, uint16_t lease) {
  const Queues& queues = *jetty.queues;
  const Berth& berth = queues.jfs().berth(lease);
  if (jetty.state != JettyState::ready) return Status::flushed;
  if (berth.verdict != Status::ok) return berth.verdict;
  transport::Channel* const way = channels_.unreliable(berth.peer);
  if (way == nullptr) return Status::peer_restarted;
  Piece copied{nullptr, berth.bytes};
  if (berth.staged) [[unlikely]] {
    copied.data = staging_.copy(queues.jfs().pieces(lease), 0, berth.bytes, 0);
    if (copied.data == nullptr) return Status::bad_work;
  }
  const SlicePacket packet{
      .berth = berth,
      .notify = queues.jfs().notify(lease),
      .pieces = berth.staged ? std::span<const Piece>(&copied, 1) : queues.jfs().pieces(lease),
      .tassn = Tassn::first(0),  // not used: it is not answered
      .bytes = berth.bytes,
      .last = true,
      .rc_id = number(jetty.id),
      .packet_bytes = way->facts().packet_bytes};
  const bool sent = write_straight(packet, *way);
  if (berth.staged) staging_.give_back_last();
  if (!sent) return std::nullopt;
  return Status::ok;
}

}  // namespace urma::jetty
