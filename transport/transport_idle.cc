#include "transport/transport.h"

// Channels that nobody uses are closed: their memory is worth more than the round trip that the
// next one costs. Both ends must agree, so that nothing that is under way meets a closed door; what
// is posted meanwhile goes over the next channel, and executes once like all that changes channels.

namespace urma::transport {
namespace {

constexpr uint8_t closes_sent = 3;
constexpr Duration close_retry = std::chrono::milliseconds(20);

}  // namespace

// `never` while there is a reason to keep it.
Time Transport::closes_at(const PacketChannel& channel) {
  if (closing_ || !channel.idle()) return never;
  const Peer& peer = *peers_.find(channel.peer());
  const bool busy = peer.opening || peer.closes > 0 || peer.answered_open;
  return busy || peer.eid == settings_.eid ? never : channel.last_heard() + idle_timeout_;
}

void Transport::ask_to_close(Peer& peer, Time now) {
  peer.closes = closes_sent;
  peer.cookie = entropy_.next() | 1;
  peer.sent_at = now;
  send_close(peer, SetupReason::idle, 0);
  peer_timers_.arm(peers_.index_of(&peer), now + close_retry);
}

// Who is asked and has something to say answers by saying it. Who does not answer at all cannot
// need the channel.
void Transport::ask_again_to_close(Peer& peer, Time now) {
  const PacketChannel& channel = at(peer.tp);
  if (!channel.idle() || channel.last_heard() > peer.sent_at) {
    peer.closes = 0;
    tp_timers_.arm_no_later(peer.tp, deadline_of(channel));
    return;
  }
  if (--peer.closes == 0) return end_channel(peer, Why::idle, now);
  send_close(peer, SetupReason::idle, closes_sent - peer.closes);
  peer_timers_.arm(peers_.index_of(&peer), now + close_retry);
}

}  // namespace urma::transport
