// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace urma::apps::feed {

// Counts whether each message of one producer came, and came once. Messages may overtake one
// another.
class Tally {
 public:
  void came(uint64_t number) {
    if (number < next_ || !ahead_.insert(number).second) {
      ++repeated_;
      return;
    }
    while (ahead_.erase(next_) == 1) ++next_;
  }
  // The producer has ended, and has sent this many messages.
  void ended(uint64_t total) { total_ = total; }
  bool over() const { return total_.has_value(); }

  uint64_t repeated() const { return repeated_; }
  // Returns how many of the messages that were certainly sent have not come.
  uint64_t missing() const {
    const uint64_t known = ahead_.empty() ? next_ : *ahead_.rbegin() + 1;
    const uint64_t sent = total_ && *total_ > known ? *total_ : known;
    return sent - next_ - ahead_.size();
  }

 private:
  uint64_t next_ = 0;
  std::set<uint64_t> ahead_;
  uint64_t repeated_ = 0;
  std::optional<uint64_t> total_;
};

}  // namespace urma::apps::feed
