// SPDX-License-Identifier: Apache-2.0
#include "umdk/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "umdk/include/ub/umdk/urma/urma_log.h"

namespace urma::umdk {
namespace {

constexpr size_t most_bytes = 1024;  // of a message
constexpr size_t tag_bytes = 32;

std::atomic<urma_vlog_level_t> lowest{URMA_VLOG_LEVEL_WARNING};
std::atomic<urma_log_cb_t> to_program{nullptr};
std::atomic<urma_loc_log_cb> to_program_with_place{nullptr};
thread_local char thread_tag[tag_bytes] = "";

void write(urma_vlog_level_t level, const char* call, int line, char* message) {
  if (const urma_loc_log_cb with_place = to_program_with_place.load()) {
    with_place(level, "liburma", call, line, message);
  } else if (const urma_log_cb_t plain = to_program.load()) {
    plain(level, message);
  } else {
    std::fprintf(stderr, "%s\n", message);
  }
}

bool is_dropped(urma_vlog_level_t level) { return level > lowest.load(std::memory_order_relaxed); }

void write_formatted(urma_vlog_level_t level, const char* call, int line, const char* format,
                     va_list arguments) {
  if (is_dropped(level)) return;
  char message[most_bytes];
  const int begun = std::snprintf(message, sizeof message, "%s%s%s: ", thread_tag,
                                  thread_tag[0] != 0 ? " " : "", call);
  if (begun < 0 || static_cast<size_t>(begun) >= sizeof message) return;
  std::vsnprintf(message + begun, sizeof message - static_cast<size_t>(begun), format, arguments);
  write(level, call, line, message);
}

}  // namespace

void log(urma_vlog_level_t level, const char* call, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_formatted(level, call, 0, format, arguments);
  va_end(arguments);
}

urma_status_t refuse(urma_status_t status, const char* call, const char* why, ...) {
  va_list arguments;
  va_start(arguments, why);
  write_formatted(URMA_VLOG_LEVEL_ERR, call, 0, why, arguments);
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

void urma_log(const char* function, int line, urma_vlog_level_t level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_formatted(level, function, line, format, arguments);
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
