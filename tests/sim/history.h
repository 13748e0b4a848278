// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "urma/core/work.h"

namespace urma::test {

// The works of one Jetty in post order, each with the observations of the run.
struct History {
  enum class Kind : uint8_t { tells, writes, reads, adds };
  struct Work {
    Kind kind = Kind::tells;
    uint32_t peer = 0;  // each incarnation of a peer has a number of its own
    Order order = Order::none;
    Fence fence = Fence::none;
    uint32_t cell = 0;   // for reads: the work that writes the cell that is read
    bool fails = false;  // the target must refuse it
    bool signalled = true;
    bool troubled = false;  // it was cancelled, or its peer ended while it was outstanding
    // The following members are observations.
    std::optional<Status> status{};
    uint32_t times = 0;  // number of arrivals; for writes: 1 if the value was found in memory
    uint64_t place = 0;  // for messages: position among the arrivals at its peer
    uint64_t round = 0;  // round in which the arrivals were polled, or the value was found
    // For reads: 0, or 1 + the number of the work that wrote the value; for adds: the sum before
    // it.
    uint64_t read = 0;
    uint64_t completed = 0;  // its place among the completions
  };
  bool chain = false;
  bool in_order = false;
  std::vector<Work> works;

  // Returns the first contradiction to docs/reliability.md, or an empty string. A work that ended
  // unknown may have been executed at any time.
  std::string contradiction() const;
  // Compares the sum of the adds at this peer with what the completions say.
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
