// Atomics that the target executes: it keeps the results of the last ones.

#include <utility>

#include "jetty/initiator/initiator.h"

namespace urma::jetty {

const Berth& Initiator::berth_of(const Slice& slice) {
  return jetties_.at(flows_.at(slice.flow).jetty).queues->jfs().berth(slice.berth);
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
