// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/arrivals.h"

#include <algorithm>
#include <utility>

namespace urma::drivers::cxl {

Arrivals::Arrivals(const SharedWords& words, const Slots& slots)
    : words_(words), slots_(slots), all_(std::make_unique<Source[]>(most_sources)) {
  sources_.reserve(most_sources);
}

size_t Arrivals::receive(std::span<RxFrame> frames, bool all, PortCounters& counters) {
  size_t count = 0;
  uint32_t bytes = 0;
  ++counters.calls_received;
  // Reads first the ring of the latest message, then some of the others in turn.
  const size_t looks = all ? sources_.size() : std::min<size_t>(sources_.size(), rings_at_once);
  size_t at = latest_;
  const auto full = [&] { return count == frames.size() || bytes >= bytes_at_once; };
  for (size_t look = 0; look <= looks && !sources_.empty() && !full(); ++look) {
    if (at >= sources_.size()) at = 0;
    if (read_from(all_[sources_[at]], frames, count, bytes, counters)) latest_ = at;
    if (sources_.size() <= 1) break;
    at = ++next_look_ >= sources_.size() ? next_look_ = 0 : next_look_;
  }
  // No sender can fill all bursts.
  if (full()) ++latest_;
  counters.frames_received += count;
  return count;
}

bool Arrivals::read_from(Source& source, std::span<RxFrame> frames, size_t& count, uint32_t& bytes,
                         PortCounters& counters) {
  const size_t before = count;
  const auto cookie = static_cast<uint32_t>(&source - all_.get());
  while (count < frames.size() && bytes < bytes_at_once) {
    uint32_t message_bytes = 0;
    const std::byte* const message = source.ring.read(message_bytes);
    if (message == nullptr) break;
    frames[count++] = {message, message_bytes, cookie, &source.from};
    bytes += message_bytes;
  }
  source.held += static_cast<uint32_t>(count - before);
  if (source.ring.broken() && !std::exchange(source.counted, true)) ++counters.malformed;
  if (source.ended && source.held == 0) let_go(source);
  return count > before;
}

void Arrivals::release(std::span<const RxFrame> frames) {
  for (const RxFrame& frame : frames) {
    Source& source = all_[frame.cookie];
    if (--source.held == 0) source.ring.release(source.ring.next());
  }
}

bool Arrivals::add(uint32_t ring, const RingOwner& owner) {
  for (const uint32_t number : sources_) {
    const Source& known = all_[number];
    if (known.index == ring && known.serial == owner.serial) return true;
  }
  const auto& gone = words_.ring(ring).control.receiver.let_go;
  if (words_.seen(gone) == owner.serial || sources_.size() == most_sources) return true;
  const May may = may_add(ring, owner);
  if (may != May::add) return may == May::never;
  uint32_t free = 0;
  while (all_[free].index != none) ++free;
  all_[free] = {.ring = RingReader(words_.ring(ring), words_.caches()),
                .index = ring,
                .serial = owner.serial,
                .from_generation = owner.from_generation,
                .slot = owner.from,
                .ended = ended(owner),
                .from = slots_.endpoint_of(owner.from)};
  sources_.push_back(free);
  return true;
}

// A ring has one reader, and a slot one incarnation at a time. No peer waits for the messages that
// an earlier incarnation left unread, and they must not be taken for messages of the new one,
// whichever of the two rings was found first.
Arrivals::May Arrivals::may_add(uint32_t ring, const RingOwner& owner) {
  for (size_t i = sources_.size(); i-- > 0;) {
    Source& known = all_[sources_[i]];
    if (known.index != ring && known.slot != owner.from) continue;
    if (known.index != ring && ended(owner)) {
      mark_let_go(words_, ring, owner.serial, words_.ring(ring).control.receiver.let_go);
      return May::never;
    }
    if (known.held > 0) return May::later;
    known.index == ring ? forget(known) : let_go(known);
  }
  return May::add;
}

void Arrivals::note_ended() {
  for (const uint32_t number : sources_) {
    Source& source = all_[number];
    source.ended = source.ended || words_.generation(source.slot) != source.from_generation;
  }
}

void Arrivals::let_go_of_all() {
  while (!sources_.empty()) let_go(all_[sources_.back()]);
}

void Arrivals::let_go(Source& source) {
  mark_let_go(words_, source.index, source.serial,
              words_.ring(source.index).control.receiver.let_go);
  forget(source);
}

void Arrivals::forget(Source& source) {
  const auto self = static_cast<uint32_t>(&source - all_.get());
  source.index = none;
  std::erase(sources_, self);
}

}  // namespace urma::drivers::cxl
