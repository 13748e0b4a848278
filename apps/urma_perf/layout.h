// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "apps/urma_perf/case.h"

namespace urma::apps::perf {

// The offsets of all parts of the one segment that each side registers for a case. Both sides
// compute them from the same Case, so no offset is ever sent.
//
//   ledger    8 bytes per slot: the window that was last written there, or for atomics the word;
//             for a plan, the window and `words_of_block` words for each block; the client writes
//             it to the server at the end of a round
//   source    the bytes that this side sends or lets others read: one long pattern, as many times
//             as reads are spread
//   landing   `slots` slots of `stride` bytes for each Jetty, where messages arrive. Those of a
//   plan
//             arrive at one side only, where the other side has its source
class Layout {
 public:
  // A block of a plan in the ledger: its offsets at the server and at the client, and its length.
  static constexpr size_t words_of_block = 3;

  explicit Layout(const Case& what);

  uint32_t slots() const { return slots_; }  // of one Jetty
  uint64_t ledger_bytes() const { return ledger_words_ * sizeof(uint64_t); }
  uint64_t source_begin() const { return source_; }
  uint64_t source_bytes() const { return source_bytes_; }  // of one source
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
  uint64_t ledger_words_;
  uint64_t stride_;
  uint64_t source_;
  uint64_t source_bytes_;
  uint64_t source_stride_;
  uint32_t sources_;
  uint64_t landing_;
  uint64_t bytes_;
};

}  // namespace urma::apps::perf
