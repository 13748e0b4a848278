// Works of Jetties that want nothing promised (UB: UNO): they end when they have left.

#include "jetty/initiator.h"
#include "jetty/slicer.h"

namespace urma::jetty {

uint32_t Initiator::take_datagrams(Jetty& jetty, uint32_t budget, Time now) {
  Leases& berths = jetty.queues->berths();
  const uint32_t count = std::min(budget, berths.waiting());
  for (uint32_t taken = 0; taken < count; ++taken) {
    std::optional<Status> end = send_datagram(jetty, berths.next_posted());
    // The others wait until some have left, unless none may.
    if (!end && !noting_) return taken;
    const uint16_t lease = berths.take_posted();
    ++counters_.works;
    jetty.works[lease] = {};
    jetty.gate.posted(lease, jetty.queues->berth(lease).signalled, jetty.ordering.in_order);
    append(jetty, lease, now);
    finish(jetty, lease, end.value_or(Status::flushed), false, now);
  }
  return count;
}

// How it ends; nothing: not yet.
std::optional<Status> Initiator::send_datagram(const Jetty& jetty, uint16_t lease) {
  Queues& queues = *jetty.queues;
  const Berth& berth = queues.berth(lease);
  if (jetty.state != JettyState::ready) return Status::flushed;
  if (berth.verdict != Status::ok) return berth.verdict;
  transport::Channel* const way = channels_.unreliable(berth.peer);
  if (way == nullptr) return Status::peer_restarted;
  const SlicePacket packet{.berth = berth,
                           .notify = queues.notify(lease),
                           .pieces = queues.pieces(lease),
                           .tassn = Tassn::first(0),  // nobody answers by it
                           .bytes = berth.bytes,
                           .last = true,
                           .rc_id = number(jetty.id),
                           .packet_bytes = way->facts().packet_bytes};
  if (!write_straight(packet, *way)) return std::nullopt;
  return Status::ok;
}

}  // namespace urma::jetty
