// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "base/clock.h"
#include "tests/api/helpers.h"

namespace urma::test {

inline Duration since(Time begun) { return read_clock() - begun; }

// Keeps a Jetty busy and counts how its works ended.
class Traffic {
 public:
  Traffic(Jetty& jetty, const Imported& target) : jetty_(jetty), target_(target) {}

  void turn() {
    const Work works[] = {write(bytes_, target_.segment),
                          send(std::span(bytes_).first(100), target_.jetty),
                          write(bytes_, target_.segment, 8192).to(target_.jetty).immediate(1)};
    while (jetty_.vacant_berths() >= std::size(works)) posted_ += jetty_.post(works);
    std::array<Completion, 64> out;
    const size_t count = jetty_.poll(out);
    for (const Completion& completion : std::span(out).first(count)) ++ended_[completion.status];
    completed_ += count;
  }
  void finish() {
    while (completed_ < posted_) {
      const auto completions = jetty_.wait(patience);
      if (completions.empty()) return;
      completed_ += completions.size();
      for (const Completion& completion : completions) ++ended_[completion.status];
    }
  }

  bool all_completed() const { return completed_ == posted_; }
  uint64_t completed() const { return completed_; }
  uint64_t ended(Status status) { return ended_[status]; }

 private:
  Jetty& jetty_;
  Imported target_;
  std::vector<std::byte> bytes_ = bytes_like(5000, 1);
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  std::map<Status, uint64_t> ended_;
};

}  // namespace urma::test
