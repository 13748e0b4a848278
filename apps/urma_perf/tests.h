#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "apps/urma_perf/clock.h"
#include "urma/urma.hpp"

namespace urma::perf {

// The quantity that a test measures.
enum class Shape : uint8_t {
  post_to_completion,  // one work outstanding, its time
  half_round_trip,     // both sides bounce; half of the time
  bandwidth,           // many works outstanding; how many in which time
};

// A test is a row of this table and nothing else.
struct Test {
  std::string_view name;
  Operation operation;
  bool immediate;
  Shape shape;
  std::string_view summary;
  bool asleep = false;  // both sides sleep when a message comes

  bool ping_pong() const { return shape == Shape::half_round_trip; }
  bool bandwidth() const { return shape == Shape::bandwidth; }
  // The target's application hears of each message.
  bool told() const { return immediate || operation == Operation::send; }
  bool sends() const { return operation == Operation::send; }
  bool reads() const { return operation == Operation::read; }
  bool atomics() const { return operation == Operation::atomic; }
  // The server is not notified of these works: its memory is checked when a round has ended.
  bool lands_unseen() const { return (operation == Operation::write && !ping_pong()) || atomics(); }
};

// In an asleep test each side rests for so long before it sends, so that the other one certainly
// sleeps: acknowledgements are late by up to 0.4 ms, and a side that they wake spins before it
// sleeps again. The duration is not sent: the server holds each answer for as long, the client
// subtracts it.
inline constexpr int64_t rest_before_send = millisecond;

std::span<const Test> all_tests();
// Null when there is none of that name.
const Test* find_test(std::string_view name);
// "write_lat, write_bw, ..."
std::string test_names();

}  // namespace urma::perf
