// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "drivers/cxl/barriers.h"
#include "drivers/cxl/hand_over.h"
#include "drivers/cxl/mapping.h"
#include "drivers/cxl/opener.h"
#include "urma/core/endpoint.h"

namespace urma::drivers::cxl {

// The slots of a window, of which each device takes one: this class knows which slots are in use,
// and whether their processes are running. A device owns its slot for as long as it holds the
// slot's lock, which the kernel releases when the process ends; a process that finds an occupied
// slot whose lock is free ends that slot. Joining and leaving take the window's lock. It owns this
// device's slot. It knows of rings only that their users sleep at bells, which it rings when their
// partner leaves. Used by one thread at a time.
class Slots {
 public:
  // `hand_over` listens beside the window while this device is in it. It is null where segments lie
  // in the window.
  Slots(const Mapping& mapping, HandOver* hand_over);

  static constexpr size_t slot_at = 14;  // where in an address the slot's number is
  // Returns the address of the device in a slot: the window's number, the slot.
  Endpoint endpoint_of(uint32_t slot) const;

  // Takes a free slot and holds it until `leave`, or until the process ends. `first`: as
  // WindowSettings.
  Result<uint32_t> join(const std::optional<WindowSettings::First>& first = {});
  void leave();
  // Ends the slots of processes that have died. The caller holds the window's lock.
  void release_dead();
  // Ends one slot. The caller holds the window's lock.
  void end(uint32_t slot);
  // Returns whether a process that is alive holds the slot; if not, ends it.
  bool inhabited(uint32_t slot);
  // Returns whether the process that owns the slot is running. Does not read the record.
  bool lives(uint32_t slot) const;
  // How devices that use segments and those that close them see each other.
  const Barriers& barriers() const { return barriers_; }
  // Counts a change of owners, so that all devices look again. The caller holds the window's lock.
  void note_change();

  // The value of this device's slot before it joins and after it leaves.
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t own() const { return own_; }
  uint32_t own_generation() const { return own_generation_; }
  // Returns where this device says which segment it is copying.
  SlotHold* own_hold() const { return own_hold_; }
  // Returns false once another process has truncated or overwritten the window: then this device
  // must not use anything in it as its own.
  bool owned() const {
    return file_.here() && !mapping_.lost() && own_ != none &&
           words_.generation(own_) == own_generation_;
  }

 private:
  // `error` is the errno with which `HandOver::listen` failed.
  Error cannot_listen(uint32_t slot, int error) const;
  void ring_partners(uint32_t slot) const;
  void count_fences();

  const Mapping& mapping_;
  const BackingFile& file_;
  const SharedWords& words_;
  HandOver* const hand_over_;
  const Barriers barriers_;
  uint32_t own_ = none;
  uint32_t own_generation_ = 0;
  SlotHold* own_hold_ = nullptr;
};

}  // namespace urma::drivers::cxl
