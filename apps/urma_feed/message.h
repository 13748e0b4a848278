#pragma once

#include <cstddef>
#include <cstdint>

namespace urma::feed {

// An immediate has the topic in its highest bits, by which it is routed, and below them the number
// of the message among those of its producer, from 0.
inline constexpr unsigned topic_bits = 8;
inline constexpr uint32_t topics = 1 << topic_bits;
// The last message of a producer: its number is how many messages there were.
inline constexpr uint32_t end_topic = topics - 1;
inline constexpr uint64_t number_limit = uint64_t{1} << (64 - topic_bits);

constexpr uint64_t immediate_of(uint32_t topic, uint64_t number) {
  return uint64_t{topic} << (64 - topic_bits) | number;
}
constexpr uint32_t topic_in(uint64_t immediate) {
  return static_cast<uint32_t>(immediate >> (64 - topic_bits));
}
constexpr uint64_t number_in(uint64_t immediate) { return immediate & (number_limit - 1); }

// Each topic has a line of the consumer's memory, where its last value is.
inline constexpr size_t line_bytes = 64;

}  // namespace urma::feed
