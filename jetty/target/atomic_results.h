// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "urma/core/ids.h"

namespace urma::jetty {

// The results of the last atomics of one initiator queue (docs/protocol.md). An atomic that arrives
// again after its channel ended is answered with its result instead of being executed twice. The
// initiator never has an atomic outstanding that is `kept` or more behind its newest one.
class AtomicResults {
 public:
  static constexpr uint32_t kept = 64;  // R

  struct Result {
    uint64_t fetched;
    uint8_t bytes;  // of the word
  };

  void keep(Tassn tassn, uint64_t fetched, uint32_t bytes) {
    const uint32_t at = count_++ % kept;
    tassns_[at] = static_cast<uint32_t>(tassn.value);
    fetched_[at] = fetched;
    bytes_[at] = static_cast<uint8_t>(bytes);
  }
  // Returns the newest result of that number, or nothing if it is not kept any more.
  std::optional<Result> find(Tassn tassn) const {
    for (uint32_t back = 1; back <= kept; ++back) {
      const uint32_t at = (count_ - back) % kept;
      if (bytes_[at] == 0) break;
      if (tassns_[at] == static_cast<uint32_t>(tassn.value))
        return Result{fetched_[at], bytes_[at]};
    }
    return std::nullopt;
  }

 private:
  uint32_t count_ = 0;  // how many were ever kept, modulo 2^32
  std::array<uint64_t, kept> fetched_{};
  std::array<uint32_t, kept> tassns_{};  // unwrapped: wire numbers repeat too soon
  std::array<uint8_t, kept> bytes_{};    // 0 if unused
};

}  // namespace urma::jetty
