// Sends the works of unreliable Jetties (UB: UNO), which complete as soon as they are sent.

#include "jetty/initiator/initiator.h"
#include "jetty/slicer.h"

namespace urma::jetty {

uint32_t Initiator::take_datagrams(Jetty& jetty, uint32_t budget, Time now) {
  Leases& berths = jetty.queues->jfs();
  const uint32_t count = std::min(budget, berths.waiting());
  for (uint32_t taken = 0; taken < count; ++taken) {
    std::optional<Status> end = send_datagram(jetty, berths.next_posted());
    if (!end) return taken;  // the other works wait until some packets have been sent
    end_datagram(jetty, *end, now);
  }
  return count;
}

void Initiator::end_datagram(Jetty& jetty, Status status, Time now) {
  const uint16_t lease = jetty.queues->jfs().take_posted();
  ++counters_.works;
  jetty.works[lease] = {};
  jetty.gate.posted(lease, jetty.queues->jfs().berth(lease).signalled, jetty.ordering.in_order);
  append(jetty, lease, now);
  finish(jetty, lease, status, false, now);
}

// The queue can only be emptied from its front, so works before the last one that uses the memory
// are flushed, too.
void Initiator::flush_datagrams(Jetty& jetty, const std::byte* base, uint64_t bytes, Time now) {
  const Leases& berths = jetty.queues->jfs();
  uint32_t through = 0;
  for (uint32_t i = 0, count = berths.waiting(); i < count; ++i) {
    if (overlaps(jetty.queues->jfs().pieces(berths.next_posted(i)), base, bytes)) through = i + 1;
  }
  for (; through > 0; --through) end_datagram(jetty, Status::flushed, now);
}

// Returns how the work ends, or nothing if it must wait.
std::optional<Status> Initiator::send_datagram(const Jetty& jetty, uint16_t lease) {
  Queues& queues = *jetty.queues;
  const Berth& berth = queues.jfs().berth(lease);
  if (jetty.state != JettyState::ready) return Status::flushed;
  if (berth.verdict != Status::ok) return berth.verdict;
  transport::Channel* const way = channels_.unreliable(berth.peer);
  if (way == nullptr) return Status::peer_restarted;
  const SlicePacket packet{.berth = berth,
                           .notify = queues.jfs().notify(lease),
                           .pieces = queues.jfs().pieces(lease),
                           .tassn = Tassn::first(0),  // not used: it is not answered
                           .bytes = berth.bytes,
                           .last = true,
                           .rc_id = number(jetty.id),
                           .packet_bytes = way->facts().packet_bytes};
  if (!write_straight(packet, *way)) return std::nullopt;
  return Status::ok;
}

}  // namespace urma::jetty
