// Atomics: executed by this processor where memory is mapped, else by the target, which keeps the
// results of the last ones.

#include <utility>

#include "jetty/atomics.h"
#include "jetty/initiator/initiator.h"

namespace urma::jetty {

const Berth& Initiator::berth_of(const Slice& slice) {
  return jetties_.at(flows_.at(slice.flow).jetty).queues->jfs().berth(slice.berth);
}

// Executes an atomic on mapped memory, if its segment leaves atomics to processors. Returns its
// bytes, or 0 if it must be sent in a packet.
uint32_t Initiator::operate(Queues& queues, uint16_t lease, const PeerState& peer) {
  const Berth& berth = queues.jfs().berth(lease);
  std::byte* const word = peer.channel->hold({.address = berth.address,
                                              .bytes = berth.bytes,
                                              .id = berth.token_id,
                                              .token = berth.token,
                                              .wanted = Rights::atomic});
  if (word == nullptr) return 0;
  if (reinterpret_cast<uintptr_t>(word) % berth.bytes != 0) [[unlikely]] {
    // The atomic is sent in a packet, and the owner of the memory refuses it.
    peer.channel->let_go();
    return 0;
  }
  queues.jfs().fetched(lease, execute({.what = berth.atomic,
                                       .update = berth.update,
                                       .bytes = berth.bytes,
                                       .operand = berth.immediate,
                                       .expected = queues.jfs().values(lease).expected},
                                      word));
  // The memory was revoked: the owner may have replaced it before or after the atomic was executed.
  if (!peer.channel->let_go()) queues.jfs().doubt(lease);
  ++counters_.copied;
  counters_.copied_bytes += berth.bytes;
  return berth.bytes;
}

// Returns whether the target would still keep the oldest outstanding result after one more atomic.
bool Initiator::results_open(const Flow& flow, const PeerState& peer) {
  return flow.first_atomic == Slice::none ||
         flow.atomics + 1 - slices_.at(flow.first_atomic).atomic < peer.facts.atomic_results;
}

void Initiator::note_atomic(Flow& flow, Slice& slice) {
  if (!keeps_result(berth_of(slice))) return;
  if (++flow.atomics == 0) ++flow.atomics;  // wrapped after 2^32: zero means none
  slice.atomic = flow.atomics;
  if (flow.first_atomic == Slice::none) flow.first_atomic = slices_.index_of(&slice);
}

void Initiator::atomic_decided(Flow& flow, const Slice& slice) {
  if (flow.first_atomic != slices_.index_of(&slice)) return;
  uint32_t next = slice.next;
  const auto open = [&](const Slice& other) { return other.atomic != 0 && !other.is_tombstone(); };
  while (next != Slice::none && !open(slices_.at(next))) next = slices_.at(next).next;
  flow.first_atomic = next;
  if (flow.first_to_cut != Queues::none) activate(flow);
}

void Initiator::handle_atomic_response(Flow& flow, const ParsedResponse& response, Time now) {
  Slice* const slice = find_answered(flow, response);
  if (slice == nullptr) return;
  Queues& queues = *jetties_.at(flow.jetty).queues;
  const Berth& berth = queues.jfs().berth(slice->berth);
  const uint32_t expected = keeps_result(berth) ? berth.bytes : 0;
  if (berth.operation != Operation::atomic || response.data.size() != expected ||
      response.headers.base.status != Response::success) {
    ++counters_.malformed;
    return;
  }
  if (slice->state == SliceState::settling) {
    slice->keeps_tassn = false;
    return;
  }
  queues.jfs().fetched(slice->berth, get_little(response.data));
  note_sequence_answer(*slice, true);
  apply(*slice, SliceEvent::answered, now, Answer(Status::ok));
}

}  // namespace urma::jetty
