// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace urma::apps::switches {

// A set of port numbers, with a bit for each port of the switch. Used by one thread.
class PortSet {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  explicit PortSet(uint32_t ports) : words_((ports + 63) / 64) {}

  uint32_t size() const { return size_; }
  void add(uint32_t port) {
    uint64_t& word = words_[port / 64];
    size_ += (word & bit(port)) == 0;
    word |= bit(port);
  }
  void remove(uint32_t port) {
    uint64_t& word = words_[port / 64];
    size_ -= (word & bit(port)) != 0;
    word &= ~bit(port);
  }
  // Returns the first member that is not below `port`, or `none`.
  uint32_t from(uint32_t port) const {
    for (size_t at = port / 64; at < words_.size(); ++at) {
      const uint64_t rest = at == port / 64 ? words_[at] & ~(bit(port) - 1) : words_[at];
      if (rest != 0)
        return static_cast<uint32_t>(at * 64 + static_cast<size_t>(std::countr_zero(rest)));
    }
    return none;
  }

 private:
  static uint64_t bit(uint32_t port) { return uint64_t{1} << port % 64; }

  std::vector<uint64_t> words_;
  uint32_t size_ = 0;
};

}  // namespace urma::apps::switches
