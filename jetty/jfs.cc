// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfs.h"

#include <algorithm>
#include <bit>

#include "base/accelerator_memory.h"
#include "base/address_space.h"
#include "base/assert.h"
#include "base/copy.h"
#include "base/probes.h"
#include "jetty/atomics.h"
#include "memseg/segment_table.h"

namespace urma::jetty {
namespace {

constexpr uint64_t too_many = UINT64_MAX / 2;

// Checks that a work that notifies is a write, notifies in one way only, and notifies the peer that
// it writes to.
Status examine_notification(const Work& work) {
  if (!work.with_immediate && !work.with_notify) return Status::ok;
  if (work.operation != Operation::write || (work.with_immediate && work.with_notify) ||
      !(work.target.peer == work.segment.peer)) {
    return Status::bad_work;
  }
  if (!work.with_notify) return Status::ok;
  // Work::notify sets only these two values.
  const bool known =
      work.notify_verdict == Status::ok || work.notify_verdict == Status::remote_access;
  return known ? work.notify_verdict : Status::bad_work;
}

bool inside(const Work& work, uint64_t bytes) {
  return work.offset <= UINT64_MAX - work.segment.address &&
         memseg::within(work.segment.address, work.segment.bytes,
                        work.segment.address + work.offset, bytes);
}

// Returns whether the value that an atomic fetches may be stored where the work says.
bool may_be_fetched(const Work& work) {
  const Buffer& into = work.buffer;
  return into.data == nullptr ||
         (work.atomic != Atomic::store && could_be_memory(into.data, into.bytes) &&
          !AcceleratorMemory::has(into.data));
}

Status examine_atomic(const Work& work, uint64_t bytes) {
  const bool more = work.with_immediate || work.with_notify || work.solicits || work.copied ||
                    !work.buffers.empty();
  if (more || !may_be_fetched(work) || !work.segment.peer || !is_atomic(work.atomic, work.update))
    return Status::bad_work;
  if (!std::has_single_bit(bytes) || bytes > most_atomic_bytes_of_ub) return Status::bad_work;
  if ((work.segment.address + work.offset) % bytes != 0) return Status::bad_work;
  if (!is_valid(work.segment.atomics)) return Status::bad_work;
  if (bytes > most_atomic_bytes || work.segment.atomics == AtomicDomain::device) {
    return Status::unsupported;
  }
  const bool allowed = inside(work, bytes) && has(work.segment.rights, Rights::atomic);
  return allowed ? Status::ok : Status::remote_access;
}

// Finds what is wrong with a work before anything is sent. The target checks all of it again.
Status examine(const Work& work, uint64_t bytes) {
  if (work.buffers.size() > max_buffers) return Status::bad_work;
  if (work.operation == Operation::send) {
    return !work.with_notify && work.target && bytes <= max_send_bytes ? Status::ok
                                                                       : Status::bad_work;
  }
  if (work.operation == Operation::atomic) return examine_atomic(work, bytes);
  if (work.operation > Operation::read || !work.segment.peer) return Status::bad_work;
  if (bytes > max_write_bytes) return Status::bad_work;
  const Status notifying = examine_notification(work);
  if (notifying != Status::ok) return notifying;
  // Checked here so that a refused work changes nothing at the target: of several packets, the
  // first ones might be placed before another one is refused.
  const Rights wanted = work.operation == Operation::read ? Rights::read : Rights::write;
  const bool allowed = inside(work, bytes) && (bytes == 0 || has(work.segment.rights, wanted));
  return allowed ? Status::ok : Status::remote_access;
}

bool is_datagram(const Work& work, uint64_t bytes, uint32_t most_bytes) {
  return work.operation == Operation::send && bytes <= most_bytes && work.order == Order::none &&
         work.fence == Fence::none;
}

bool may_name(const Buffer& buffer) {
  return buffer.bytes <= max_write_bytes && could_be_memory(buffer.data, buffer.bytes);
}
Piece piece_of(const Buffer& buffer) {
  return {static_cast<const std::byte*>(buffer.data), static_cast<uint32_t>(buffer.bytes)};
}

}  // namespace

Jfs::Jfs(uint16_t berths, uint32_t inline_bytes, size_t waited)
    : Leases(berths, Layout::bytes(counts(berths, inline_bytes, waited))),
      inline_bytes_(static_cast<uint16_t>(inline_bytes)),
      waited_(static_cast<uint16_t>(waited)) {
  URMA_ASSERT(inline_bytes <= UINT16_MAX && waited <= UINT16_MAX, "callers limit both");
}

size_t Jfs::post(std::span<const Work> works) {
  uint32_t left = vacant();
  size_t taken = 0;
  for (const Work& work : works) {
    if (left == 0 || (left == 1 && !work.signalled)) break;
    const uint16_t lease = take_vacant();
    Berth& berth = begin<Berth>()[lease];
    fill(berth, work, lease);
    probes::post(this, lease, berth.operation, berth.tag, berth.bytes, berth.peer);
    stage(lease);
    --left;
    ++taken;
  }
  if (taken > 0) publish();
  return taken;
}

// Stores the memory that the work names as pieces. Returns its bytes; `too_many` if a buffer has
// too many, or cannot be memory of a process.
inline uint64_t Jfs::name_memory(Berth& berth, const Work& work, uint16_t lease) {
  berth.piece_count = 0;
  berth.staged = false;
  if (!work.buffers.empty()) [[unlikely]]
    return name_pieces(berth, work.buffers, lease);
  if (work.buffer.bytes == 0) return 0;
  if (!may_name(work.buffer)) [[unlikely]]
    return too_many;
  berth.piece = piece_of(work.buffer);
  berth.piece_count = 1;
  berth.staged = AcceleratorMemory::has(work.buffer.data);
  return work.buffer.bytes;
}

uint64_t Jfs::name_pieces(Berth& berth, std::span<const Buffer> buffers, uint16_t lease) {
  if (buffers.data() == nullptr) return too_many;
  uint64_t bytes = 0;
  for (const Buffer& buffer : buffers.first(std::min(buffers.size(), max_buffers))) {
    if (buffer.bytes == 0) continue;
    if (!may_name(buffer)) {
      berth.piece_count = 0;
      return too_many;
    }
    bytes += buffer.bytes;
    const Piece piece = piece_of(buffer);
    berth.staged = berth.staged || AcceleratorMemory::has(buffer.data);
    if (berth.piece_count == 0) berth.piece = piece;
    all_pieces(lease)[berth.piece_count++] = piece;
  }
  return bytes;
}

void Jfs::fill(Berth& berth, const Work& work, uint16_t lease) {
  // An atomic's operands are stored with the work: only the value that it fetches has memory.
  const bool atomic = work.operation == Operation::atomic;
  const uint64_t bytes = atomic ? work.buffer.bytes : name_memory(berth, work, lease);
  berth.operation = work.operation;
  // The completion of a refused work must not be taken for that of a receive.
  if (!is_valid(work.operation) || work.operation == Operation::receive) [[unlikely]]
    berth.operation = Operation::write;
  if (atomic) {
    berth.piece = {static_cast<const std::byte*>(work.buffer.data), static_cast<uint32_t>(bytes)};
    berth.piece_count = work.buffer.data != nullptr ? 1 : 0;
    berth.staged = false;
    berth.atomic = work.atomic;
    berth.update = work.update;
    berth.doubtful = false;
    begin<BesideBerth>()[lease].atomic = {.expected = work.expected_value, .fetched = 0};
  }
  berth.with_immediate = work.with_immediate;
  berth.with_notify = work.with_notify;
  if (work.with_notify) {
    begin<BesideBerth>()[lease].notify = {work.notify_address, work.notify_token_id,
                                          work.notify_token};
  }
  berth.signalled = work.signalled;
  berth.solicited = work.solicits;
  berth.order = work.order;
  berth.fence = work.fence;
  berth.verdict = examine(work, bytes);
  if (asks_order(berth) && !(is_valid(work.order) && is_valid(work.fence))) [[unlikely]] {
    berth.verdict = Status::bad_work;
    // The refused work does not wait for other works, and they do not wait for it.
    berth.order = Order::none;
    berth.fence = Fence::none;
  }
  if (datagram_bytes_ > 0 && !is_datagram(work, bytes, datagram_bytes_)) [[unlikely]] {
    berth.verdict = Status::bad_work;
  }
  if (work.copied && berth.verdict == Status::ok) {
    if (bytes <= inline_bytes_ && work.operation != Operation::read && !berth.staged) {
      copy_in(berth, lease);
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
  berth.group_hint = work.group_hint;
  berth.target_token = work.target.token;
}

// Copies the data into the berth, so that the application may reuse its buffers when `post`
// returns.
void Jfs::copy_in(Berth& berth, uint16_t lease) {
  std::byte* const copy = begin<std::byte>() + size_t{lease} * inline_bytes_;
  std::byte* at = copy;
  for (const Piece& piece : pieces(lease)) {
    copy_bytes(at, piece.data, piece.bytes);
    at += piece.bytes;
  }
  berth.piece = {copy, static_cast<uint32_t>(at - copy)};
  berth.piece_count = at == copy ? 0 : 1;
}

// Stores the value that an atomic has fetched in the memory that the work named for it.
void Jfs::store_fetched(uint16_t lease, uint64_t value) {
  const Piece& into = berth(lease).piece;
  store_word(const_cast<std::byte*>(into.data), into.bytes, value);
}

void Jfs::polled(uint16_t lease) {
  while (lease != none) {
    const uint16_t next = owners_ring()[lease];
    give_back(lease);
    lease = next;
  }
}

}  // namespace urma::jetty
