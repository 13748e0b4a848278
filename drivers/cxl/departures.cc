// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/departures.h"

#include <span>
#include <utility>

namespace urma::drivers::cxl {

Departures::Departures(const SharedWords& words, uint32_t slot, PortCounters& counters)
    : words_(words),
      slot_(slot),
      counters_(counters),
      outbound_(std::make_unique<Outbound[]>(slot_count)) {}

std::byte* Departures::begin(uint32_t slot, uint32_t bytes) {
  RingWriter& ring = outbound_[slot].ring;
  if (!ring || ring.promised()) return nullptr;
  begun_ = slot;
  return ring.begin(bytes);
}

void Departures::end() {
  RingWriter& ring = outbound_[begun_].ring;
  ring.end();
  ring.written();
  touch(begun_);
  ++counters_.frames_sent;
}

bool Departures::write(uint32_t slot, const TxFrame& frame, uint32_t bytes) {
  if (!outbound_[slot].ring.write(frame, bytes)) return false;
  touch(slot);
  return true;
}

void Departures::notify() {
  if (touched_count_ == 0) return;
  ++counters_.calls_sent;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const uint32_t slot : std::span(touched_).first(std::exchange(touched_count_, 0))) {
    Outbound& outbound = outbound_[slot];
    outbound.touched = false;
    if (outbound.ring) outbound.ring.written();
    words_.bell_of(slot).ring(outbound.rung, slot_ + 1);
  }
}

void Departures::add(uint32_t ring, const RingOwner& owner) {
  Outbound& outbound = outbound_[owner.to];
  const bool lives = words_.generation(owner.to) == owner.to_generation;
  if (lives && outbound.ring) return;
  Ring& there = words_.ring(ring);
  if (!lives) return mark_let_go(words_, ring, owner.serial, there.control.sender.let_go);
  outbound = {.ring = RingWriter(there, marked_[owner.to], words_.caches()),
              .index = ring,
              .serial = owner.serial,
              .to_generation = owner.to_generation};
}

void Departures::let_go_of_ended() {
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    Outbound& outbound = outbound_[slot];
    if (outbound.ring && words_.generation(slot) != outbound.to_generation) let_go(outbound);
  }
}

void Departures::let_go_of_all() {
  for (uint32_t slot = 0; slot < slot_count; ++slot) let_go(outbound_[slot]);
}

void Departures::forget_all() {
  for (uint32_t slot = 0; slot < slot_count; ++slot) outbound_[slot] = {};
}

void Departures::let_go(Outbound& outbound) {
  if (!outbound.ring) return;
  mark_let_go(words_, outbound.index, outbound.serial,
              words_.ring(outbound.index).control.sender.let_go);
  outbound = {};
}

}  // namespace urma::drivers::cxl
