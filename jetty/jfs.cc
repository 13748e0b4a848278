// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfs.h"

#include <algorithm>

#include "base/assert.h"
#include "base/copy.h"
#include "base/probes.h"
#include "jetty/atomics.h"

namespace urma::jetty {
namespace {

bool is_datagram(const Work& work, uint64_t bytes, uint32_t most_bytes) {
  return work.operation == Operation::send && bytes <= most_bytes && work.order == Order::none &&
         work.fence == Fence::none;
}

}  // namespace

Jfs::Jfs(uint16_t berths, uint32_t inline_bytes, size_t waited)
    : Leases(berths, Layout::bytes(counts(berths, inline_bytes, waited))),
      inline_bytes_(static_cast<uint16_t>(inline_bytes)),
      waited_(static_cast<uint16_t>(waited)) {
  URMA_ASSERT(inline_bytes <= UINT16_MAX && waited <= UINT16_MAX, "callers limit both");
}

size_t Jfs::post(std::span<const Work> works) {
  size_t taken = 0;
  for (const Work& work : works) {
    if (!has_berth(work)) break;
    const uint16_t lease = take_vacant();
    Berth& berth = begin<Berth>()[lease];
    fill(berth, work, lease);
    probes::post(this, lease, berth.operation, berth.tag, berth.bytes, berth.peer);
    stage(lease);
    ++taken;
  }
  if (taken > 0) publish();
  return taken;
}

Jfs::Memory Jfs::memory_of(std::span<const Buffer> buffers, uint16_t lease) {
  if (buffers.data() == nullptr) return {.bytes = too_many};
  Memory out;
  for (const Buffer& buffer : buffers.first(std::min(buffers.size(), max_buffers))) {
    if (buffer.bytes == 0) continue;
    if (!may_name(buffer)) return {.bytes = too_many};
    const Piece piece = piece_of(buffer);
    out.bytes += buffer.bytes;
    out.staged = out.staged || AcceleratorMemory::has(buffer.data);
    if (out.piece_count == 0) out.piece = piece;
    all_pieces(lease)[out.piece_count++] = piece;
  }
  return out;
}

// Examines datagrams, and works that ask for what few do.
Status Jfs::examine_more(const Work& work, uint64_t bytes, bool staged) const {
  if (!knows_order(work)) return Status::bad_work;
  if (datagram_bytes_ > 0 && !is_datagram(work, bytes, datagram_bytes_)) return Status::bad_work;
  const Status verdict = jetty::examine(work, bytes);
  if (!work.copied || verdict != Status::ok) return verdict;
  const bool fits = bytes <= inline_bytes_ && work.operation != Operation::read && !staged;
  return fits ? Status::ok : Status::bad_work;
}

[[gnu::always_inline]] inline void Jfs::fill(Berth& berth, const Work& work, uint16_t lease) {
  const Memory memory = memory_of(work, lease);
  berth.verdict = examine(work, memory.bytes, memory.staged);
  berth.piece = memory.piece;
  berth.piece_count = memory.piece_count;
  berth.staged = memory.staged;
  berth.operation = work.operation;
  // The completion of a refused work must not be taken for that of a receive.
  if (!is_valid(work.operation) || work.operation == Operation::receive) [[unlikely]]
    berth.operation = Operation::write;
  berth.with_immediate = work.with_immediate;
  berth.with_notify = work.with_notify;
  berth.signalled = work.signalled;
  berth.solicited = work.solicits;
  berth.order = work.order;
  berth.fence = work.fence;
  if (!knows_order(work)) [[unlikely]] {
    // The refused work does not wait for other works, and they do not wait for it.
    berth.order = Order::none;
    berth.fence = Fence::none;
  }
  berth.bytes = static_cast<uint32_t>(std::min<uint64_t>(memory.bytes, UINT32_MAX));
  berth.tag = work.tag_value;
  berth.immediate = work.immediate_value;
  berth.peer = work.operation == Operation::send ? work.target.peer : work.segment.peer;
  berth.address = work.segment.address + work.offset;
  berth.token_id = work.segment.token_id;
  berth.token = work.segment.token;
  berth.target = work.target.id;
  berth.group_hint = work.group_hint;
  berth.target_token = work.target.token;
  if (work.operation == Operation::atomic || work.with_notify || work.copied) [[unlikely]]
    fill_more(berth, work, lease);
}

// Stores what few works have.
void Jfs::fill_more(Berth& berth, const Work& work, uint16_t lease) {
  if (work.operation == Operation::atomic) {
    berth.atomic = work.atomic;
    berth.update = work.update;
    berth.doubtful = false;
    begin<BesideBerth>()[lease].atomic = {.expected = work.expected_value, .fetched = 0};
  }
  if (work.with_notify) {
    begin<BesideBerth>()[lease].notify = {work.notify_address, work.notify_token_id,
                                          work.notify_token};
  }
  if (work.copied && berth.verdict == Status::ok) copy_in(berth, lease);
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
