// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/responses.h"

#include "jetty/atomics.h"
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

bool asks_to_wait(const Atah& answer) {
  return answer.status == Response::receiver_not_ready || answer.status == Response::page_fault;
}

}  // namespace

Responses::Responses(const InitiatorCommon& common, const SliceEvents::Uses& uses,
                     SliceEvents& events, LightWorks& lights)
    : peers_(common.peers),
      counters_(common.counters),
      flows_(uses.flows),
      slices_(uses.slices),
      offers_(uses.offers),
      order_(uses.order),
      works_(uses.works),
      events_(events),
      lights_(lights),
      staging_(common.staging) {}

void Responses::handle(PeerId peer, const ParsedResponse& response, Time now) {
  Flow* const flow = flows_.find(peer, response.headers.base.rc_id);
  if (flow == nullptr) {
    ++counters_.late_answers;
  } else if (response.info->opcode == TaOpcode::read_response) {
    handle_read(*flow, response, now);
  } else if (response.info->opcode == TaOpcode::atomic_response) {
    handle_atomic(*flow, response, now);
  } else {
    handle_answer(*flow, response.headers.base, now);
    if (response.headers.base.status == Response::success) events_.ended_some(*flow, now);
  }
}

void Responses::handle_answer(Flow& flow, const Atah& answer, Time now) {
  const Tassn first = Tassn::unwrap(flow.next_tassn, answer.tassn);
  const bool success = answer.status == Response::success;
  const Tassn last = success ? first + answer.info : first;
  const bool known = success || asks_to_wait(answer) || answer.status == Response::completer_error;
  if (!known || last >= flow.next_tassn) {
    ++counters_.malformed;
    return;
  }
  if (success && lights_.end_executed(flow, first, last, now)) return;
  if (!success && flow.jetty != Flow::none) lights_.record(flows_.jetty_of(flow), now);
  bool found = success && end_executed(flow, first, last, now) > 0;
  for (uint32_t i = flow.first_slice; i != Slice::none && slices_.at(i).tassn <= last;) {
    Slice& slice = slices_.at(i);
    i = slice.next;
    if (slice.tassn < first) continue;
    found = true;
    handle_for(slice, flow, answer, now);
  }
  if (!found) ++counters_.late_answers;
}

void Responses::handle_for(Slice& slice, Flow& flow, const Atah& answer, Time now) {
  const bool not_ready = asks_to_wait(answer);
  const bool success = answer.status == Response::success;
  if (slice.is_tombstone()) {
    // A tombstone waits for this answer. After "not ready" the target must be notified of it,
    // because the slice will not be sent again.
    if (!not_ready) {
      events_.erase(slice);
    } else if (!slice.in_offer && !slice.waiting_to_offer) {
      offers_.offer_later(slice);
    }
  } else if (slice.asks && answer.status == Response::completer_error &&
             answer.info == static_cast<uint8_t>(CompleterError::no_room)) {
    // The target has no sequence context free and has not executed this slice. It is sent again,
    // and the initiator keeps the order.
    slice.asks = false;
    flow.sequence = Sequence::refused;
    events_.not_ready(slice, 0, now);
    flows_.resume(flow);
  } else if (not_ready) {
    order_.note_sequence(slice, true);
    events_.not_ready(slice, answer.info, now);
  } else if (slice.state == SliceState::settling) {
    slice.keeps_tassn = false;
  } else if (success && (slices_.is_read(slice) || keeps_result(slices_.berth_of(slice)))) {
    ++counters_.malformed;  // these are answered with their data
  } else {
    // A target that does not know the opcode, or whether the slice was executed, may not know
    // sequence contexts either.
    const Status status = status_of(answer);
    order_.note_sequence(slice, status != Status::remote_unsupported && status != Status::unknown);
    events_.answered(slice, status, now);
  }
}

// Returns whether a slice in this state is done as soon as it is answered, if no driver reads its
// memory. An acknowledgement may arrive before the answer.
constexpr bool ends_when_answered(SliceState state) {
  return state == SliceState::sending || state == SliceState::delivered;
}
static_assert(step(SliceState::sending, SliceEvent::answered, false).state == SliceState::done);
static_assert(step(SliceState::delivered, SliceEvent::answered, false).state == SliceState::done);

// The fast path of nearly all answers: the slice is the oldest of its flow and the only one of its
// work, was executed, and no driver reads its memory. Returns how many slices it ended; the others
// are handled one by one, which would do the same to each.
uint32_t Responses::end_executed(Flow& flow, Tassn first, Tassn last, Time now) {
  uint32_t ended = 0;
  while (flow.first_slice != Slice::none) {
    Slice& slice = slices_.at(flow.first_slice);
    const bool plain = slice.tassn >= first && slice.tassn <= last &&
                       ends_when_answered(slice.state) && !slice.is_tombstone() &&
                       !slice.in_offer && slice.expected && !events_.in_device(slice) &&
                       !slice.asks;
    if (!plain) break;
    Jetty& jetty = flows_.jetty_of(flow);
    const uint16_t lease = slice.berth;
    WorkState& work = jetty.works[lease];
    const bool only = work.cut && work.open_slices == 1 && work.status == Status::ok &&
                      !work.cancelled && !fetches(jetty.queues->jfs().berth(lease));
    if (!only) break;
    work.open_slices = 0;
    slices_.erase(slice);
    works_.finish(jetty, lease, Status::ok, true, now);
    ++ended;
  }
  if (ended == 0) return 0;
  peers_.at(flow.peer).channel->expect_answers(-static_cast<int32_t>(ended), now);
  if (flow.first_to_cut != Queues::none || flow.peer_over) flows_.activate(flow);
  return ended;
}

Slice* Responses::find_answered(Flow& flow, const ParsedResponse& response) {
  Slice* const slice =
      slices_.find(flow, Tassn::unwrap(flow.next_tassn, response.headers.base.tassn));
  if (slice != nullptr && !slice->is_tombstone()) return slice;
  ++counters_.late_answers;
  if (slice != nullptr) events_.erase(*slice);
  return nullptr;
}

void Responses::handle_read(Flow& flow, const ParsedResponse& response, Time now) {
  Slice* const slice = find_answered(flow, response);
  if (slice == nullptr) return;
  Jetty& jetty = flows_.jetty_of(flow);
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
  const std::span<const Piece> pieces = jetty.queues->jfs().pieces(slice->berth);
  const auto at = static_cast<uint32_t>(slice->offset + offset);
  slice->placed += static_cast<uint32_t>(response.data.size());
  if (!berth.staged) [[likely]] {
    scatter(pieces, at, response.data);
  } else if (!place_staged(*slice, pieces, at, response.data)) {
    return works_.cannot_access(jetty, slice->berth);
  }
  jetty.works[slice->berth].progress = now;
  order_.note_sequence(*slice, true);
  if (slice->placed == slice->bytes) events_.answered(*slice, Status::ok, now);
}

// Stores data in memory of an accelerator. Returns false if that is not possible, or has failed for
// an earlier packet of the work.
bool Responses::place_staged(Slice& slice, std::span<const Piece> pieces, uint32_t at,
                             std::span<const std::byte> data) {
  const Flow& flow = flows_.at(slice.flow);
  if (flows_.jetty_of(flow).works[slice.berth].inaccessible) return false;
  if (slice.copies == 0) slice.copies = staging_.next_owner();
  return staging_.scatter(pieces, at, data, slice.copies) &&
         (slice.placed < slice.bytes || staging_.finish(slice.copies));
}

void Responses::handle_atomic(Flow& flow, const ParsedResponse& response, Time now) {
  Slice* const slice = find_answered(flow, response);
  if (slice == nullptr) return;
  Queues& queues = *flows_.jetty_of(flow).queues;
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
  order_.note_sequence(*slice, true);
  events_.answered(*slice, Status::ok, now);
}

}  // namespace urma::jetty
