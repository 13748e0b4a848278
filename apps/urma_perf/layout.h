#pragma once

#include <cstdint>

#include "apps/urma_perf/case.h"

namespace urma::perf {

// Where things lie in the one segment that each side registers for a case. Both sides compute it
// from the same Case: no offset is ever told.
//
//   ledger    8 bytes per slot: the window that was last written there, of atomics the word, told
//   at
//             a round's end
//   source    what this side sends, or is read: one long pattern, as often as reads are spread
//   landing   `slots` places of `stride` bytes for each Jetty, where messages arrive
class Layout {
 public:
  explicit Layout(const Case& what);

  uint32_t slots() const { return slots_; }  // of one Jetty
  uint64_t ledger_bytes() const { return lanes_ * sizeof(uint64_t); }
  uint64_t ledger_at(uint32_t jetty, uint32_t slot) const {
    return (uint64_t{jetty} * slots_ + slot) * sizeof(uint64_t);
  }
  uint64_t source_begin() const { return source_; }
  uint64_t source_bytes() const { return source_bytes_; }  // of one
  uint32_t sources() const { return sources_; }
  uint64_t source_stride() const { return source_stride_; }
  uint64_t source_at(uint32_t window, uint32_t source = 0) const;
  uint64_t landing_begin() const { return landing_; }
  uint64_t landing_bytes() const { return bytes_ - landing_; }
  uint64_t slot_at(uint32_t jetty, uint32_t slot) const {
    return landing_ + (uint64_t{jetty} * slots_ + slot) * stride_;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint32_t slots_;
  uint64_t lanes_;
  uint64_t stride_;
  uint64_t source_;
  uint64_t source_bytes_;
  uint64_t source_stride_;
  uint32_t sources_;
  uint64_t landing_;
  uint64_t bytes_;
};

}  // namespace urma::perf
