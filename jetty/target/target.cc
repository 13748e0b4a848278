// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/target.h"

#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/probes.h"
#include "jetty/target/slice_shape.h"

namespace urma::jetty {
namespace {

// Returns whether the opcode's answer is the fetched value.
bool brings_back(const OpcodeInfo& info) {
  return info.operands > 0 && info.opcode != TaOpcode::atomic_store;
}

// Adds the value that an executed slice has fetched. Returns false if it is not known.
bool add_value(Answers::Answer& answer, const std::optional<AtomicResults::Result>& known) {
  if (!known) return false;
  answer.fetched = known->fetched;
  answer.fetched_bytes = known->bytes;
  return true;
}

// Returns the record of the slice's queue, or null if the queue has none. One that asks for a
// sequence context gets a record, if there is room for it.
ExecutionRecord* find_record(ExecutionRecords& records, const Assembly& assembly,
                             const Btah& request) {
  return request.allocate ? records.find_or_create(assembly.peer, assembly.rc_id, assembly.tassn)
                          : records.find(assembly.peer, assembly.rc_id);
}

// The wait that an initiator is asked for when no receive slot is posted: 2 us * 2^4.
constexpr uint8_t not_ready_timer = 4;

}  // namespace

Target::Target(const Limits& limits, PeerStates& peers, memseg::SegmentTable& segments,
               Jetties& jetties, Groups& groups, transport::Channels& channels, Staging& staging,
               EventSink& events)
    : reads_(limits.reads),
      peers_(peers),
      addressees_(jetties, groups),
      executor_(segments, jetties, addressees_, staging),
      answers_(limits.answers + limits.parked, peers, segments, staging, events),
      records_(limits.records, limits.share, peers),
      fetched_(records_.capacity()),
      assemblies_(limits.assemblies, peers),
      sequences_(limits.sequences, limits.parked, peers, assemblies_),
      refusals_(executor_, channels, events),
      datagrams_(peers, addressees_, executor_, channels, events) {}

// Each packet makes at most one answer and one assembly. A peer may hold as many of each as it
// leaves free, so that even a peer that takes all it can get leaves a share for the others.
bool Target::admits(const transport::Received& packet) {
  const PeerState& peer = peers_.at(packet.peer);
  if (!has_room(peer)) return false;
  if (peer.assemblies < assemblies_.room()) return true;
  // Further packets of a slice in progress are accepted: completing it makes room.
  return packet.withdrawn || assemblies_.find(packet) != nullptr;
}

inline void Target::note_executed(PeerId peer, uint32_t rc_id, TaOpcode opcode) {
  ++counters_.executed;
  probes::execute(peer, rc_id, static_cast<uint8_t>(opcode));
}

// ---- requests

bool Target::handle_expected(PeerId from, std::span<const std::byte> packet, Time now) {
  if (packet.size() < Btah::size) return false;
  const uint64_t base = load_be<Btah::size>(packet.data());
  const uint32_t rc_id = Btah::rc_id_of(base);
  ExecutionRecord* const record = records_.find(from, rc_id);
  if (record == nullptr) return false;
  const uint64_t expected = Btah::message_word((record->newest() + 1).wire(), rc_id);
  const PeerState& peer = peers_.at(from);
  const bool usual = (base & Btah::fixed_bits) == expected && peer.assemblies == 0 &&
                     now >= peer.ignored_until && record->context == Sequences::none &&
                     has_room(peer);
  if (!usual) return false;
  bool delivered = false;
  switch (Btah::opcode_of(base)) {
    case TaOpcode::send:
      delivered = deliver<TaOpcode::send>(from, base, packet);
      break;
    case TaOpcode::send_immediate:
      delivered = deliver<TaOpcode::send_immediate>(from, base, packet);
      break;
    case TaOpcode::write_immediate:
      delivered = deliver<TaOpcode::write_immediate>(from, base, packet);
      break;
    default:
      break;
  }
  if (!delivered) return false;
  record->execute_next();
  note_executed(from, rc_id, Btah::opcode_of(base));
  answers_.add({.peer = from,
                .rc_id = rc_id,
                .tassn = Btah::tassn_of(base),
                .status = Response::success,
                .notified = true},
               now);
  return true;
}

template <TaOpcode opcode>
inline bool Target::deliver(PeerId from, uint64_t base, std::span<const std::byte> packet) {
  constexpr const OpcodeInfo& info = info_of(opcode);
  constexpr size_t headers_bytes = chain_bytes(info);
  if (packet.size() < headers_bytes) return false;
  const auto data = packet.subspan(headers_bytes);
  if (data.size() > peers_.at(from).facts.packet_bytes) return false;
  std::conditional_t<info_of(opcode).to_memory, ImmediateHeaders, MessageHeaders> headers;
  read_behind_base<opcode>(headers, packet);
  Executor::Message message{.from = from,
                            .from_jetty = JettyId(Btah::rc_id_of(base)),
                            .solicited = Btah::solicited_of(base),
                            .with_immediate = info.immediate,
                            .written = info.to_memory,
                            .immediate = headers.immediate.immediate,
                            .bytes = static_cast<uint32_t>(data.size())};
  const uint32_t token = info.to_memory ? headers.immediate.token : headers.token.token;
  Jetty* const jetty = addressees_.jetty(headers.target, TokenValue(token));
  Jetty* const receiver = jetty == nullptr ? nullptr : addressees_.receiver(*jetty);
  if (receiver == nullptr) return false;
  if constexpr (info.to_memory) {
    message.bytes = headers.immediate.message_length;
    return executor_.deliver(*jetty, *receiver, message, headers.memory,
                             TokenValue(headers.token.token), data);
  } else {
    return headers.offset.kib == 0 && executor_.deliver(*jetty, *receiver, message, data.data());
  }
}

void Target::handle_request(const transport::Received& packet, const ParsedRequest& request,
                            Time now) {
  if (request.info == nullptr) return refuse_opcode(packet, request.headers.base, now);
  const PeerState& peer = peers_.at(packet.peer);
  const bool ignored = now < peer.ignored_until;
  const uint32_t packet_bytes = peer.facts.packet_bytes;
  if (!is_well_formed(packet, request, packet_bytes)) {
    ++counters_.malformed;
    return;
  }
  if (request.info->opcode == TaOpcode::read) {
    if (!ignored) return handle_read(packet, request, now);
    ++counters_.ignored;
    return;
  }

  if (Assembly* assembly = peer.assemblies > 0 ? assemblies_.find(packet) : nullptr) {
    return handle_further(*assembly, packet, request, now);
  }
  Assembly fresh{.peer = packet.peer,
                 .channel = packet.channel,
                 .slice = packet.slice,
                 .rc_id = request.headers.base.rc_id,
                 .tassn = request.headers.base.tassn,
                 .info = request.info,
                 .solicited = request.headers.base.solicited,
                 .order = request.headers.base.order};
  if (request.info->to_memory)
    fresh.needed = transport::packets_of(request.headers.memory.length, packet_bytes);
  if (ignored) [[unlikely]] {
    fresh.verdict = Verdict::drop;
  } else {
    begin(fresh, packet, request);
  }
  if (fresh.verdict == Verdict::ignore) return advance(fresh.context, now);
  const bool parked = fresh.verdict == Verdict::parked;
  if (!parked) {
    take(fresh, packet, request);
    // A slice of one packet, the common case, is not stored.
    if (fresh.whole()) {
      finish(fresh, request.headers, now);
      return advance(fresh.context, now);
    }
  }
  if (fresh.record != nullptr) fresh.record->set(fresh.number, ExecutionRecord::Mark::executing);
  Assembly& stored = assemblies_.create(fresh);
  stored.expect_next(packet, request);
  if (parked) {
    ++counters_.parked;
    return sequences_.park(stored, packet, request);
  }
  note_refusal(stored, request.headers, now);
  advance(fresh.context, now);
}

// A packet of a stored slice has arrived.
void Target::handle_further(Assembly& assembly, const transport::Received& packet,
                            const ParsedRequest& request, Time now) {
  if (assembly.verdict == Verdict::parked) return sequences_.keep(assembly, packet, request);
  take(assembly, packet, request);
  assembly.expect_next(packet, request);
  if (!assembly.whole()) return note_refusal(assembly, request.headers, now);
  finish(assembly, request.headers, now);
  const uint32_t context = assembly.context;
  assemblies_.erase(assembly);
  advance(context, now);
}

// The packet that ends the slice takes the other way.
bool Target::handle_next(const transport::Received& packet) {
  Assembly* const assembly = assemblies_.latest(packet);
  if (assembly == nullptr || assembly->verdict != Verdict::run ||
      !assembly->expects(packet, peers_.at(packet.peer).facts.packet_bytes)) {
    return false;
  }
  const auto data = packet.bytes.subspan(WriteWords::size);
  if (!executor_.place_next(assembly->expected, data)) return false;
  assembly->expected.address += data.size();
  ++assembly->packets;
  return true;
}

// The slice has an opcode that this device does not know.
void Target::refuse_opcode(const transport::Received& packet, const Btah& base, Time now) {
  ++counters_.refused;
  if (!packet.last) return;
  answers_.add({.peer = packet.peer,
                .rc_id = base.rc_id,
                .tassn = base.tassn,
                .status = Response::completer_error,
                .info = static_cast<uint8_t>(CompleterError::unsupported_request)},
               now);
  // The slice will never be executed, so slices behind it need not wait for it.
  ExecutionRecord* const record = records_.find(packet.peer, base.rc_id);
  if (record != nullptr) pass_over(*record, record->unwrap(base.tassn), now);
}

// The first packet of a slice has arrived: decides whether the slice is executed now. The window of
// a queue's record moves with every slice of the queue.
void Target::begin(Assembly& assembly, const transport::Received& packet,
                   const ParsedRequest& request) {
  using Mark = ExecutionRecord::Mark;
  const Btah& base = request.headers.base;
  ExecutionRecord* record = find_record(records_, assembly, base);
  if (!sequences_.prepare(assembly, record, base)) return;
  if (record == nullptr && !assembly.info->replayable) {
    record = records_.find_or_create(assembly.peer, assembly.rc_id, assembly.tassn);
    if (record == nullptr) {
      assembly.verdict = Verdict::no_room;
      return;
    }
  }
  if (record != nullptr) {
    assembly.number = record->unwrap(assembly.tassn);
    const bool seen = record->see(assembly.number);
    if (seen) sequences_.note(assembly, *record, base);
    const Mark mark = seen ? record->mark(assembly.number) : Mark::withdrawn;
    if (mark == Mark::withdrawn || mark == Mark::executing) {
      assembly.verdict = Verdict::ignore;
      return;
    }
    if (mark == Mark::executed) {
      ++counters_.repeated;
      assembly.verdict = Verdict::executed;
      return;
    }
  }
  if (!sequences_.its_turn(assembly, packet, request)) {
    if (assembly.verdict == Verdict::parked) {
      assembly.record = record;
    } else {
      ++counters_.too_early;
    }
    return;
  }
  start(assembly, packet, request);
  if (assembly.verdict != Verdict::run) return;
  // A repeated slice must not be executed after slices that follow it in order.
  if (!assembly.info->replayable || assembly.context != Sequences::none) assembly.record = record;
}

// Execution of the slice begins with this packet. If the packet shows that a part of the slice may
// not be written, nothing of it is; if it does not show where the slice begins, each packet is
// checked only when it is placed, as all are.
void Target::start(Assembly& assembly, const transport::Received& packet,
                   const ParsedRequest& request) {
  const auto start = start_in_memory(packet, request);
  if (start && !executor_.writable(request.headers, *start)) {
    assembly.verdict = Verdict::refuse;
  } else {
    executor_.begin(assembly, request.headers);
  }
}

void Target::take(Assembly& assembly, const transport::Received& packet,
                  const ParsedRequest& request) {
  ++assembly.packets;
  if (packet.last) assembly.note_length(request, peers_.at(assembly.peer).facts.packet_bytes);
  if (assembly.verdict == Verdict::run) executor_.place(assembly, request);
}

// All packets of the slice have arrived; `request` is the last one.
void Target::finish(Assembly& assembly, const TaRequest& request, Time now) {
  using Mark = ExecutionRecord::Mark;
  const bool notified = assembly.verdict == Verdict::run && executor_.finish(assembly, request);
  sequences_.pass(assembly);
  switch (assembly.verdict) {
    case Verdict::run:
      note_executed(assembly.peer, assembly.rc_id, assembly.info->opcode);
      if (assembly.record != nullptr) assembly.record->set(assembly.number, Mark::executed);
      return answer_executed(assembly, notified, now);
    case Verdict::executed:
      return answer_executed(assembly, false, now);
    case Verdict::too_long:
      // The application gets one completion for the message. If the slice arrives again, it has no
      // effect.
      executor_.finish(assembly, request);
      assembly.abandon(Mark::withdrawn);
      return refuse(assembly, CompleterError::unsupported_request, now);
    case Verdict::refuse:
      note_refusal(assembly, request, now);
      assembly.give_back();
      return refuse(assembly, CompleterError::remote_abort, now);
    case Verdict::no_receives:
      note_refusal(assembly, request, now);
      assembly.give_back();
      return refuse(assembly, CompleterError::unsupported_request, now);
    case Verdict::not_ready:
      ++counters_.not_ready;
      return answer(assembly, Response::receiver_not_ready, not_ready_timer, now);
    case Verdict::no_room:
      return refuse(assembly, CompleterError::no_room, now);
    case Verdict::unsupported:
      assembly.abandon(Mark::none);
      return refuse(assembly, CompleterError::unsupported_request, now);
    case Verdict::no_context:
      return refuse(assembly, CompleterError::unsupported_request, now);
    case Verdict::ignore:
    case Verdict::parked:
      return;
    case Verdict::drop:
      ++counters_.ignored;
      return;
  }
}

void Target::handle_read(const transport::Received& packet, const ParsedRequest& request,
                         Time now) {
  const TaRequest& headers = request.headers;
  // A read is ordered like a slice of one packet. Its assembly is not stored.
  Assembly one{.peer = packet.peer,
               .rc_id = headers.base.rc_id,
               .tassn = headers.base.tassn,
               .info = request.info,
               .order = headers.base.order};
  ExecutionRecord* const record = find_record(records_, one, headers.base);
  if (!sequences_.prepare(one, record, headers.base)) return finish(one, headers, now);
  if (record != nullptr) {
    one.number = record->unwrap(one.tassn);
    if (record->see(one.number)) sequences_.note(one, *record, headers.base);
  }
  if (!sequences_.its_turn(one, packet, request)) {
    ++counters_.too_early;
  } else if (headers.memory.length > 0 && !executor_.readable(headers)) {
    one.verdict = Verdict::refuse;
  } else if (peers_.at(packet.peer).reads_in >= reads_) {
    one.verdict = Verdict::not_ready;
  }
  if (one.verdict != Verdict::run) {
    finish(one, headers, now);
    return advance(one.context, now);
  }
  note_executed(one.peer, one.rc_id, TaOpcode::read);
  answers_.add(Answers::Read{.peer = packet.peer,
                             .rc_id = headers.base.rc_id,
                             .tassn = headers.base.tassn,
                             .token_id = TokenId(headers.memory.token_id),
                             .token = TokenValue(headers.token.token),
                             .address = headers.memory.address,
                             .bytes = headers.memory.length});
  sequences_.pass(one);
  advance(one.context, now);
}

void Target::handle_datagram(const transport::Received& packet, Time now) {
  using Outcome = Datagrams::Outcome;
  switch (datagrams_.handle(packet, now)) {
    case Outcome::delivered:
      ++counters_.datagrams;
      return;
    case Outcome::dropped:
      ++counters_.datagrams_dropped;
      return;
    case Outcome::ignored:
      ++counters_.ignored;
      return;
    case Outcome::malformed:
      ++counters_.malformed;
      return;
  }
}

// Filler: the initiator has cancelled this slice. If it has not been executed yet, it never will
// be. The answer says whether it has been executed.
void Target::handle_filler(const transport::Received& packet, Time now) {
  if (packet.head.size() < Btah::size) return;
  const auto base = Btah::parse(packet.head.first<Btah::size>());
  if (!base) {
    ++counters_.malformed;
    return;
  }
  ++counters_.withdrawn;
  if (Assembly* assembly = assemblies_.find(packet)) forget(*assembly);
  Answers::Answer answer{.peer = packet.peer,
                         .rc_id = base->rc_id,
                         .tassn = base->tassn,
                         .status = Response::completer_error,
                         .info = static_cast<uint8_t>(CompleterError::withdrawn)};
  ExecutionRecord* record = records_.find_or_create(packet.peer, base->rc_id, base->tassn);
  // Without a record, a late packet of the slice could still be executed; but the answer only says
  // that the outcome is unknown, and without an answer the number would block its queue for ever.
  if (record == nullptr) return answers_.add(answer, now);
  const Tassn tassn = record->unwrap(base->tassn);
  if (!record->see(tassn)) return;
  // If the cancelled slice is parked, it arrived under another slice number of the channel.
  if (Assembly* parked = sequences_.find(*record, tassn)) forget(*parked);
  const bool executed = record->mark(tassn) == ExecutionRecord::Mark::executed;
  if (!executed) record->set(tassn, ExecutionRecord::Mark::withdrawn);
  if (executed) {
    answer.status = Response::success;
    answer.info = 0;
    add_value(answer, fetched_.find(*record, tassn));
  }
  answers_.add(answer, now);
  pass_over(*record, tassn, now);
}

// ---- the answer of a slice

void Target::answer(const Assembly& assembly, Response status, uint8_t info, Time now) {
  answers_.add({.peer = assembly.peer,
                .rc_id = assembly.rc_id,
                .tassn = assembly.tassn,
                .status = status,
                .info = info},
               now);
}

void Target::refuse(const Assembly& assembly, CompleterError error, Time now) {
  ++counters_.refused;
  answer(assembly, Response::completer_error, static_cast<uint8_t>(error), now);
}

void Target::answer_executed(const Assembly& assembly, bool notified, Time now) {
  Answers::Answer answer{.peer = assembly.peer,
                         .rc_id = assembly.rc_id,
                         .tassn = assembly.tassn,
                         .status = Response::success,
                         .notified = notified};
  if (brings_back(*assembly.info)) {
    ExecutionRecord& record = *records_.find(assembly.peer, assembly.rc_id);
    if (assembly.verdict == Verdict::run) {
      fetched_.keep(record, assembly.number,
                    {assembly.immediate, static_cast<uint8_t>(assembly.bytes)});
    }
    if (!add_value(answer, fetched_.find(record, assembly.number))) {
      // The initiator had more atomics outstanding than was agreed.
      answer.status = Response::completer_error;
      answer.info = static_cast<uint8_t>(CompleterError::withdrawn);
    }
  }
  answers_.add(answer, now);
}

// ---- other slices of the queue or the peer

// Slices behind this number need not wait for it any more.
void Target::pass_over(const ExecutionRecord& record, Tassn number, Time now) {
  sequences_.pass(record, number);
  advance(record.context, now);
}

// Executes the parked slices whose turn has come.
void Target::advance(uint32_t context, Time now) {
  while (Assembly* next = sequences_.next(context)) unpark(*next, now);
}

// The slice may be executed now: its packets are placed as if they arrived now.
void Target::unpark(Assembly& assembly, Time now) {
  ExecutionRecord& record = *assembly.record;
  assembly.abandon(ExecutionRecord::Mark::none);
  assembly.verdict = Verdict::run;
  bool begun = false;
  const auto place = [&](const transport::Received& packet) {
    ParsedRequest request;
    const bool parsed = parse_request(packet.head, request);
    URMA_ASSERT(parsed, "parked packets were parsed when they arrived");
    if (!std::exchange(begun, true)) {
      start(assembly, packet, request);
      if (assembly.verdict == Verdict::run) {
        assembly.record = &record;
        record.set(assembly.number, ExecutionRecord::Mark::executing);
      }
    }
    take(assembly, packet, request);
    if (!assembly.whole()) {
      note_refusal(assembly, request.headers, now);
      return false;
    }
    finish(assembly, request.headers, now);
    return true;
  };
  if (sequences_.unpark(assembly, place)) assemblies_.erase(assembly);
}

// Raises the event once per slice, and not only when all of it has arrived, because a peer that
// guesses tokens need not send the rest. The slice is answered with the same verdict, even if the
// peer is ignored from now on.
void Target::note_refusal(Assembly& assembly, const TaRequest& request, Time now) {
  const Verdict verdict = assembly.verdict;
  if (verdict != Verdict::refuse && verdict != Verdict::no_receives) return;
  if (std::exchange(assembly.complained, true)) return;
  if (assembly.missing) {
    answers_.report_missing(assembly.peer, TokenId(request.memory.token_id));
  } else {
    complain(assembly.peer, request, *assembly.info, now);
  }
  assembly.verdict = verdict;
}

// The peer learns of the refusal from the answer; this informs the owner.
void Target::complain(PeerId peer, const TaRequest& request, const OpcodeInfo& info, Time now) {
  const auto until = refusals_.note(peer, request, info, now);
  if (until) ignore(peers_.at(peer), *until);
}

// From now on packets of the peer are acknowledged, but the slices that they belong to are dropped.
// Assemblies of slices in progress are kept until all their packets have arrived, and are erased
// then.
void Target::ignore(PeerState& peer, Time until) {
  peer.ignored_until = until;
  Assembly* next = assemblies_.first_of(peer);
  while (next != nullptr) {
    Assembly& assembly = *next;
    next = assemblies_.next_of(assembly);
    const bool parked = assembly.verdict == Verdict::parked;
    if (parked) {
      assembly.packets = assembly.kept.count;
      sequences_.leave(assembly);
    }
    assembly.give_back();
    assembly.verdict = Verdict::drop;
    if (parked && assembly.whole()) assemblies_.erase(assembly);
  }
}

// Drops a slice without executing it.
void Target::forget(Assembly& assembly) {
  if (assembly.verdict == Verdict::parked) sequences_.leave(assembly);
  assembly.give_back();
  assemblies_.erase(assembly);
}

void Target::down(PeerState& peer, bool over) {
  answers_.down(peer);
  // Incomplete slices will arrive again, on another channel.
  while (Assembly* assembly = assemblies_.first_of(peer)) forget(*assembly);
  if (!over) return;
  records_.forget(peer, [&](ExecutionRecord& record) {
    sequences_.forget(record, peer);
    fetched_.forget(record);
  });
}

void Target::flush_memory(const std::byte* base, uint64_t bytes) {
  assemblies_.flush(base, bytes);
  executor_.flush_receives(base, bytes);
}

}  // namespace urma::jetty
