#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace urma::feed {

// Whether each message of one producer came, and once. They may overtake one another.
class Tally {
 public:
  void came(uint64_t number) {
    if (number < next_ || !ahead_.insert(number).second) {
      ++repeated_;
      return;
    }
    while (ahead_.erase(next_) == 1) ++next_;
  }
  // So many there were.
  void ended(uint64_t total) { total_ = total; }
  bool over() const { return total_.has_value(); }

  uint64_t repeated() const { return repeated_; }
  // How many messages did not come of those that were certainly sent.
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

}  // namespace urma::feed
