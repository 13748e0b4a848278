// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/slots.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "base/file_system.h"
#include "drivers/cxl/rings.h"
#include "drivers/cxl/window_lock.h"

namespace urma::drivers::cxl {
namespace {

// The time in which each device sees that it needs fences. A use that had begun without one is
// visible long before that: stores leave a processor in nanoseconds.
constexpr timespec until_all_fence{.tv_sec = 0, .tv_nsec = 1'000'000};

}  // namespace

Slots::Slots(const Mapping& mapping, HandOver* hand_over)
    : mapping_(mapping),
      file_(mapping.file()),
      words_(mapping.words()),
      hand_over_(hand_over),
      barriers_(mapping.words()) {}

// The kernel does not report locks of the asking descriptor.
bool Slots::lives(uint32_t slot) const {
  return slot == own_ || slot_is_locked(file_.descriptor(), slot);
}

void Slots::note_change() {
  std::atomic<uint64_t>& count = words_.changes().count;
  words_.store(count, words_.seen(count) + 1);
}

void Slots::count_fences() {
  uint32_t fences = 0;
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    if (words_.generation(slot) % 2 == 1 && words_.seen(words_.slot(slot).record.fences) != 0) {
      ++fences;
    }
  }
  // The line is read first: the count of changes lies in it, and an old one in this processor's
  // cache would be written back with the fences.
  std::atomic<uint32_t>& word = words_.changes().fences;
  if (words_.seen(word) != fences) words_.store(word, fences);
}

void Slots::end(uint32_t slot) {
  Slot& ended = words_.slot(slot);
  words_.store(ended.record.generation, words_.generation(slot) + 1);
  words_.store(ended.hold.segment, uint32_t{0});
  words_.store(ended.hold.lanes, uint32_t{0});
  HandOver::remove(file_.path(), slot);
  count_fences();
  note_change();
  ring_partners(slot);
}

// Wakes the devices that share a ring with the slot that was ended: no other pair gets the ring
// before they have given it up.
void Slots::ring_partners(uint32_t slot) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t ended = words_.generation(slot) - 1;
  for (uint32_t ring = 0; ring < words_.parts().rings; ++ring) {
    const RingOwner owner = owner_of(words_, ring);
    const bool sent = owner.from == slot && owner.from_generation == ended;
    const bool received = owner.to == slot && owner.to_generation == ended;
    const uint32_t partner = sent ? owner.to : owner.from;
    if ((!sent && !received) || partner >= slot_count) continue;
    words_.bell_of(partner).ring();
  }
}

void Slots::release_dead() {
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    if (words_.generation(slot) % 2 == 1 && !lives(slot)) end(slot);
  }
}

Endpoint Slots::endpoint_of(uint32_t slot) const {
  Endpoint out;
  for (size_t i = 0; i < sizeof window_prefix; ++i) {
    out.address.bytes[i] = std::byte{window_prefix[i]};
  }
  const uint64_t id = mapping_.id();
  std::memcpy(out.address.bytes.data() + sizeof window_prefix, &id, sizeof id);
  out.address.bytes[slot_at] = static_cast<std::byte>((slot + 1) >> 8);
  out.address.bytes[slot_at + 1] = static_cast<std::byte>(slot + 1);
  out.port = ub_port;
  return out;
}

Result<uint32_t> Slots::join(const std::optional<WindowSettings::First>& first) {
  const WindowErrors& errors = file_.errors();
  const int descriptor = file_.descriptor();
  const WindowLock lock(descriptor, WindowLock::patience);
  if (!lock.held()) return errors.cannot_lock(lock);
  release_dead();
  for (uint32_t slot = 0; slot < slot_count; ++slot) {
    if (words_.generation(slot) % 2 == 1) continue;
    // Generations may have been overwritten, so only the lock decides.
    if (!lock_slot(descriptor, slot)) continue;
    if (hand_over_ != nullptr && !hand_over_->listen(file_.path(), slot, descriptor)) {
      const int why = errno;
      unlock_slot(descriptor, slot);
      // Another program's file has the name of the socket, and is not removed.
      if (why == EADDRINUSE) continue;
      return cannot_listen(slot, why);
    }
    words_.bell_of(slot).awake();
    words_.store(words_.slot(slot).record.fences, barriers_.available() ? 0U : 1U);
    own_generation_ = words_.generation(slot) | 1;
    words_.store(words_.slot(slot).record.first, first ? first->slot : slot);
    words_.store(words_.slot(slot).record.first_generation,
                 first ? first->generation : own_generation_);
    words_.store(words_.slot(slot).record.generation, own_generation_);
    count_fences();
    note_change();
    if (!barriers_.available()) ppoll(nullptr, 0, &until_all_fence, nullptr);
    own_ = slot;
    own_hold_ = &words_.slot(slot).hold;
    words_.store(own_hold_->segment, uint32_t{0});
    words_.store(own_hold_->lanes, uint32_t{0});
    return slot;
  }
  return errors
      .failed(Status::no_resources, "has no free slot: ", slot_count, " devices are open on it")
      .fix("close some of them, or use another window: cxl:/dev/shm/NAME");
}

Error Slots::cannot_listen(uint32_t slot, int error) const {
  const WindowErrors& errors = file_.errors();
  const std::string what = "needs the socket " + file_.path() + "." + std::to_string(slot) +
                           ", by which segments are handed over, but it cannot be created";
  if (is_shortage(error)) return errors.cannot_have(what, page_bytes, error);
  return errors.failed(Status::io_error, what, ": ", std::strerror(error))
      .fix(
          "choose a directory where this process may write and a short path, or leave out "
          "share=segment");
}

void Slots::leave() {
  const uint32_t slot = own_;
  const WindowLock lock(file_.descriptor(), WindowLock::patience);
  // Without the lock, the next process that joins finds this slot without its owner.
  if (lock.held()) end(slot);
  if (hand_over_ != nullptr) hand_over_->stop_listening();
  own_ = none;
  unlock_slot(file_.descriptor(), slot);
  if (!lock.held() || !file_.is_file()) return;
  release_dead();
  if (mapping_.lost()) return;
  for (uint32_t other = 0; other < slot_count; ++other) {
    if (words_.generation(other) % 2 == 1) return;
  }
  // The last device gives the memory of the rings and segments back to the system.
  const uint64_t from = words_.parts().rings_at;
  file_.give_back_memory(from, mapping_.bytes() - from);
}

bool Slots::inhabited(uint32_t slot) {
  if (words_.generation(slot) % 2 == 0) return false;
  if (lives(slot)) return true;
  const WindowLock lock(file_.descriptor());
  if (lock.held() && words_.generation(slot) % 2 == 1 && !lives(slot)) end(slot);
  return false;
}

}  // namespace urma::drivers::cxl
