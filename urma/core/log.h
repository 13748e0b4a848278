#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace urma {

enum class LogLevel : uint8_t {
  error,    // the system fails this device
  warning,  // works, peers or packets were lost, or something is wrong with them
  info,     // what the device does: opened, channels made, peers that left, closed
};
// Whether it is one of the values above: any number can be cast to an enumeration.
constexpr bool is_valid(LogLevel level) { return level <= LogLevel::info; }
constexpr std::string_view name(LogLevel level) {
  return level == LogLevel::error ? "error" : level == LogLevel::warning ? "warning" : "info";
}

// What a device tells. The texts are good until the callback returns.
struct LogLine {
  LogLevel level = LogLevel::info;
  std::string_view kind;  // for programs: docs/operating.md has all of them
  uint64_t count = 1;     // how many of it there were since the last line of this kind
  std::string_view text;  // one line for people: which device, what, why, and a fix if there is one
};

// Lines are found by comparing counters, at most ten times a second, and told by a thread of the
// device's own that does nothing else: `call` may be slow, and is called once at a time. Nothing is
// left out: a line that comes too soon waits, and says how many there were since the last one; what
// waits when the device is closed is told then.
//
// `call` must neither throw nor close or destroy its device, which waits for the last line. Other
// calls of the device may be made in it.
struct LogOptions {
  std::function<void(const LogLine&)> call{};  // none: nothing is logged
  LogLevel level = LogLevel::info;             // this and worse
  uint32_t per_second = 1;                     // lines of each kind: 1 to 10
};

}  // namespace urma
