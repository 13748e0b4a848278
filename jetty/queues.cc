#include "jetty/queues.h"

#include <bit>

#include "memseg/segment_table.h"
#include "urma/base/copy.h"

namespace urma::jetty {
namespace {

bool same_peer(PeerId a, PeerId b) { return a == b; }

// Only a write tells, in one way, and the peer that it writes to.
Status examine_telling(const Work& work) {
  if (!work.with_immediate && !work.with_notify) return Status::ok;
  if (work.operation != Operation::write || (work.with_immediate && work.with_notify) ||
      !same_peer(work.target.peer, work.segment.peer)) {
    return Status::bad_work;
  }
  return work.with_notify ? work.notify_verdict : Status::ok;
}

// What can be seen to be wrong before anything is sent. The target checks all of it again.
Status examine(const Work& work, uint64_t bytes, size_t pieces) {
  if (pieces > max_buffers) return Status::bad_work;
  if (work.operation == Operation::send) {
    return !work.with_notify && work.target && bytes <= max_send_bytes ? Status::ok
                                                                       : Status::bad_work;
  }
  if (work.operation == Operation::receive || !work.segment.peer) return Status::bad_work;
  if (bytes > max_write_bytes) return Status::bad_work;
  const Status telling = examine_telling(work);
  if (telling != Status::ok) return telling;
  // Refused here, nothing has changed there: a longer work is more than one packet.
  const Rights wanted = work.operation == Operation::read ? Rights::read : Rights::write;
  const bool allowed = work.offset <= UINT64_MAX - work.segment.address &&
                       memseg::within(work.segment.address, work.segment.bytes,
                                      work.segment.address + work.offset, bytes) &&
                       (bytes == 0 || has(work.segment.rights, wanted));
  return allowed ? Status::ok : Status::remote_access;
}

}  // namespace

Leases::Leases(uint16_t count)
    : posted_ring_(std::make_unique<uint16_t[]>(std::bit_ceil<uint32_t>(count))),
      vacant_ring_(std::make_unique<uint16_t[]>(std::bit_ceil<uint32_t>(count))),
      mask_(std::bit_ceil<uint32_t>(count) - 1),
      count_(count) {
  for (uint16_t i = 0; i < count; ++i) vacant_ring_[i] = i;
  returned_.store(count, std::memory_order_relaxed);
}

Queues::Queues(uint16_t berths, uint16_t receives, Jfc& jfc, uint32_t inline_bytes)
    : berths_(berths),
      receives_(receives),
      berth_(std::make_unique<Berth[]>(berths)),
      notify_(std::make_unique<NotifyTarget[]>(berths)),
      pieces_(std::make_unique<Piece[]>((size_t{berths} + receives) * max_pieces)),
      slot_(std::make_unique<ReceiveSlot[]>(receives)),
      chain_(std::make_unique<uint16_t[]>(berths)),
      inline_bytes_(inline_bytes),
      inline_data_(std::make_unique<std::byte[]>(size_t{berths} * inline_bytes)),
      jfc_(jfc) {}

size_t Queues::post(std::span<const Work> works) {
  uint32_t vacant = berths_.vacant();
  size_t taken = 0;
  for (const Work& work : works) {
    if (vacant == 0 || (vacant == 1 && !work.signalled)) break;
    const uint16_t lease = berths_.take_vacant();
    fill(berth_[lease], work, lease);
    berths_.stage(lease);
    --vacant;
    ++taken;
  }
  if (taken > 0) berths_.publish();
  return taken;
}

// Names the user's memory; returns its bytes, too many if one buffer alone has.
uint64_t Queues::name_pieces(Berth& berth, std::span<const Buffer> buffers, uint16_t lease) {
  uint64_t bytes = 0;
  berth.piece_count = 0;
  for (const Buffer& buffer : buffers.first(std::min(buffers.size(), max_buffers))) {
    if (buffer.bytes == 0) continue;
    bytes = buffer.bytes > max_write_bytes ? UINT64_MAX / 2 : bytes + buffer.bytes;
    const Piece piece{static_cast<const std::byte*>(buffer.data),
                      static_cast<uint32_t>(buffer.bytes)};
    if (berth.piece_count == 0) berth.piece = piece;
    if (buffers.size() > 1) pieces_[size_t{lease} * max_pieces + berth.piece_count] = piece;
    ++berth.piece_count;
  }
  return bytes;
}

void Queues::fill(Berth& berth, const Work& work, uint16_t lease) {
  std::span<const Buffer> buffers = work.buffers;
  if (buffers.empty()) buffers = std::span(&work.buffer, 1);
  const uint64_t bytes = name_pieces(berth, buffers, lease);
  berth.operation = work.operation;
  berth.with_immediate = work.with_immediate;
  berth.with_notify = work.with_notify;
  if (work.with_notify) {
    notify_[lease] = {work.notify_address, work.notify_token_id, work.notify_token};
  }
  berth.signalled = work.signalled;
  berth.solicited = work.solicits;
  berth.verdict = examine(work, bytes, buffers.size());
  if (work.copied && berth.verdict == Status::ok) {
    if (bytes <= inline_bytes_ && work.operation != Operation::read) {
      copy_in(berth, buffers, lease);
    } else {
      berth.verdict = Status::bad_work;
    }
  }
  berth.bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
  berth.tag = work.tag_value;
  berth.immediate = work.immediate_value;
  berth.peer = work.operation == Operation::send ? work.target.peer : work.segment.peer;
  berth.address = work.segment.address + work.offset;
  berth.token_id = work.segment.token_id;
  berth.token = work.segment.token;
  berth.target = work.target.id;
  berth.target_token = work.target.token;
}

// The lease is on a copy of our own: the user's memory is free when `post` returns.
void Queues::copy_in(Berth& berth, std::span<const Buffer> buffers, uint16_t lease) {
  std::byte* const begin = inline_data_.get() + size_t{lease} * inline_bytes_;
  std::byte* at = begin;
  for (const Buffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    copy_bytes(at, static_cast<const std::byte*>(buffer.data), buffer.bytes);
    at += buffer.bytes;
  }
  berth.piece = {begin, static_cast<uint32_t>(at - begin)};
  berth.piece_count = at == begin ? 0 : 1;
}

size_t Queues::receive(std::span<const Buffer> buffers, uint64_t tag) {
  if (buffers.size() > max_buffers || receives_.vacant() == 0) return 0;
  const uint16_t lease = receives_.take_vacant();
  ReceiveSlot& slot = slot_[lease];
  slot = {.tag = tag, .bytes = 0, .piece_count = 0, .piece = {}};
  for (const Buffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    // No message is longer: what lies beyond is not used.
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(buffer.bytes, max_send_bytes));
    const Piece piece{static_cast<const std::byte*>(buffer.data), bytes};
    if (slot.piece_count == 0) slot.piece = piece;
    if (buffers.size() > 1) {
      pieces_[(size_t{berths_.count()} + lease) * max_pieces + slot.piece_count] = piece;
    }
    ++slot.piece_count;
    slot.bytes += bytes;
  }
  receives_.stage(lease);
  receives_.publish();
  return 1;
}

void Queues::polled(const Completion& completion, uint16_t lease) {
  if (completion.operation == Operation::receive) {
    if (lease != none) {
      receives_.give_back(lease);
    } else {
      const uint32_t polled = immediates_polled_.load(std::memory_order_relaxed);
      immediates_polled_.store(polled + 1, std::memory_order_release);
    }
    return;
  }
  while (lease != none) {
    const uint16_t next = chain_[lease];
    berths_.give_back(lease);
    lease = next;
  }
}

std::span<const Piece> Queues::pieces(uint16_t lease) const {
  const Berth& berth = berth_[lease];
  if (berth.piece_count <= 1) return {&berth.piece, berth.piece_count};
  return {&pieces_[size_t{lease} * max_pieces], berth.piece_count};
}

std::span<const Piece> Queues::slot_pieces(uint16_t lease) const {
  const ReceiveSlot& slot = slot_[lease];
  if (slot.piece_count <= 1) return {&slot.piece, slot.piece_count};
  return {&pieces_[(size_t{berths_.count()} + lease) * max_pieces], slot.piece_count};
}

}  // namespace urma::jetty
