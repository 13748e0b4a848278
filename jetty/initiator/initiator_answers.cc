// Answers of targets.

#include <algorithm>

#include "jetty/initiator/initiator.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

Status status_of(const Atah& answer) {
  if (answer.status == Response::success) return Status::ok;
  switch (static_cast<CompleterError>(answer.info)) {
    case CompleterError::unsupported_request:
      return Status::remote_unsupported;
    case CompleterError::withdrawn:
      return Status::unknown;
    case CompleterError::no_room:
      return Status::no_resources;
    default:
      return Status::remote_access;
  }
}

}  // namespace

void Initiator::handle_response(PeerId peer, const ParsedResponse& response, Time now) {
  const uint32_t index = flows_by_key_.find(flow_key(peer, response.headers.base.rc_id));
  if (index == Flow::none || !(flows_.at(index).peer == peer)) {
    ++counters_.late_answers;
    return;
  }
  Flow& flow = flows_.at(index);
  if (response.info->opcode == TaOpcode::read_response) {
    handle_read_response(flow, response, now);
  } else if (response.info->opcode == TaOpcode::atomic_response) {
    handle_atomic_response(flow, response, now);
  } else {
    handle_answer(flow, response.headers.base, now);
  }
}

Slice* Initiator::find(Flow& flow, Tassn tassn) {
  for (uint32_t i = flow.first_slice; i != Slice::none; i = slices_.at(i).next) {
    Slice& slice = slices_.at(i);
    if (slice.tassn >= tassn) return slice.tassn == tassn ? &slice : nullptr;
  }
  return nullptr;
}

void Initiator::handle_answer(Flow& flow, const Atah& answer, Time now) {
  const Tassn first = Tassn::unwrap(flow.next_tassn, answer.tassn);
  const bool success = answer.status == Response::success;
  const Tassn last = success ? first + answer.info : first;
  const bool not_ready =
      answer.status == Response::receiver_not_ready || answer.status == Response::page_fault;
  const bool known = success || not_ready || answer.status == Response::completer_error;
  if (!known || last >= flow.next_tassn) {
    ++counters_.malformed;
    return;
  }
  bool found = success && end_executed(flow, first, last, now) > 0;
  for (uint32_t i = flow.first_slice; i != Slice::none && slices_.at(i).tassn <= last;) {
    Slice& slice = slices_.at(i);
    i = slice.next;
    if (slice.tassn < first) continue;
    found = true;
    if (slice.is_tombstone()) {
      // A tombstone waits for this answer. After "not ready" the target must be notified of it,
      // because the slice will not be sent again.
      if (!not_ready) {
        erase(slice);
      } else if (!slice.in_offer && !slice.waiting_to_offer) {
        offer_later(slice);
      }
    } else if (slice.asks && answer.status == Response::completer_error &&
               answer.info == static_cast<uint8_t>(CompleterError::no_room)) {
      // The target has no sequence context free and has not executed this slice. It is sent again,
      // and the initiator keeps the order.
      slice.asks = false;
      flow.sequence = Sequence::refused;
      apply(slice, SliceEvent::not_ready, now, Answer{});
      if (flow.first_to_cut != Queues::none) activate(flow);
    } else if (not_ready) {
      note_sequence_answer(slice, true);
      Answer wait;
      wait.timer = answer.info;
      apply(slice, SliceEvent::not_ready, now, wait);
    } else if (slice.state == SliceState::settling) {
      slice.keeps_tassn = false;
    } else if (success && (is_read(slice) || keeps_result(berth_of(slice)))) {
      ++counters_.malformed;  // these are answered with their data
    } else {
      // A target that does not know the opcode, or whether the slice was executed, may not know
      // sequence contexts either.
      const Status status = status_of(answer);
      note_sequence_answer(slice,
                           status != Status::remote_unsupported && status != Status::unknown);
      apply(slice, SliceEvent::answered, now, Answer(status));
    }
  }
  if (!found) ++counters_.late_answers;
}

// The fast path of nearly all answers: the slice is the oldest of its flow and the only one of its
// work, was executed, and no driver reads its memory. Returns how many slices it ended; the others
// go through `apply`, which would do the same to each.
uint32_t Initiator::end_executed(Flow& flow, Tassn first, Tassn last, Time now) {
  static_assert(step(SliceState::sending, SliceEvent::answered, false).state == SliceState::done);
  uint32_t ended = 0;
  while (flow.first_slice != Slice::none) {
    Slice& slice = slices_.at(flow.first_slice);
    const bool plain = slice.tassn >= first && slice.tassn <= last &&
                       slice.state == SliceState::sending && !slice.is_tombstone() &&
                       !slice.in_offer && slice.expected && !in_device(slice) && !slice.asks;
    if (!plain) break;
    Jetty& jetty = jetties_.at(flow.jetty);
    const uint16_t lease = slice.berth;
    WorkState& work = jetty.works[lease];
    const bool only = work.cut && work.open_slices == 1 && work.status == Status::ok &&
                      !work.cancelled && !fetches(jetty.queues->jfs().berth(lease));
    if (!only) break;
    work.open_slices = 0;
    flow.first_slice = slice.next;
    (slice.next != Slice::none ? slices_.at(slice.next).previous : flow.last_slice) = Slice::none;
    slices_.destroy(&slice);
    finish(jetty, lease, Status::ok, true, now);
    ++ended;
  }
  if (ended == 0) return 0;
  peers_.at(flow.peer).channel->expect_answers(-static_cast<int32_t>(ended), now);
  if (flow.first_to_cut != Queues::none || flow.peer_over) activate(flow);
  return ended;
}

Slice* Initiator::find_answered(Flow& flow, const ParsedResponse& response) {
  Slice* const slice = find(flow, Tassn::unwrap(flow.next_tassn, response.headers.base.tassn));
  if (slice != nullptr && !slice->is_tombstone()) return slice;
  ++counters_.late_answers;
  if (slice != nullptr) erase(*slice);
  return nullptr;
}

void Initiator::handle_read_response(Flow& flow, const ParsedResponse& response, Time now) {
  Slice* const slice = find_answered(flow, response);
  if (slice == nullptr) return;
  Jetty& jetty = jetties_.at(flow.jetty);
  const Berth& berth = jetty.queues->jfs().berth(slice->berth);
  const uint64_t offset = uint64_t{response.headers.offset.kib} * 1024;
  const bool fits = berth.operation == Operation::read &&
                    offset + response.data.size() <= slice->bytes &&
                    slice->placed + response.data.size() <= slice->bytes;
  if (!fits || response.headers.base.status != Response::success ||
      (response.data.empty() && slice->bytes > 0)) {
    ++counters_.malformed;
    return;
  }
  // Once cancelled, a read places no more data.
  if (slice->state != SliceState::sending && slice->state != SliceState::delivered) return;
  scatter(jetty.queues->jfs().pieces(slice->berth), static_cast<uint32_t>(slice->offset + offset),
          response.data);
  slice->placed += static_cast<uint32_t>(response.data.size());
  jetty.works[slice->berth].progress = now;
  note_sequence_answer(*slice, true);
  if (slice->placed == slice->bytes) {
    apply(*slice, SliceEvent::answered, now, Answer(Status::ok));
  }
}

}  // namespace urma::jetty
