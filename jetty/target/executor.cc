// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/executor.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/accelerator_memory.h"
#include "base/copy.h"
#include "jetty/atomics.h"
#include "jetty/slicer.h"

namespace urma::jetty {

using Verdict = Assembly::Verdict;

// Reads are executed by Target::handle_read, and responses go to the initiator.
void Executor::begin(Assembly& assembly, const TaRequest& request) {
  switch (assembly.info->opcode) {
    case TaOpcode::send:
    case TaOpcode::send_immediate:
      return begin_message(assembly, request);
    case TaOpcode::write_immediate:
      return begin_immediate(assembly, request);
    case TaOpcode::write_notify:
      return begin_notify(assembly, request);
    case TaOpcode::compare_swap:
    case TaOpcode::swap:
    case TaOpcode::atomic_store:
    case TaOpcode::atomic_load:
    case TaOpcode::fetch_add:
    case TaOpcode::fetch_sub:
    case TaOpcode::fetch_and:
    case TaOpcode::fetch_or:
    case TaOpcode::fetch_xor:
      return begin_atomic(assembly, request);
    case TaOpcode::write:
    case TaOpcode::read:
    case TaOpcode::answer:
    case TaOpcode::read_response:
    case TaOpcode::atomic_response:
      return;
  }
}

void Executor::place(Assembly& assembly, const ParsedRequest& packet) {
  if (assembly.info->operands > 0) return run_atomic(assembly, packet);
  assembly.info->to_memory ? place_memory(assembly, packet) : place_message(assembly, packet);
}

bool Executor::finish(Assembly& assembly, const TaRequest& request) {
  const bool staged = assembly.copies != 0 && assembly.verdict == Verdict::run;
  if (staged && !staging_.finish(assembly.copies)) [[unlikely]] {
    assembly.verdict = Verdict::refuse;
    assembly.missing = true;
    return false;
  }
  switch (assembly.info->opcode) {
    case TaOpcode::send:
    case TaOpcode::send_immediate:
      return finish_message(assembly);
    case TaOpcode::write_immediate:
      return finish_immediate(assembly);
    case TaOpcode::write_notify:
      return finish_notify(assembly, request);
    case TaOpcode::compare_swap:
    case TaOpcode::swap:
    case TaOpcode::atomic_store:
    case TaOpcode::atomic_load:
    case TaOpcode::fetch_add:
    case TaOpcode::fetch_sub:
    case TaOpcode::fetch_and:
    case TaOpcode::fetch_or:
    case TaOpcode::fetch_xor:
    case TaOpcode::write:
    case TaOpcode::read:
    case TaOpcode::answer:
    case TaOpcode::read_response:
    case TaOpcode::atomic_response:
      return false;
  }
  return false;
}

bool Executor::deliver(const Jetty& to, Jetty& receiver, const Message& message,
                       const std::byte* data) {
  if (receiver.recycled_count > 0) return false;
  Jfr& jfr = receiver.queues->jfr();
  if (jfr.waiting() == 0) return false;
  const uint16_t lease = jfr.next_posted();
  const ReceiveSlot& slot = jfr.slot(lease);
  if (slot.piece_count > 1 || message.bytes > slot.bytes || slot.staged) return false;
  jfr.take_posted();
  copy_bytes(const_cast<std::byte*>(slot.piece.data), data, message.bytes);
  complete(to, receiver, message, slot.tag, lease);
  return true;
}

bool Executor::deliver(const Jetty& to, Jetty& receiver, const Message& message,
                       const Maetah& memory, TokenValue token, std::span<const std::byte> data) {
  if (memory.length != data.size()) return false;
  Jfr& jfr = receiver.queues->jfr();
  const bool takes_receive = receiver.immediates_take_receives;
  if (takes_receive ? receiver.recycled_count > 0 || jfr.waiting() == 0
                    : receiver.immediates_raised - jfr.immediates_polled() >= jfr.count()) {
    return false;
  }
  if (!data.empty()) {
    const auto place = segments_.access(TokenId(memory.token_id), token, memory.address,
                                        data.size(), Rights::write);
    if (place.at == nullptr || place.guarded) return false;
    copy_bytes(place.at, data.data(), data.size());
  }
  if (takes_receive) {
    const uint16_t lease = jfr.take_posted();
    complete(to, receiver, message, jfr.slot(lease).tag, lease);
  } else {
    ++receiver.immediates_raised;
    complete(to, receiver, message, 0, Queues::none);
  }
  return true;
}

inline void Executor::complete(const Jetty& to, Jetty& receiver, const Message& message,
                               uint64_t tag, uint16_t lease) {
  jetties_.complete(receiver,
                    {.status = Status::ok,
                     .operation = Operation::receive,
                     .with_immediate = message.with_immediate,
                     .solicited = message.solicited,
                     .written = message.written,
                     .bytes = message.bytes,
                     .tag = tag,
                     .immediate = message.immediate,
                     .jetty = to.id,
                     .from_jetty = message.from_jetty,
                     .from = message.from},
                    lease);
}

// ---- receive slots and permits

// Returns the Jetty whose slots and permits the slice takes. If there is none, the verdict says
// why.
Jetty* Executor::receiver(Assembly& assembly, const Addressees::Found& target) {
  assembly.verdict = target.why;
  if (target.jetty == nullptr) return nullptr;
  Jetty* receiver = addressees_.receiver(*target.jetty);
  if (receiver != nullptr && receiver->queues->jfr().count() > 0) return receiver;
  assembly.verdict = Verdict::no_receives;
  return nullptr;
}

void Executor::begin_message(Assembly& assembly, const TaRequest& request) {
  if (!request.base.token_present) {
    assembly.verdict = Verdict::refuse;
    return;
  }
  const auto to = addressees_.find(request.target, TokenValue(request.token.token), false);
  Jetty* from = receiver(assembly, to);
  if (from == nullptr) return;
  if (!from->take_receive(assembly.receive)) {
    assembly.verdict = Verdict::not_ready;
    return;
  }
  assembly.hold(*to.jetty, *from);
  assembly.immediate = request.immediate.immediate;
}

// Takes a permit for an immediate, or a receive slot. Returns false if there is none.
bool Executor::take_for_immediate(Assembly& assembly, Jetty& receiver) {
  if (receiver.immediates_take_receives) return receiver.take_receive(assembly.receive);
  const Jfr& jfr = receiver.queues->jfr();
  if (receiver.immediates_raised - jfr.immediates_polled() >= jfr.count()) return false;
  ++receiver.immediates_raised;
  assembly.permit = true;
  return true;
}

void Executor::begin_immediate(Assembly& assembly, const TaRequest& request) {
  const auto to = addressees_.find(request.target, TokenValue(request.immediate.token), true);
  Jetty* from = receiver(assembly, to);
  if (from == nullptr) return;
  if (!take_for_immediate(assembly, *from)) {
    assembly.verdict = Verdict::not_ready;
    return;
  }
  assembly.hold(*to.jetty, *from);
  assembly.immediate = request.immediate.immediate;
  assembly.message_length = request.immediate.message_length;
}

// Returns where the notification is stored, or null if that is not allowed. It is stored by one
// instruction, so the address must be aligned; and the memory must not be guarded, because the
// kernel might copy the value in parts.
std::byte* Executor::notified(const Ntfetah& notify) const {
  if (notify.address % notify_bytes != 0) return nullptr;
  const auto to = segments_.access(TokenId(notify.token_id), TokenValue(notify.token),
                                   notify.address, notify_bytes, Rights::write);
  return to.guarded ? nullptr : to.at;
}

// Checks the notification before any data is placed, so that a refused work has changed nothing.
void Executor::begin_notify(Assembly& assembly, const TaRequest& request) {
  if (notified(request.notify) == nullptr) assembly.verdict = Verdict::refuse;
}

// Checks that the atomic exists before any memory is accessed.
void Executor::begin_atomic(Assembly& assembly, const TaRequest& request) {
  const uint32_t bytes = request.memory.length;
  const bool known = is_atomic(static_cast<Atomic>(assembly.info->opcode),
                               static_cast<Update>(request.update.update)) &&
                     is_atomic_width(bytes) && request.memory.address % bytes == 0;
  if (!known) assembly.verdict = Verdict::unsupported;
}

// ---- placing data

// A request without a token is allowed only if the segment needs none.
bool Executor::shows_token(const TaRequest& request) const {
  return request.base.token_present || segments_.unchecked(TokenId(request.memory.token_id));
}

void Executor::place_memory(Assembly& assembly, const ParsedRequest& packet) {
  if (packet.data.empty()) return;
  const TaRequest& request = packet.headers;
  const auto to =
      segments_.access(TokenId(request.memory.token_id), TokenValue(request.token.token),
                       request.memory.address, packet.data.size(), Rights::write);
  if (to.at == nullptr || !shows_token(request)) {
    assembly.verdict = Verdict::refuse;
  } else if (!put(assembly, to, packet.data)) {
    assembly.verdict = Verdict::refuse;
    assembly.missing = true;
  }
}

bool Executor::place_next(const WriteWords& headers, std::span<const std::byte> data) {
  const auto to =
      segments_.access(TokenId(Maetah::token_id_of(headers.range)), TokenValue(headers.token),
                       headers.address, data.size(), Rights::write);
  if (to.at == nullptr || to.guarded) return false;
  std::memcpy(to.at, data.data(), data.size());
  return true;
}

// Executes an atomic, which is one packet. It is not executed on unaligned memory, nor on guarded
// memory, because an instruction cannot report that its memory is not mapped any more.
void Executor::run_atomic(Assembly& assembly, const ParsedRequest& packet) {
  const TaRequest& request = packet.headers;
  const uint32_t bytes = request.memory.length;
  const auto word =
      segments_.access(TokenId(request.memory.token_id), TokenValue(request.token.token),
                       request.memory.address, bytes, Rights::atomic);
  if (word.at == nullptr || !shows_token(request)) {
    assembly.verdict = Verdict::refuse;
    return;
  }
  if (word.guarded || reinterpret_cast<uintptr_t>(word.at) % bytes != 0) {
    assembly.verdict = Verdict::unsupported;
    return;
  }
  const bool compares = assembly.info->operands > 1;
  assembly.bytes = bytes;
  assembly.immediate =
      execute({.what = static_cast<Atomic>(assembly.info->opcode),
               .update = static_cast<Update>(request.update.update),
               .bytes = bytes,
               .operand = get_little(packet.data.first(bytes)),
               .expected = compares ? get_little(packet.data.subspan(bytes, bytes)) : 0},
              word.at);
}

// Returns the number of the copies to an accelerator that are begun for this slice.
uint64_t Executor::owner(Assembly& assembly) {
  if (assembly.copies == 0) assembly.copies = staging_.next_owner();
  return assembly.copies;
}

// Returns false if the memory is guarded and not accessible.
bool Executor::put(Assembly& assembly, const memseg::SegmentTable::Access& to,
                   std::span<const std::byte> data) {
  if (to.guarded) [[unlikely]] {
    return segments_.guard().copy(to.at, data.data(), data.size(), owner(assembly));
  }
  std::memcpy(to.at, data.data(), data.size());
  return true;
}

void Executor::place_message(Assembly& assembly, const ParsedRequest& packet) {
  const uint64_t offset = uint64_t{packet.headers.offset.kib} * 1024;
  const Queues& queues = *assembly.receiver->queues;
  if (offset + packet.data.size() > queues.jfr().slot(assembly.receive).bytes) {
    assembly.verdict = Verdict::too_long;
    return;
  }
  const std::span<const Piece> pieces = queues.jfr().pieces(assembly.receive);
  if (queues.jfr().slot(assembly.receive).staged) [[unlikely]] {
    if (staging_.scatter(pieces, static_cast<uint32_t>(offset), packet.data, owner(assembly))) {
      return;
    }
    assembly.verdict = Verdict::refuse;
    assembly.missing = true;
    return;
  }
  scatter(pieces, static_cast<uint32_t>(offset), packet.data);
}

bool Executor::readable(const TaRequest& request) const {
  return shows_token(request) &&
         segments_.check(TokenId(request.memory.token_id), TokenValue(request.token.token),
                         request.memory.address, request.memory.length, Rights::read) != nullptr;
}

bool Executor::writable(const TaRequest& request, uint64_t start) const {
  return shows_token(request) &&
         segments_.check(TokenId(request.memory.token_id), TokenValue(request.token.token), start,
                         request.memory.length, Rights::write) != nullptr;
}

std::optional<Executor::Complaint> Executor::complaint(const TaRequest& request,
                                                       const OpcodeInfo& info) const {
  const Event bad_token{.kind = EventKind::bad_tokens};
  const auto token = TokenValue(request.token.token);
  const bool to_jetty = info.opcode != TaOpcode::read && (!info.to_memory || info.immediate);
  const auto segment = TokenId(request.memory.token_id);
  if ((info.to_memory || info.opcode == TaOpcode::read) && request.memory.length > 0 &&
      (!shows_token(request) || !segments_.names(segment, token))) {
    return Complaint{bad_token, request.base.token_present && !segments_.once(segment, token)};
  }
  if (info.notify) {
    const auto there = TokenId(request.notify.token_id);
    const auto shown = TokenValue(request.notify.token);
    if (!segments_.names(there, shown)) {
      return Complaint{bad_token, !segments_.once(there, shown)};
    }
  }
  if (!to_jetty) return std::nullopt;
  Jetty* const jetty = addressees_.with_number(request.target);
  if (jetty == nullptr) return Complaint{bad_token};
  const TokenValue theirs = info.to_memory ? TokenValue(request.immediate.token) : token;
  if (number(jetty->token) != number(theirs)) return Complaint{bad_token, true};
  const Event error{.kind = EventKind::jetty_error, .status = Status::flushed, .jetty = jetty->id};
  if (!jetty->accepts_messages()) return Complaint{error};
  const bool group = is_group(JettyId(request.target.target));
  if (group || addressees_.receiver(*jetty) == nullptr) return Complaint{error};
  return std::nullopt;
}

// ---- completions

Completion Executor::arrival(const Assembly& assembly, Status status) const {
  return {.status = status,
          .operation = Operation::receive,
          .with_immediate = assembly.info->immediate,
          .solicited = assembly.solicited,
          .written = assembly.info->to_memory,
          .immediate = assembly.immediate,
          .jetty = assembly.jetty->id,
          .from_jetty = JettyId(assembly.rc_id),
          .from = assembly.peer};
}

// Pushes the completion to the queue of the Jetty or JFR that owns the slot or permit, whichever
// Jetty the slice was sent to.
void Executor::complete_receive(Assembly& assembly, const Completion& completion) {
  jetties_.complete(*assembly.receiver, completion, assembly.receive);
  assembly.let_go();
}

bool Executor::finish_message(Assembly& assembly) {
  Completion completion = arrival(
      assembly, assembly.verdict == Verdict::too_long ? Status::receive_too_small : Status::ok);
  completion.bytes = assembly.bytes;
  completion.tag = assembly.receiver->queues->jfr().slot(assembly.receive).tag;
  complete_receive(assembly, completion);
  return true;
}

bool Executor::finish_immediate(Assembly& assembly) {
  Completion completion = arrival(assembly, Status::ok);
  completion.bytes = assembly.message_length;
  if (assembly.receive != Queues::none) {
    completion.tag = assembly.receiver->queues->jfr().slot(assembly.receive).tag;
  }
  complete_receive(assembly, completion);
  return true;
}

// A thread that sees the value also sees the data, including that of the work's earlier slices. The
// segment may have been unregistered since the first packet, hence the second check. No completion
// is pushed: the application polls the value.
bool Executor::finish_notify(Assembly& assembly, const TaRequest& request) {
  std::byte* at = notified(request.notify);
  if (at == nullptr) {
    assembly.verdict = Verdict::refuse;
    return false;
  }
  std::atomic_ref(*reinterpret_cast<uint64_t*>(at))
      .store(request.notify.value, std::memory_order_release);
  return false;
}

void Executor::flush_receive(Jetty& jetty, uint16_t lease) {
  jetties_.complete(jetty,
                    {.status = Status::flushed,
                     .operation = Operation::receive,
                     .tag = jetty.queues->jfr().slot(lease).tag,
                     .jetty = jetty.id,
                     .from = {}},
                    lease);
}

void Executor::flush_receives(Jetty& jetty) {
  if (!jetty.queues->jfr().used()) return;
  uint16_t lease = Queues::none;
  while (jetty.take_receive(lease)) flush_receive(jetty, lease);
}

void Executor::flush_receives(const std::byte* base, uint64_t bytes) {
  jetties_.for_each([&](Jetty& jetty) { flush_receives(jetty, base, bytes); });
}

void Executor::flush_receives(Jetty& jetty, const std::byte* base, uint64_t bytes) {
  Leases& posted = jetty.queues->jfr();
  if (!posted.used()) return;
  // Moves all posted slots to the recycled ones, the last of which is used next.
  std::ranges::reverse(jetty.recycled());
  for (uint32_t count = posted.waiting(); count > 0; --count) jetty.recycle(posted.take_posted());
  uint16_t* const waiting = jetty.queues->jfr().recycled();
  uint16_t* kept = waiting;
  for (const uint16_t lease : jetty.recycled()) {
    if (overlaps(jetty.queues->jfr().pieces(lease), base, bytes)) {
      flush_receive(jetty, lease);
    } else {
      *kept++ = lease;
    }
  }
  jetty.recycled_count = static_cast<uint16_t>(kept - waiting);
  std::ranges::reverse(jetty.recycled());
}

}  // namespace urma::jetty
