#include "jetty/target.h"

#include <algorithm>

#include "jetty/flow.h"
#include "jetty/slicer.h"

namespace urma::jetty {
namespace {

// What an initiator is told to wait when no receive slot is free: 2 us * 2^4.
constexpr uint8_t not_ready_timer = 4;

}  // namespace

Target::Target(const Limits& limits, PeerStates& peers, memseg::SegmentTable& segments,
               Jetties& jetties, transport::Channels& channels, EventSink& events)
    : reads_(limits.reads),
      peers_(peers),
      channels_(channels),
      events_(events),
      executor_(segments, jetties),
      answers_(limits.answers, peers, segments),
      records_(limits.records, limits.share, peers),
      assemblies_(limits.assemblies),
      by_slice_(limits.assemblies) {}

// Each packet makes at most one answer and one assembly. A peer may hold as much as it leaves free,
// so that whoever takes all it can get leaves the others a share.
bool Target::admits(const transport::Received& packet, size_t waiting) {
  const PeerState& peer = peers_.at(packet.peer);
  if (peer.answers + waiting >= answers_.room()) return false;
  if (peer.assemblies + waiting < assemblies_.capacity() - assemblies_.size()) return true;
  // What has begun may end: that is what makes room.
  return packet.withdrawn || find(packet) != nullptr;
}

// ---- requests

bool Target::handle_at_once(const transport::Received& packet, Time now) {
  if (!packet.last || packet.withdrawn || packet.head.empty()) return false;
  switch (static_cast<TaOpcode>(packet.head[0])) {
    case TaOpcode::send:
    case TaOpcode::send_immediate:
      return deliver<MessageHeaders>(packet, now);
    case TaOpcode::write_immediate:
      return deliver<ImmediateHeaders>(packet, now);
    default:
      return false;
  }
}

template <class Headers>
bool Target::deliver(const transport::Received& packet, Time now) {
  Headers headers;
  if (!headers.assign(packet.head)) return false;
  const PeerState& peer = peers_.at(packet.peer);
  const auto data = packet.bytes.subspan(headers.bytes);
  if (peer.assemblies > 0 || data.size() > peer.facts.packet_bytes) return false;
  if (now < peer.deaf_until) [[unlikely]]
    return false;
  ExecutionRecord* record = records_.find(packet.peer, headers.base.rc_id);
  if (record == nullptr || !record->is_next(headers.base.tassn)) return false;
  if (!executor_.deliver(headers, data, packet.peer)) return false;
  record->execute_next();
  ++counters_.executed;
  answers_.add({.peer = packet.peer,
                .rc_id = headers.base.rc_id,
                .tassn = headers.base.tassn,
                .status = Response::success,
                .told = true},
               now);
  return true;
}

void Target::handle_request(const transport::Received& packet, const ParsedRequest& request,
                            Time now) {
  if (request.info == nullptr) {
    ++counters_.refused;
    if (packet.last) {
      answers_.add({.peer = packet.peer,
                    .rc_id = request.headers.base.rc_id,
                    .tassn = request.headers.base.tassn,
                    .status = Response::completer_error,
                    .info = static_cast<uint8_t>(CompleterError::unsupported_request)},
                   now);
    }
    return;
  }
  const PeerState& peer = peers_.at(packet.peer);
  const bool unheard = now < peer.deaf_until;
  const uint32_t packet_bytes = peer.facts.packet_bytes;
  if (!well_formed(packet, request, packet_bytes)) {
    ++counters_.malformed;
    return;
  }
  if (request.info->opcode == TaOpcode::read) {
    if (!unheard) return handle_read(packet, request, now);
    ++counters_.unheard;
    return;
  }

  if (Assembly* assembly = peer.assemblies > 0 ? find(packet) : nullptr) {
    take(*assembly, packet, request, packet_bytes);
    if (assembly->packets != assembly->needed) return;
    finish(*assembly, request.headers, now);
    return erase(*assembly);
  }
  Assembly fresh{.peer = packet.peer,
                 .channel = packet.channel,
                 .slice = packet.slice,
                 .rc_id = request.headers.base.rc_id,
                 .tassn = request.headers.base.tassn,
                 .info = request.info,
                 .solicited = request.headers.base.solicited};
  if (request.info->to_memory)
    fresh.needed = transport::packets_of(request.headers.memory.length, packet_bytes);
  if (unheard) [[unlikely]] {
    fresh.verdict = Verdict::drop;
  } else {
    begin(fresh, packet, request);
  }
  if (fresh.verdict == Verdict::ignore) return;
  take(fresh, packet, request, packet_bytes);
  // A slice of one packet, the common case, is never remembered.
  if (fresh.packets == fresh.needed) return finish(fresh, request.headers, now);
  if (fresh.record != nullptr) fresh.record->set(fresh.number, ExecutionRecord::Mark::executing);
  create(fresh);
}

// Non-last packets are full, the last is the rest (UB 4.3); nothing is longer than a slice.
bool Target::well_formed(const transport::Received& packet, const ParsedRequest& request,
                         uint32_t packet_bytes) const {
  const size_t size = request.data.size();
  if (request.info->opcode == TaOpcode::read) {
    return packet.last && request.headers.memory.length <= slice_bytes;
  }
  if (size > packet_bytes || (!packet.last && size != packet_bytes)) return false;
  if (!request.info->to_memory) {
    const uint64_t offset = uint64_t{request.headers.offset.kib} * 1024;
    return offset % packet_bytes == 0 && offset + size <= max_send_bytes &&
           (size > 0 || offset == 0);
  }
  const uint32_t length = request.headers.memory.length;
  if (length > slice_bytes) return false;
  const uint32_t last = length <= packet_bytes ? length : (length - 1) % packet_bytes + 1;
  return packet.last ? size == last : length > packet_bytes;
}

void Target::begin(Assembly& assembly, const transport::Received& packet,
                   const ParsedRequest& request) {
  // The window of a queue's record moves with everything that the queue sends.
  ExecutionRecord* record = records_.find(assembly.peer, assembly.rc_id);
  if (record == nullptr && !assembly.info->replayable) {
    record = records_.find_or_create(assembly.peer, assembly.rc_id, assembly.tassn);
    if (record == nullptr) {
      assembly.verdict = Verdict::no_room;
      return;
    }
  }
  if (record != nullptr) {
    assembly.number = record->unwrap(assembly.tassn);
    const auto mark = record->see(assembly.number) ? record->mark(assembly.number)
                                                   : ExecutionRecord::Mark::withdrawn;
    if (mark == ExecutionRecord::Mark::withdrawn || mark == ExecutionRecord::Mark::executing) {
      assembly.verdict = Verdict::ignore;
      return;
    }
    if (mark == ExecutionRecord::Mark::executed) {
      ++counters_.repeated;
      assembly.verdict = Verdict::executed;
      return;
    }
  }
  if (leaves_segment(packet, request)) {
    assembly.verdict = Verdict::refuse;
    return;
  }
  executor_.begin(assembly, request.headers);
  if (assembly.info->replayable || assembly.verdict != Verdict::run) return;
  assembly.record = record;
}

// Whether the first packet of a slice to come tells that not all of the slice may be written. It
// knows where the slice begins if it is the last one, or if nothing before it is missing. Otherwise
// each packet is checked for itself when it is placed, as all of them are.
bool Target::leaves_segment(const transport::Received& packet, const ParsedRequest& request) const {
  const Maetah& memory = request.headers.memory;
  const size_t size = request.data.size();
  if (!request.info->to_memory || size == memory.length) return false;
  if (!packet.last && !packet.in_order) return false;
  const uint64_t start = packet.last ? memory.address + size - memory.length : memory.address;
  return !executor_.writable(request.headers, start);
}

void Target::take(Assembly& assembly, const transport::Received& packet,
                  const ParsedRequest& request, uint32_t packet_bytes) {
  ++assembly.packets;
  if (packet.last && !assembly.info->to_memory) {
    // The last packet of a message says how long it is.
    const uint32_t offset = request.headers.offset.kib * 1024;
    assembly.bytes = offset + static_cast<uint32_t>(request.data.size());
    assembly.needed = transport::packets_of(assembly.bytes, packet_bytes);
  }
  if (assembly.verdict == Verdict::run) executor_.place(assembly, request);
}

// All of the slice has come, this request last.
void Target::finish(Assembly& assembly, const TaRequest& request, Time now) {
  using Mark = ExecutionRecord::Mark;
  const bool told = assembly.verdict == Verdict::run && executor_.finish(assembly, request);
  switch (assembly.verdict) {
    case Verdict::run: {
      ++counters_.executed;
      if (assembly.record != nullptr) assembly.record->set(assembly.number, Mark::executed);
      return answer(assembly, Response::success, 0, told, now);
    }
    case Verdict::executed:
      return answer(assembly, Response::success, 0, false, now);
    case Verdict::too_long:
      // The application is told of it once; if it comes again, nothing is.
      executor_.finish(assembly, request);
      abandon(assembly, Mark::withdrawn);
      ++counters_.refused;
      return answer(assembly, Response::completer_error,
                    static_cast<uint8_t>(CompleterError::unsupported_request), false, now);
    case Verdict::refuse:
    case Verdict::no_receives:
      ++counters_.refused;
      complain(assembly.peer, request, *assembly.info, now);
      executor_.release(assembly);
      abandon(assembly, Mark::none);
      return answer(assembly, Response::completer_error,
                    static_cast<uint8_t>(assembly.verdict == Verdict::refuse
                                             ? CompleterError::remote_abort
                                             : CompleterError::unsupported_request),
                    false, now);
    case Verdict::not_ready:
      ++counters_.not_ready;
      return answer(assembly, Response::receiver_not_ready, not_ready_timer, false, now);
    case Verdict::no_room:
      ++counters_.refused;
      return answer(assembly, Response::completer_error,
                    static_cast<uint8_t>(CompleterError::no_room), false, now);
    case Verdict::ignore:
      return;
    case Verdict::drop:
      ++counters_.unheard;
      return;
  }
}

// The peer is told that it was refused; here it is said when somebody should look after it.
void Target::complain(PeerId peer, const TaRequest& request, const OpcodeInfo& info, Time now) {
  auto complaint = executor_.complaint(request, info);
  if (!complaint) return;
  complaint->event.peer = peer;
  events_.raise(complaint->event);
  if (!complaint->guessed) return;
  if (const auto until = guesses_.wrong(channels_.address(peer), now)) {
    stop_listening(peers_.at(peer), *until);
    events_.raise({.kind = EventKind::guessing, .peer = peer});
  }
}

// Its packets are acknowledged as before, and nothing is done about the slices that they are of.
// Those that have begun are remembered until they are whole, so that nothing stays of them.
void Target::stop_listening(PeerState& peer, Time until) {
  peer.deaf_until = until;
  for (uint32_t i = peer.first_assembly; i != Assembly::none; i = assemblies_.at(i).next) {
    Assembly& assembly = assemblies_.at(i);
    executor_.release(assembly);
    abandon(assembly, ExecutionRecord::Mark::none);
    assembly.verdict = Verdict::drop;
  }
}

// The slice will not be executed by this assembly.
void Target::abandon(Assembly& assembly, ExecutionRecord::Mark mark) {
  if (assembly.record == nullptr) return;
  assembly.record->set(assembly.number, mark);
  assembly.record = nullptr;
}

void Target::answer(const Assembly& assembly, Response status, uint8_t info, bool told, Time now) {
  answers_.add({.peer = assembly.peer,
                .rc_id = assembly.rc_id,
                .tassn = assembly.tassn,
                .status = status,
                .info = info,
                .told = told},
               now);
}

void Target::handle_read(const transport::Received& packet, const ParsedRequest& request,
                         Time now) {
  const TaRequest& headers = request.headers;
  Answers::Answer answer{.peer = packet.peer,
                         .rc_id = headers.base.rc_id,
                         .tassn = headers.base.tassn,
                         .status = Response::completer_error};
  if (ExecutionRecord* record = records_.find(packet.peer, headers.base.rc_id)) {
    record->see(record->unwrap(headers.base.tassn));
  }
  if (headers.memory.length > 0 && !executor_.readable(headers)) {
    ++counters_.refused;
    complain(packet.peer, headers, *request.info, now);
    answer.info = static_cast<uint8_t>(CompleterError::remote_abort);
    return answers_.add(answer, now);
  }
  if (peers_.at(packet.peer).reads_in >= reads_) {
    ++counters_.not_ready;
    answer.status = Response::receiver_not_ready;
    answer.info = not_ready_timer;
    return answers_.add(answer, now);
  }
  ++counters_.executed;
  answers_.add(Answers::Read{.peer = packet.peer,
                             .rc_id = headers.base.rc_id,
                             .tassn = headers.base.tassn,
                             .token_id = TokenId(headers.memory.token_id),
                             .token = TokenValue(headers.token.token),
                             .address = headers.memory.address,
                             .bytes = headers.memory.length});
}

// A slice that its initiator gave up. Unless it has executed it never will; either is said.
void Target::handle_filler(const transport::Received& packet, Time now) {
  if (packet.head.size() < Btah::size) return;
  const auto base = Btah::parse(packet.head.first<Btah::size>());
  if (!base) {
    ++counters_.malformed;
    return;
  }
  ++counters_.withdrawn;
  if (Assembly* assembly = find(packet)) {
    executor_.release(*assembly);
    abandon(*assembly, ExecutionRecord::Mark::none);
    erase(*assembly);
  }
  // Without a record nothing keeps a late packet of it from being executed: nothing is said then.
  ExecutionRecord* record = records_.find_or_create(packet.peer, base->rc_id, base->tassn);
  if (record == nullptr) return;
  const Tassn tassn = record->unwrap(base->tassn);
  if (!record->see(tassn)) return;
  const bool executed = record->mark(tassn) == ExecutionRecord::Mark::executed;
  if (!executed) record->set(tassn, ExecutionRecord::Mark::withdrawn);
  Answers::Answer answer{.peer = packet.peer, .rc_id = base->rc_id, .tassn = base->tassn};
  if (!executed) {
    answer.status = Response::completer_error;
    answer.info = static_cast<uint8_t>(CompleterError::withdrawn);
  }
  answers_.add(answer, now);
}

// ---- assemblies

Assembly* Target::find(const transport::Received& packet) {
  const uint32_t index = by_slice_.find(key(packet.channel, packet.slice));
  return index == UINT32_MAX ? nullptr : &assemblies_.at(index);
}

Assembly* Target::create(const Assembly& assembly) {
  Assembly* created = assemblies_.create(assembly);
  const uint32_t index = assemblies_.index_of(created);
  by_slice_.insert(key(assembly.channel, assembly.slice), index);
  PeerState& peer = peers_.at(assembly.peer);
  created->next = peer.first_assembly;
  if (peer.first_assembly != Assembly::none) assemblies_.at(peer.first_assembly).previous = index;
  peer.first_assembly = index;
  ++peer.assemblies;
  return created;
}

void Target::erase(Assembly& assembly) {
  PeerState& peer = peers_.at(assembly.peer);
  --peer.assemblies;
  (assembly.previous != Assembly::none ? assemblies_.at(assembly.previous).next
                                       : peer.first_assembly) = assembly.next;
  if (assembly.next != Assembly::none) assemblies_.at(assembly.next).previous = assembly.previous;
  by_slice_.erase(key(assembly.channel, assembly.slice));
  assemblies_.destroy(&assembly);
}

void Target::down(PeerState& peer, bool over) {
  answers_.down(peer);
  // What has not come whole will come again, on another channel.
  while (peer.first_assembly != Assembly::none) {
    Assembly& assembly = assemblies_.at(peer.first_assembly);
    executor_.release(assembly);
    abandon(assembly, ExecutionRecord::Mark::none);
    erase(assembly);
  }
  if (over) records_.forget(peer);
}

void Target::detach(Jetty& jetty) {
  if (jetty.assemblies == 0) return;
  assemblies_.for_each([&](Assembly& assembly) {
    if (assembly.jetty != &jetty && assembly.receiver != &jetty) return;
    // The rest of it is refused when it has come: there is no such Jetty, or it lost its JFR.
    const Verdict verdict = assembly.jetty == &jetty ? Verdict::refuse : Verdict::no_receives;
    executor_.release(assembly);
    abandon(assembly, ExecutionRecord::Mark::none);
    assembly.verdict = verdict;
  });
}

void Target::flush_memory(const std::byte* base, uint64_t bytes) {
  assemblies_.for_each([&](Assembly& assembly) {
    if (!executor_.fills(assembly, base, bytes)) return;
    executor_.release(assembly);
    abandon(assembly, ExecutionRecord::Mark::none);
    assembly.verdict = Verdict::refuse;
  });
  executor_.flush_receives(base, bytes);
}

}  // namespace urma::jetty
