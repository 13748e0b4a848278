// The order that the target keeps for queues that have asked for a sequence context.

#include <algorithm>

#include "base/assert.h"
#include "jetty/flow.h"
#include "jetty/target/target.h"

namespace urma::jetty {

// Makes the sequence context that the request asks for. Returns false if none is free, or if the
// request names one that does not exist.
bool Target::keeps_order(Assembly& assembly, ExecutionRecord*& record, const TaRequest& request) {
  if (!request.base.allocate) {
    const bool named = record != nullptr && record->context != Sequences::none;
    if (request.base.in_context && !named) assembly.verdict = Verdict::no_context;
    return assembly.verdict != Verdict::no_context;
  }
  if (record == nullptr) {
    record = records_.find_or_create(assembly.peer, assembly.rc_id, assembly.tassn);
  }
  PeerState& peer = peers_.at(assembly.peer);
  const bool made =
      record != nullptr && sequences_.give(*record, peer, record->unwrap(assembly.tassn));
  if (!made) assembly.verdict = Verdict::no_room;
  return made;
}

// The first packet of the slice has arrived, which shows its order.
void Target::note_order(Assembly& assembly, ExecutionRecord& record, const TaRequest& request) {
  if (record.context == Sequences::none) return;
  assembly.context = record.context;
  ordering::ExecuteGate& gate = sequences_.at(record.context).gate;
  if (request.base.allocate) gate.begin_at(assembly.number);
  if (assembly.order == Order::none) gate.pass(assembly.number);
}

// Returns whether the slice may be executed now. If not, it is parked, or must be sent again. A
// read has no data that could be parked.
bool Target::its_turn(Assembly& assembly, const transport::Received& packet,
                      const ParsedRequest& request) {
  if (assembly.context == Sequences::none || assembly.order != Order::strong) return true;
  if (sequences_.at(assembly.context).gate.open(assembly.number)) return true;
  const PeerState& peer = peers_.at(assembly.peer);
  const uint32_t packet_bytes = peer.facts.packet_bytes;
  const bool whole = packet.last && request.headers.offset.kib == 0;
  const uint32_t bytes = request.info->to_memory ? request.headers.memory.length
                         : whole                 ? 0
                                                 : uint32_t{max_send_bytes};
  const uint32_t packets = transport::packets_of(bytes, packet_bytes);
  const bool fits = request.info->opcode != TaOpcode::read &&
                    peer.parked + packets <= Parking::share(packet_bytes) &&
                    parking_.reserve(assembly.kept, packets, peer.parked);
  assembly.verdict = fits ? Verdict::parked : Verdict::not_ready;
  if (!fits) ++counters_.too_early;
  return false;
}

void Target::park(Assembly& assembly, const transport::Received& packet,
                  const ParsedRequest& request) {
  ++counters_.parked;
  ++parked_;
  peers_.at(assembly.peer).parked += assembly.kept.reserved;
  records_.find(assembly.peer, assembly.rc_id)
      ->set(assembly.number, ExecutionRecord::Mark::executing);
  keep(assembly, packet, request);
  Assembly* const parked = &assemblies_.create(assembly);
  Sequences::Sequence& own = sequences_.at(assembly.context);
  uint32_t* link = &own.first_parked;
  // Usually it is the last one: slices arrive in order, except after loss.
  const bool last =
      own.last_parked != Sequences::none && assemblies_.at(own.last_parked).number < parked->number;
  if (last) link = &assemblies_.at(own.last_parked).next_parked;
  while (*link != Sequences::none && assemblies_.at(*link).number < parked->number) {
    link = &assemblies_.at(*link).next_parked;
  }
  parked->next_parked = *link;
  *link = assemblies_.index_of(*parked);
  if (parked->next_parked == Sequences::none) own.last_parked = *link;
}

void Target::keep(Assembly& assembly, const transport::Received& packet,
                  const ParsedRequest& request) {
  PeerState& peer = peers_.at(assembly.peer);
  if (packet.last) {
    assembly.note_length(request, peer.facts.packet_bytes);
    peer.parked -= parking_.limit(assembly.kept, assembly.needed);
  }
  parking_.keep(assembly.kept, packet);
}

void Target::leave_parking(Assembly& assembly) {
  --parked_;
  Sequences::Sequence& own = sequences_.at(assembly.context);
  uint32_t* link = &own.first_parked;
  uint32_t before = Sequences::none;
  while (*link != assemblies_.index_of(assembly)) {
    before = *link;
    link = &assemblies_.at(*link).next_parked;
  }
  *link = assembly.next_parked;
  if (assembly.next_parked == Sequences::none) own.last_parked = before;
  peers_.at(assembly.peer).parked -= assembly.kept.reserved;
  parking_.release(assembly.kept);
  if (ExecutionRecord* record = records_.find(assembly.peer, assembly.rc_id)) {
    record->set(assembly.number, ExecutionRecord::Mark::none);
  }
}

// The slice may be executed now: its packets are placed as if they arrived now. A peer may have
// sent more packets than the slice has.
void Target::unpark(Assembly& assembly, Time now) {
  Kept kept = std::exchange(assembly.kept, Kept{.reserved = assembly.kept.reserved});
  leave_parking(assembly);
  assembly.verdict = Verdict::run;
  bool begun = false;
  bool whole = false;
  const auto place = [&](const transport::Received& packet) {
    ParsedRequest request;
    const bool parsed = parse_request(packet.head, request);
    URMA_ASSERT(parsed, "parked packets were parsed when they arrived");
    if (!begun) {
      begun = true;
      start(assembly, packet, request);
      if (assembly.verdict == Verdict::run) {
        assembly.record = records_.find(assembly.peer, assembly.rc_id);
        assembly.record->set(assembly.number, ExecutionRecord::Mark::executing);
      }
    }
    take(assembly, packet, request);
    whole = assembly.whole();
    if (!whole) return note_refusal(assembly, request.headers, now);
    finish(assembly, request.headers, now);
  };
  while (!whole && parking_.take(kept, place)) {
  }
  parking_.release(kept);
  if (whole) erase(assembly);
}

Assembly* Target::find_parked(const ExecutionRecord& record, Tassn number) {
  if (record.context == Sequences::none) return nullptr;
  uint32_t i = sequences_.at(record.context).first_parked;
  while (i != Sequences::none && assemblies_.at(i).number < number) {
    i = assemblies_.at(i).next_parked;
  }
  const bool there = i != Sequences::none && assemblies_.at(i).number == number;
  return there ? &assemblies_.at(i) : nullptr;
}

// Slices behind this one need not wait for it any more.
void Target::pass(const Assembly& assembly) {
  if (assembly.context == Sequences::none) return;
  switch (assembly.verdict) {
    case Verdict::not_ready:
    case Verdict::no_room:
    case Verdict::ignore:
    case Verdict::drop:
    case Verdict::parked:
      return;
    default:
      sequences_.at(assembly.context).gate.pass(assembly.number);
  }
}

void Target::pass_over(const ExecutionRecord& record, Tassn number, Time now) {
  if (record.context == Sequences::none) return;
  sequences_.at(record.context).gate.pass(number);
  advance(record.context, now);
}

void Target::advance(uint32_t sequence, Time now) {
  if (sequence == Sequences::none) return;
  Sequences::Sequence& own = sequences_.at(sequence);
  while (own.first_parked != Sequences::none) {
    Assembly& next = assemblies_.at(own.first_parked);
    if (!own.gate.open(next.number)) return;
    unpark(next, now);
  }
}

}  // namespace urma::jetty
