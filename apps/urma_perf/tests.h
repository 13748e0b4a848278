// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "apps/urma_perf/clock.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {

// The quantity that a test measures.
enum class Shape : uint8_t {
  post_to_completion,  // one outstanding work, its time; or a call of a lane
  half_round_trip,     // both sides send back what they receive; half of the time
  bandwidth,           // many outstanding works; how many in which time
};

// A test is fully described by its row of this table.
struct Test {
  std::string_view name;
  Operation operation;
  bool immediate;
  Shape shape;
  std::string_view summary;
  bool asleep = false;  // both sides sleep when a message comes
  bool lane = false;    // calls of a lane (Jetty::lane), and no works
  bool plan = false;    // a message is a list of blocks (Plan), each of which is a work

  bool ping_pong() const { return shape == Shape::half_round_trip; }
  bool bandwidth() const { return shape == Shape::bandwidth; }
  // Returns whether the target's application is notified of each message.
  bool told() const { return immediate || operation == Operation::send; }
  bool sends() const { return operation == Operation::send; }
  bool reads() const { return operation == Operation::read; }
  bool atomics() const { return operation == Operation::atomic; }
  // Returns how many units of a histogram are a microsecond. A call of a lane takes a few
  // nanoseconds, so its time is recorded in picoseconds.
  double units_per_us() const { return lane ? 1e6 : 1e3; }
  // Returns whether the server is not notified of these works. Then it checks its memory at the end
  // of a round.
  bool lands_unseen() const { return (operation == Operation::write && !ping_pong()) || atomics(); }
};

// In an asleep test each side sleeps for this long before it sends, so that the other one certainly
// sleeps: acknowledgements are up to 0.4 ms late, and a side that they wake spins before it sleeps
// again. The duration is not sent: the server delays each answer by as much, and the client
// subtracts it.
inline constexpr int64_t rest_before_send = millisecond;

std::span<const Test> all_tests();
// Returns null if there is no test of that name.
const Test* find_test(std::string_view name);
// Returns "write_lat, write_bw, ...".
std::string test_names();

}  // namespace urma::apps::perf
