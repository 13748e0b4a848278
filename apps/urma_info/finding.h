// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace urma::apps::info {

enum class Level : uint8_t {
  ok,
  warn,  // it works, but slower or with less room than it could
  fix,   // it does not work, or will soon not work
};

// The result of a check, with the exact fix for what it found.
struct Finding {
  Level level = Level::ok;
  std::string what;
  std::string fix;  // empty if there is nothing to do
};

inline Finding ok(std::string what) { return {Level::ok, std::move(what), {}}; }
inline Finding warn(std::string what, std::string fix) {
  return {Level::warn, std::move(what), std::move(fix)};
}
inline Finding fix(std::string what, std::string fix) {
  return {Level::fix, std::move(what), std::move(fix)};
}

constexpr const char* name(Level level) {
  return level == Level::ok ? "ok" : level == Level::warn ? "warn" : "fix";
}

}  // namespace urma::apps::info
