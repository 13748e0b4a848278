// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace urma::apps::feed {

// An immediate has the topic, by which it is routed, in its highest bits. Below it is the number of
// the message among those of its producer, from 0.
inline constexpr unsigned topic_bits = 8;
inline constexpr uint32_t topics = 1 << topic_bits;
// The topic of a producer's last message, whose number is the count of its messages.
inline constexpr uint32_t end_topic = topics - 1;
inline constexpr uint64_t number_limit = uint64_t{1} << (64 - topic_bits);

constexpr uint64_t immediate_of(uint32_t topic, uint64_t number) {
  return uint64_t{topic} << (64 - topic_bits) | number;
}
constexpr uint32_t topic_in(uint64_t immediate) {
  return static_cast<uint32_t>(immediate >> (64 - topic_bits));
}
constexpr uint64_t number_in(uint64_t immediate) { return immediate & (number_limit - 1); }

// Each topic has a line in the consumer's memory with its last value.
inline constexpr size_t line_bytes = 64;

}  // namespace urma::apps::feed
