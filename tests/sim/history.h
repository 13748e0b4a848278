#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "urma/core/work.h"

namespace urma::test {

// The works of one Jetty, in post order, and what was seen of them.
struct History {
  enum class Kind : uint8_t { tells, writes, reads, adds };
  struct Work {
    Kind kind = Kind::tells;
    uint32_t peer = 0;  // another life of it is another peer
    Order order = Order::none;
    Fence fence = Fence::none;
    uint32_t cell = 0;   // reads: the work that writes what it reads
    bool fails = false;  // it is refused
    bool signalled = true;
    bool troubled = false;  // it was cancelled, or its peer ended while it was open
    // What was seen.
    std::optional<Status> status{};
    uint32_t times = 0;      // that it arrived; writes: 1, if it was found in memory
    uint64_t place = 0;      // tells: among the arrivals at its peer
    uint64_t round = 0;      // and when these were looked at, or this was found
    uint64_t read = 0;       // reads: 0, or the number of the work that wrote it plus one; adds:
                             // the sum before it
    uint64_t completed = 0;  // its place among the completions
  };
  bool chain = false;
  bool in_order = false;
  std::vector<Work> works;

  // Returns the first contradiction to docs/reliability.md, or an empty string. A work that is not
  // known to have been executed may have been, at any time.
  std::string contradiction() const;
  // The sum of adds at this peer, beside what is known of them.
  std::string contradiction_of_sum(uint32_t peer, uint64_t sum) const;

 private:
  std::string of_reads(size_t i) const;
  std::string of_pair(size_t before, size_t after) const;
  bool must_precede(size_t before, size_t after) const;
  Order order_of(const Work& work) const {
    return chain && work.order == Order::relaxed ? Order::strong : work.order;
  }
};

}  // namespace urma::test
