// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "urma/core/time.h"

// Computations of both controllers and port meters. The results are the same on every machine: only
// operations that IEEE 754 rounds correctly, and a hash where chance is needed.
namespace urma::congestion {

// Returns a number in [0, 1) that looks random: the same one for the same seed and number.
inline double chance_of(uint64_t seed, uint64_t number) {
  uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15 + number * 0xd1342543de82ef95;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

inline double seconds(Duration time) { return static_cast<double>(time.count()) * 1e-9; }
// Returns the time of so many seconds, from zero to an hour, rounded up.
inline Duration duration_of(double seconds) {
  return Duration(static_cast<int64_t>(std::ceil(std::clamp(seconds, 0.0, 3600.0) * 1e9)));
}

// Returns `value` in whole bytes, from zero to `most`; zero if it is not a number.
inline uint64_t whole_bytes(double value, uint64_t most) {
  if (!(value > 0)) return 0;
  return value < static_cast<double>(most) ? static_cast<uint64_t>(value) : most;
}

// Rate codes: 16 steps in an octave, from 10 Mb/s (code 0) to 628 Gb/s (code 255), in bytes per
// second. On the wire code 0 says that no rate is named, so no rate is encoded as 0.
inline constexpr double code_zero_rate = 1.25e6;
inline constexpr std::array<double, 16> sixteenths{
    1.0,
    1.0442737824274138,
    1.0905077326652577,
    1.1387886347566916,
    1.189207115002721,
    1.241857812073484,
    1.2968395546510096,
    1.3542555469368927,
    1.4142135623730951,
    1.4768261459394993,
    1.5422108254079407,
    1.6104903319492543,
    1.681792830507429,
    1.7562521603732995,
    1.8340080864093424,
    1.9152065613971474,
};

// Returns 16 * log2(ratio), rounded down. If the ratio is close to a step, the result may be off by
// one.
// `ratio`: from 1 to 2^26.
inline unsigned octave_steps(double ratio) {
  constexpr uint64_t mantissa = (uint64_t{1} << 52) - 1, one = uint64_t{1023} << 52;
  const auto bits = std::bit_cast<uint64_t>(ratio);
  const auto octave = static_cast<unsigned>(bits >> 52) - 1023;
  const auto within = std::bit_cast<double>((bits & mantissa) | one);
  // log2(1 + x) is at least x in an octave, so the search can begin at x in sixteenths.
  unsigned step = bits >> 48 & 15;
  while (step < 15 && sixteenths[step + 1] <= within) ++step;
  return 16 * octave + step;
}

inline double rate_of(uint8_t code) {
  return code_zero_rate * sixteenths[code % 16] * static_cast<double>(1u << code / 16);
}

// A rate between two codes: `part` of the step from `low` to the next one.
struct CodedRate {
  uint8_t low;
  float part;

  // Returns one of the two codes: the upper one with a probability of `part`, so that the mean of
  // many is the rate. `chance`: in [0, 1).
  uint8_t code(double chance) const { return static_cast<uint8_t>(low + (chance < part ? 1 : 0)); }
};

// Rates outside of the codes become code 1 or 255.
inline CodedRate coded_rate(double bytes_per_second) {
  if (!(bytes_per_second > rate_of(1))) return {1, 0};
  if (bytes_per_second >= rate_of(255)) return {255, 0};
  auto low = static_cast<uint8_t>(octave_steps(bytes_per_second / code_zero_rate));
  while (rate_of(low) > bytes_per_second) --low;
  const double step = rate_of(static_cast<uint8_t>(low + 1)) - rate_of(low);
  return {low, static_cast<float>((bytes_per_second - rate_of(low)) / step)};
}

inline uint8_t rate_code(double bytes_per_second, double chance) {
  return coded_rate(bytes_per_second).code(chance);
}

// Queue codes: four steps in an octave, from 64 ns (code 1) to 2.9 ms (code 63). Zero says that
// there is none, and the largest code that it takes 2.9 ms or more.
inline constexpr double code_one_queue = 64e-9;
inline constexpr uint8_t largest_queue_code = 63;

inline double queue_seconds(uint8_t code) {
  if (code == 0) return 0;
  const unsigned step = std::min(code, largest_queue_code) - 1u;
  return code_one_queue * sixteenths[step % 4 * 4] * static_cast<double>(1u << step / 4);
}

// Rounds up. If the meter reported less than the queue that a sender has measured, the sender would
// take the difference for a queue at another hop.
inline uint8_t queue_code(double seconds) {
  if (!(seconds > 0)) return 0;
  if (seconds <= code_one_queue) return 1;
  if (seconds >= queue_seconds(largest_queue_code)) return largest_queue_code;
  auto code = static_cast<uint8_t>(octave_steps(seconds / code_one_queue) / 4 + 1);
  while (queue_seconds(code) < seconds) ++code;
  while (queue_seconds(static_cast<uint8_t>(code - 1)) >= seconds) --code;
  return code;
}

}  // namespace urma::congestion
