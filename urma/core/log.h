// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace urma {

// How severe a line of the log is, the most severe first.
enum class LogLevel : uint8_t {
  error,    // a system call failed
  warning,  // works failed, peers or packets were lost, or peers sent something wrong
  info,     // the device was opened or closed, a channel was made, a peer left
  debug,    // explains why works are slow: packets were sent again, receivers were not ready
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(LogLevel level) { return level <= LogLevel::debug; }
// Returns the name of the level: "error", "warning", "info" or "debug".
constexpr std::string_view name(LogLevel level) {
  constexpr std::array<std::string_view, 4> names = {"error", "warning", "info", "debug"};
  return is_valid(level) ? names[static_cast<size_t>(level)] : "unknown";
}

// The layers of the library that log something (LogLine::layer).
inline constexpr std::array<std::string_view, 6> log_layers = {"drivers", "transport", "congestion",
                                                               "memseg",  "jetty",     "engine"};

// One line of a device's log. The texts are valid until the callback returns.
struct LogLine {
  LogLevel level = LogLevel::info;  // how severe it is
  std::string_view kind;            // for programs; docs/operating.md lists all kinds
  uint64_t count = 1;               // occurrences since the last line of this kind
  std::string_view text;   // for people, one line: the device, what happened, why, and what to do
  std::string_view layer;  // the layer that it is about, one of `log_layers`
};

// How a device logs. The device compares its counters at most ten times a second and passes lines
// to `call` on a thread that does nothing else; so `call` may be slow, and is never called twice at
// the same time. No occurrence is omitted: a line that would exceed `per_second` is delayed, and
// then contains the number of occurrences since the last line of its kind. Lines that are still
// delayed when the device is closed are passed to `call` during the close.
//
// `call` must not throw, and must not close or destroy its device, because closing waits for the
// last line. It may make other calls of the device.
struct LogOptions {
  std::function<void(const LogLine&)> call{};  // if empty, only users log (URMA_LOG)
  LogLevel level = LogLevel::info;             // the least severe level that is logged
  uint32_t per_second = 1;  // the most lines of each kind that are passed in a second: 1 to 10
};

}  // namespace urma
