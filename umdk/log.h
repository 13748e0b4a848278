// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <new>
#include <string>

#include "umdk/include/ub/umdk/urma/urma_api.h"

namespace urma::umdk {

// The log of the C API: a callback, or stderr. Any thread calls these functions; they do not throw.

// The function of the C API that the program called, and the place where a message of it is given:
// that where its name becomes a Call. (Clang 14 does not have std::source_location.)
struct Call {
  constexpr Call(const char* of, const char* in = __builtin_FILE(), int at = __builtin_LINE())
      : name(of), file(in), line(at) {}
  constexpr operator const char*() const { return name; }

  const char* name;
  const char* file;
  int line;
  bool limited = false;
};
// A call of the data path, of which a program may make millions. For such calls `refuse` limits the
// messages from each place in the source: it writes the first hundred, and later ten each second,
// which say how many it left out.
constexpr Call often(const char* of, const char* in = __builtin_FILE(), int at = __builtin_LINE()) {
  Call call(of, in, at);
  call.limited = true;
  return call;
}

// Writes a message, if its level is not below that of the log.
[[gnu::format(printf, 3, 4)]] void log(urma_vlog_level_t level, Call call, const char* format, ...);
// Writes why a call fails, as an error, and returns the status. Neither allocates nor locks, unless
// the program's function does.
[[gnu::format(printf, 3, 4), gnu::cold]] urma_status_t refuse(urma_status_t status, Call call,
                                                              const char* why, ...);
// Runs `add`, which stores a record until urma_poll_jfc returns it. If the system has no memory for
// the record, it is lost; the log names it by `what`, and the caller continues.
template <class Add>
void keep_or_log(const char* what, Add&& add) noexcept {
  try {
    add();
  } catch (const std::bad_alloc&) {
    log(URMA_VLOG_LEVEL_ERR, "urma_poll_jfc",
        "%s is lost: the system has no memory left. Fix: free some", what);
  }
}
// Sets errno, for calls that return a pointer.
inline std::nullptr_t null(urma_status_t status) {
  errno = status;
  return nullptr;
}

}  // namespace urma::umdk
