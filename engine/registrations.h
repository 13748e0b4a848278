// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "drivers/device_reads.h"
#include "drivers/segment_memory.h"
#include "engine/carriers.h"
#include "engine/fills.h"
#include "jetty/transactions.h"
#include "memseg/segment_table.h"

namespace urma::engine {

// Adds segments, changes their tokens and removes them. Each change reaches both the segment table,
// which checks accesses by packets, and the medium, which checks accesses to mapped memory. A
// change that takes access away is a *fence*: it is done when no access that began before it is in
// progress.
//
// It does not know the application's objects (`urma::Segment`), and neither allocates the memory of
// a segment nor moves it: the caller does, outside of passes. `Engine` owns it; only the thread
// that runs the engine calls it.
class Registrations {
 public:
  using Lease = drivers::SegmentMemory::Lease;
  using Segments = memseg::SegmentTable;

  // The two parts of the port are null if it does not have them, and `carriers` if everything goes
  // in packets. All parts outlive this object.
  struct Medium {
    drivers::SegmentMemory* memory = nullptr;
    drivers::DeviceReads* reads = nullptr;
  };
  Registrations(Segments& segments, const Medium& medium, jetty::Transactions& transactions,
                const Fills& fills, Carriers* carriers)
      : segments_(segments),
        memory_(medium.memory),
        reads_(medium.reads),
        transactions_(transactions),
        fills_(fills),
        carriers_(carriers) {}

  // `with`: the segment whose TokenID the new one shares; null if the new one gets its own. Returns
  // `gone` after `end`.
  Segments::Added add(const Segments::Segment& segment, const Segments::TokenPlan& plan,
                      Handle with, Segments::Made& made);
  // As `add`, for a segment that the device's first engine has added: `made` is what that returned,
  // and gets this engine's handle. The segment has no lease here, as the first engine has it.
  Segments::Added follow(const Segments::Segment& segment, const Segments::TokenPlan& plan,
                         Handle with, Segments::Made& made);

  // The state of a withdrawal in progress. The caller sets the members above the blank line.
  struct Withdrawal {
    Handle segment;
    bool all = false;       // all segments of its TokenID, without waiting for peers that hold them
    Segments::Segment own;  // the segment, also when it was withdrawn before
    bool fenced = true;     // false if a peer holds it and it cannot be moved
    std::optional<Lease> held = std::nullopt;  // set if a peer holds it too long to wait for

    bool begun = false;
    uint32_t withdrawn = Segments::none;  // a tree of the segment table
    uint64_t fill = 0;                    // the last fill that may name the memory
    Time since{};                         // when only peers still had to be waited for
  };
  // Begins a withdrawal: from now on no check finds the segment.
  void begin(Withdrawal& what, Time now);
  // Removes a segment, and ends the application's own works that use its memory; begins with
  // `begin`, unless that was called. Returns false until it is done, and is then called again in
  // later passes. If it returns true with `held` set, the caller moves the memory, or sets `fenced`
  // to false if it cannot, and calls it again.
  bool withdraw(Withdrawal& what, Time now);

  // Draws a second token. Returns false if there are two already, if the segment needs none, or if
  // it does not exist.
  bool rotate(Handle segment);

  // The state of a retirement in progress, which ends the older of two tokens.
  struct Retirement {
    Handle segment;
    bool fenced = true;  // at the end: whether all peers that held the memory released it
    // At the end: whether peers may have the keys of the memory. Then the caller ends them
    // (DeviceReads::unmap), and maps the memory again.
    bool opened = false;

    bool begun = false;
    uint64_t fill = 0;     // the last fill that may answer a read with the older token
    uint64_t carried = 0;  // the last slice that the device may carry from or to the memory
    Time since{};          // when only peers still had to be waited for
  };
  // Makes only the newer token valid. Returns false until it is done, and is then called again in
  // later passes.
  bool retire(Retirement& what, Time now);

  // Removes all segments, without a fence. No segment can be added after this.
  void end();

  // How many fences ended while a peer still held the memory.
  uint64_t not_fenced() const { return not_fenced_; }

 private:
  // Returns whether the driver or a work of this process still uses the memory.
  bool is_used(const Withdrawal& what, Time now);
  // Returns the lease of the segment if a peer may be in the middle of a copy whose stores the
  // owner would see.
  std::optional<Lease> held(const Segments::Segment& segment);
  bool is_released(const Lease& lease);
  bool may_copy(const Segments::Segment& segment);
  Pairs* pairs() { return carriers_ != nullptr ? carriers_->pairs() : nullptr; }
  // Ends the keys that peers have of a segment. Returns false until none is valid, or it is known
  // that this takes too long: then `fenced` becomes false.
  bool end_keys(const Segments::Segment& segment, bool& fenced, Time now);
  // Copies the rights and tokens of all segments that share this TokenID from the table to the
  // medium.
  void grant_all(Handle segment);
  void revoke(const Segments::Segment& segment);
  template <class Function>
  void for_each_part(const Withdrawal& what, Function&& function);
  template <class Function>
  void for_each_ending(const Segments::Segment& part, Function&& function);

  Segments& segments_;
  drivers::SegmentMemory* const memory_;
  drivers::DeviceReads* const reads_;
  jetty::Transactions& transactions_;
  const Fills& fills_;
  Carriers* const carriers_;  // the keys of their pairs end with segments
  bool ended_ = false;
  uint64_t not_fenced_ = 0;
};

}  // namespace urma::engine
