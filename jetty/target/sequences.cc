// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/sequences.h"

namespace urma::jetty {

bool Sequences::prepare(Assembly& assembly, ExecutionRecord* record, const Btah& request) {
  if (!request.allocate) {
    const bool named = record != nullptr && record->context != none;
    if (!request.in_context || named) return true;
    assembly.verdict = Assembly::Verdict::no_context;
    return false;
  }
  PeerState& peer = peers_.at(assembly.peer);
  if (record != nullptr && give(*record, peer, record->unwrap(assembly.tassn))) return true;
  assembly.verdict = Assembly::Verdict::no_room;
  return false;
}

// Gives the record a context if it has none. Returns false if none is free, or if the peer would
// leave fewer to others than it has.
bool Sequences::give(ExecutionRecord& record, PeerState& peer, Tassn first) {
  if (record.context != none) return true;
  if (peer.contexts >= slab_.capacity() - slab_.size()) return false;
  record.context = slab_.index_of(slab_.create(first));
  ++peer.contexts;
  return true;
}

void Sequences::forget(ExecutionRecord& record, PeerState& peer) {
  if (record.context == none) return;
  slab_.destroy(&slab_.at(record.context));
  record.context = none;
  --peer.contexts;
}

void Sequences::note(Assembly& assembly, const ExecutionRecord& record, const Btah& request) {
  if (record.context == none) return;
  assembly.context = record.context;
  ordering::ExecuteGate& gate = slab_.at(record.context).gate;
  if (request.allocate) gate.begin_at(assembly.number);
  if (assembly.order == Order::none) gate.pass(assembly.number);
}

// A read has no data that could be parked.
void Sequences::hold_back(Assembly& assembly, const transport::Received& packet,
                          const ParsedRequest& request) {
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
  assembly.verdict = fits ? Assembly::Verdict::parked : Assembly::Verdict::not_ready;
}

void Sequences::park(Assembly& assembly, const transport::Received& packet,
                     const ParsedRequest& request) {
  ++parked_;
  peers_.at(assembly.peer).parked += assembly.kept.reserved;
  keep(assembly, packet, request);
  Sequence& own = slab_.at(assembly.context);
  uint32_t* link = &own.first_parked;
  // Usually it is the last one: slices arrive in order, except after loss.
  const bool last =
      own.last_parked != none && assemblies_.at(own.last_parked).number < assembly.number;
  if (last) link = &assemblies_.at(own.last_parked).next_parked;
  while (*link != none && assemblies_.at(*link).number < assembly.number) {
    link = &assemblies_.at(*link).next_parked;
  }
  assembly.next_parked = *link;
  *link = assemblies_.index_of(assembly);
  if (assembly.next_parked == none) own.last_parked = *link;
}

void Sequences::keep(Assembly& assembly, const transport::Received& packet,
                     const ParsedRequest& request) {
  PeerState& peer = peers_.at(assembly.peer);
  if (packet.last) {
    assembly.note_length(request, peer.facts.packet_bytes);
    peer.parked -= parking_.limit(assembly.kept, assembly.needed);
  }
  parking_.keep(assembly.kept, packet);
}

void Sequences::leave(Assembly& assembly) {
  --parked_;
  Sequence& own = slab_.at(assembly.context);
  uint32_t* link = &own.first_parked;
  uint32_t before = none;
  while (*link != assemblies_.index_of(assembly)) {
    before = *link;
    link = &assemblies_.at(*link).next_parked;
  }
  *link = assembly.next_parked;
  if (assembly.next_parked == none) own.last_parked = before;
  peers_.at(assembly.peer).parked -= assembly.kept.reserved;
  parking_.release(assembly.kept);
}

Assembly* Sequences::find(const ExecutionRecord& record, Tassn number) {
  if (record.context == none) return nullptr;
  uint32_t i = slab_.at(record.context).first_parked;
  while (i != none && assemblies_.at(i).number < number) i = assemblies_.at(i).next_parked;
  const bool there = i != none && assemblies_.at(i).number == number;
  return there ? &assemblies_.at(i) : nullptr;
}

void Sequences::pass(const Assembly& assembly) {
  using Verdict = Assembly::Verdict;
  if (assembly.context == none) return;
  switch (assembly.verdict) {
    case Verdict::not_ready:
    case Verdict::no_room:
    case Verdict::ignore:
    case Verdict::drop:
    case Verdict::parked:
      return;
    default:
      slab_.at(assembly.context).gate.pass(assembly.number);
  }
}

Assembly* Sequences::next(uint32_t context) {
  if (context == none) return nullptr;
  const Sequence& own = slab_.at(context);
  if (own.first_parked == none) return nullptr;
  Assembly& first = assemblies_.at(own.first_parked);
  return own.gate.open(first.number) ? &first : nullptr;
}

}  // namespace urma::jetty
