// SPDX-License-Identifier: Apache-2.0
#include "umdk/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "umdk/include/ub/umdk/urma/urma_log.h"

namespace urma::umdk {
namespace {

constexpr size_t most_bytes = 1024;  // of a message
constexpr size_t tag_bytes = 32;

std::atomic<urma_vlog_level_t> lowest{URMA_VLOG_LEVEL_WARNING};
std::atomic<urma_log_cb_t> to_program{nullptr};
std::atomic<urma_loc_log_cb> to_program_with_place{nullptr};
thread_local char thread_tag[tag_bytes] = "";

bool is_dropped(urma_vlog_level_t level) { return level > lowest.load(std::memory_order_relaxed); }

// Returns the last two parts of a path: the file in the repository.
const char* in_repository(const char* path) {
  const std::string_view whole(path);
  const size_t name = whole.rfind('/');
  if (name == whole.npos || name == 0) return path;
  const size_t folder = whole.rfind('/', name - 1);
  return folder == whole.npos ? path : path + folder + 1;
}

// Begins a message with the thread's tag and, for functions of the program that get no place, the
// call. Returns how many bytes that is.
size_t begin_message(std::span<char> message, const char* call, bool names_call) {
  const int bytes =
      std::snprintf(message.data(), message.size(), "%s%s%s%s", thread_tag,
                    thread_tag[0] != 0 ? " " : "", names_call ? call : "", names_call ? ": " : "");
  return std::clamp<size_t>(bytes < 0 ? 0 : static_cast<size_t>(bytes), 0, message.size() - 1);
}

// Ends a message with one newline, as UMDK does: programs write what they get as it is.
void end_message(std::span<char> message) {
  const size_t bytes = std::min(std::strlen(message.data()), message.size() - 2);
  if (bytes > 0 && message[bytes - 1] == '\n') return;
  message[bytes] = '\n';
  message[bytes + 1] = 0;
}

// `left_out`: how many messages like this one were not written.
void write_formatted(urma_vlog_level_t level, const Call& call, uint32_t left_out,
                     const char* format, va_list arguments) {
  const urma_loc_log_cb with_place = to_program_with_place.load();
  char message[most_bytes];
  size_t end = begin_message(message, call.name, with_place == nullptr);
  end += static_cast<size_t>(
      std::max(std::vsnprintf(message + end, sizeof message - end, format, arguments), 0));
  if (left_out > 0 && end < sizeof message) {
    std::snprintf(message + end, sizeof message - end, " (%u messages like this one were left out)",
                  left_out);
  }
  end_message(message);
  if (with_place != nullptr) {
    with_place(level, in_repository(call.file), call.name, call.line, message);
  } else if (const urma_log_cb_t plain = to_program.load()) {
    plain(level, message);
  } else {
    std::fputs(message, stderr);
  }
}

// ---- the limit of the data path

// Messages from one place are written every tenth of a second, and a hundred of them earlier than
// that.
constexpr Duration turn = std::chrono::milliseconds(100);
constexpr Duration most_ahead = 100 * turn;

struct Limit {
  std::atomic<int64_t> taken_until{0};  // turns, in nanoseconds
  std::atomic<uint32_t> left_out{0};    // since the last message
};
std::array<Limit, 256> limits{};  // a few places in the source may share one

Limit& limit_at(const Call& call) {
  const auto file = reinterpret_cast<uintptr_t>(call.file);
  return limits[(file / 8 + static_cast<unsigned>(call.line)) % limits.size()];
}

// Takes a turn, and returns how many messages were left out before it. Returns nothing if there is
// none, so that the message is left out.
std::optional<uint32_t> take_turn(Limit& limit) {
  const int64_t now = read_clock().time_since_epoch().count();
  int64_t before = limit.taken_until.load(std::memory_order_relaxed);
  int64_t after = 0;
  do {
    after = std::max(before, now) + turn.count();
    if (after > now + most_ahead.count()) {
      limit.left_out.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
  } while (!limit.taken_until.compare_exchange_weak(before, after, std::memory_order_relaxed));
  return limit.left_out.exchange(0, std::memory_order_relaxed);
}

}  // namespace

void log(urma_vlog_level_t level, Call call, const char* format, ...) {
  if (is_dropped(level)) return;
  va_list arguments;
  va_start(arguments, format);
  write_formatted(level, call, 0, format, arguments);
  va_end(arguments);
}

urma_status_t refuse(urma_status_t status, Call call, const char* why, ...) {
  if (is_dropped(URMA_VLOG_LEVEL_ERR)) return status;
  const auto left_out = call.limited ? take_turn(limit_at(call)) : 0;
  if (!left_out) return status;
  va_list arguments;
  va_start(arguments, why);
  write_formatted(URMA_VLOG_LEVEL_ERR, call, *left_out, why, arguments);
  va_end(arguments);
  return status;
}

}  // namespace urma::umdk

using namespace urma::umdk;

extern "C" {

urma_status_t urma_register_log_func(urma_log_cb_t func) {
  if (func == nullptr) {
    return refuse(URMA_EINVAL, __func__,
                  "the function is null. Fix: give one, or call "
                  "urma_unregister_log_func");
  }
  to_program_with_place = nullptr;
  to_program = func;
  return URMA_SUCCESS;
}

urma_status_t urma_register_loc_log_func(urma_loc_log_cb func) {
  if (func == nullptr) {
    return refuse(URMA_EINVAL, __func__,
                  "the function is null. Fix: give one, or call "
                  "urma_unregister_log_func");
  }
  to_program_with_place = func;
  return URMA_SUCCESS;
}

urma_status_t urma_unregister_log_func(void) {
  to_program_with_place = nullptr;
  to_program = nullptr;
  return URMA_SUCCESS;
}

bool urma_log_drop(urma_vlog_level_t level) { return is_dropped(level); }

// The caller does not tell its file.
void urma_log(const char* function, int line, urma_vlog_level_t level, const char* format, ...) {
  if (is_dropped(level)) return;
  va_list arguments;
  va_start(arguments, format);
  write_formatted(level, Call(function, "unknown", line), 0, format, arguments);
  va_end(arguments);
}

urma_vlog_level_t urma_log_get_level(void) { return lowest; }

void urma_log_set_level(urma_vlog_level_t level) {
  if (level >= URMA_VLOG_LEVEL_EMERG && level < URMA_VLOG_LEVEL_MAX) lowest = level;
}

const char* urma_log_get_thread_tag(void) { return thread_tag; }

void urma_log_set_thread_tag(const char* tag) {
  std::snprintf(thread_tag, sizeof thread_tag, "%s", tag != nullptr ? tag : "");
}

}  // extern "C"
