// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/rings.h"

#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {
namespace {

constexpr uint32_t most_not_let_go = 4;

}  // namespace

// A record is marked while it changes, and its serial changes with each new owner.
RingOwner owner_of(const SharedWords& words, uint32_t ring) {
  const RingRecord& record = words.ring_record(ring);
  RingOwner out{};
  out.serial = words.seen(record.serial);
  out.from = record.from.load(std::memory_order_relaxed);
  out.to = record.to.load(std::memory_order_relaxed);
  out.from_generation = record.from_generation.load(std::memory_order_relaxed);
  out.to_generation = record.to_generation.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint32_t again = words.seen(record.serial);
  if ((out.serial & changing) != 0 || again != out.serial) out.serial = 0;
  return out;
}

void mark_let_go(const SharedWords& words, uint32_t ring, uint32_t serial,
                 std::atomic<uint32_t>& mark) {
  if (owner_of(words, ring).serial == serial) words.store(mark, serial);
}

// Returns whether neither end accesses the ring any more. The caller holds the lock. An end that
// has died does not access it; the memory of the ring may have been given back, so the ring itself
// is read last.
bool Rings::free_again(uint32_t ring) const {
  const RingOwner owner = owner_of(words_, ring);
  if (owner.serial == 0 || owner.from >= slot_count || owner.to >= slot_count) return true;
  const bool sender_gone = words_.generation(owner.from) != owner.from_generation;
  const bool receiver_gone = words_.generation(owner.to) != owner.to_generation;
  if (sender_gone && receiver_gone) return true;
  const RingControl& control = words_.ring(ring).control;
  if (!sender_gone && words_.seen(control.sender.let_go) != owner.serial) return false;
  return receiver_gone || words_.seen(control.receiver.let_go) == owner.serial;
}

std::optional<uint32_t> Rings::free_ring(uint32_t after) const {
  for (uint32_t ring = after; ring < words_.parts().rings; ++ring) {
    if (free_again(ring)) return ring;
  }
  return std::nullopt;
}

bool Rings::take_memory(uint32_t ring) const {
  const uint64_t at = words_.parts().rings_at + uint64_t{ring} * ring_bytes;
  return file_.take_memory(at, ring_bytes) == 0;
}

void Rings::give(uint32_t ring, uint32_t from, uint32_t to) {
  RingRecord& record = words_.ring_record(ring);
  Ring& memory = words_.ring(ring);
  const uint32_t before = words_.seen(record.serial) & ~changing;
  const uint32_t serial = (before + 1) & ~changing;
  words_.store(record.serial, before | changing);
  std::atomic_thread_fence(std::memory_order_release);
  words_.store(memory.control.receiver.taken, uint64_t{0});
  words_.store(memory.control.receiver.let_go, uint32_t{0});
  words_.store(memory.control.sender.let_go, uint32_t{0});
  words_.store(memory.lines[0].mark, nothing_yet);
  record.from.store(from, std::memory_order_relaxed);
  record.to.store(to, std::memory_order_relaxed);
  record.from_generation.store(words_.generation(from), std::memory_order_relaxed);
  record.to_generation.store(words_.generation(to), std::memory_order_relaxed);
  words_.store(record.serial, serial == 0 ? 1 : serial);
}

Rings::Claim Rings::claim_pair(uint32_t from, uint32_t to) {
  const WindowLock lock(file_.descriptor());
  if (!lock.held()) return Claim::not_now;
  if (to >= slot_count || words_.generation(to) % 2 == 0) return Claim::nobody_there;
  if (!slots_.lives(to)) {
    slots_.end(to);
    return Claim::nobody_there;
  }
  uint32_t not_let_go = 0;
  for (uint32_t ring = 0; ring < words_.parts().rings; ++ring) {
    const RingOwner owner = owner_of(words_, ring);
    if (owner.serial == 0 || owner.from != from || owner.to != to) continue;
    const bool current = owner.from_generation == words_.generation(from) &&
                         owner.to_generation == words_.generation(to);
    // The other end may have made the pair meanwhile.
    if (current) return Claim::made;
    // A partner that does not give up the rings of dead devices gets no further rings.
    if (!free_again(ring) && ++not_let_go > most_not_let_go) return Claim::not_now;
  }
  const std::optional<uint32_t> there = free_ring(0);
  const std::optional<uint32_t> back = there && from != to ? free_ring(*there + 1) : there;
  if (!back) {
    // Dead devices may hold rings. The devices that shared these are woken, and soon give them up.
    slots_.release_dead();
    return Claim::no_ring;
  }
  if (!take_memory(*there) || !take_memory(*back)) return Claim::no_memory;
  if (from != to) give(*back, to, from);
  give(*there, from, to);
  slots_.note_change();
  return Claim::made;
}

}  // namespace urma::drivers::cxl
