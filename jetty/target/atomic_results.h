#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "urma/core/ids.h"

namespace urma::jetty {

// What the last atomics of one initiator queue brought back (docs/protocol.md): one that comes
// again after its channel died is answered from here, and not executed. Its initiator has none
// outstanding that is so many or more behind its newest one.
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
  // The newest one of that number. Nothing: it is not kept any more.
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
  uint32_t count_ = 0;  // ever kept, modulo 2^32
  std::array<uint64_t, kept> fetched_{};
  std::array<uint32_t, kept> tassns_{};  // longer than on the wire, where they come again soon
  std::array<uint8_t, kept> bytes_{};    // 0: there is none yet
};

}  // namespace urma::jetty
