// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "drivers/cxl/ring.h"
#include "drivers/cxl/rings.h"
#include "drivers/cxl/slots.h"
#include "drivers/packet_port.h"

namespace urma::drivers::cxl {

// The rings from which a device receives: takes turns among them, lends the messages in place, and
// frees a ring's lines for its sender once all messages that were lent from it have been released.
// Owns the receiving end of each ring. Does not look for rings: CxlPort adds them. Only the thread
// that runs the engine calls it.
class Arrivals {
 public:
  Arrivals(const SharedWords& words, const Slots& slots);

  // Returns whether no message has arrived, as far as a single read of memory shows.
  bool quiet() const {
    if (sources_.empty()) return true;
    if (sources_.size() > 1) return false;
    // As a rule there is one peer, and no message from it.
    const Source& only = all_[sources_[0]];
    return !only.ring.any() && !only.ended;
  }
  // `all`: looks at each ring, as before a sleep, and not at some of them in turn.
  size_t receive(std::span<RxFrame> frames, bool all, PortCounters& counters);
  void release(std::span<const RxFrame> frames);

  // Begins to receive from a ring. Returns false if messages of an earlier incarnation of its
  // sender must be read first; then call it again later.
  bool add(uint32_t ring, const RingOwner& owner);
  // Notes which senders have died or left: their remaining messages are read, then their rings are
  // given up.
  void note_ended();
  void let_go_of_all();
  // Forgets all rings without writing to the window, because another process has overwritten it.
  void forget_all() {
    while (!sources_.empty()) forget(all_[sources_.back()]);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  // The most that one `receive` reads. Its lines are freed before more is read, so that senders can
  // continue.
  static constexpr uint32_t bytes_at_once = 32 * 1024;
  static constexpr uint32_t rings_at_once = 16;
  static constexpr uint32_t most_sources = 2 * slot_count;

  // A ring from one incarnation of the device in a slot.
  struct Source {
    RingReader ring;
    uint32_t index = none;  // none: not in use
    uint32_t serial = 0;
    uint32_t from_generation = 0;
    uint32_t held = 0;  // messages that are not released
    uint32_t slot = 0;
    bool ended = false;    // its sender has left
    bool counted = false;  // whether it was counted as broken
    Endpoint from;
  };

  bool read_from(Source& source, std::span<RxFrame> frames, size_t& count, uint32_t& bytes,
                 PortCounters& counters);
  enum class May : uint8_t { add, never, later };
  May may_add(uint32_t ring, const RingOwner& owner);
  bool ended(const RingOwner& owner) const {
    return words_.generation(owner.from) != owner.from_generation;
  }
  void let_go(Source& source);
  void forget(Source& source);

  const SharedWords& words_;
  const Slots& slots_;
  std::unique_ptr<Source[]> all_;  // most_sources
  std::vector<uint32_t> sources_;  // those in use; never grows beyond its capacity
  size_t latest_ = 0;              // the index in it of the source of the latest message
  size_t next_look_ = 0;
};

}  // namespace urma::drivers::cxl
