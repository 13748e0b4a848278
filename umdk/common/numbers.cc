// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "umdk/include/ub/umdk/urma/ub_util.h"

namespace {

// Reads a whole text by strtol or one of its kind. 0, or a negative error as ub_util.h says.
template <class Wide>
int read_whole(const char* text, Wide (*read)(const char*, char**, int), Wide& out) {
  char* end = nullptr;
  errno = 0;
  const Wide value = read(text, &end, 0);
  if (errno == ERANGE) return -EFAULT;
  if (end == text || *end != '\0') return -ENOEXEC;
  out = value;
  return 0;
}

template <class Number>
int read_unsigned(const char* text, Number* out) {
  if (text == nullptr || *text == '-') return -EINVAL;
  unsigned long value = 0;
  if (const int failed = read_whole(text, std::strtoul, value); failed != 0) return failed;
  if (value > std::numeric_limits<Number>::max()) return -ERANGE;
  *out = static_cast<Number>(value);
  return 0;
}

}  // namespace

extern "C" {

int ub_str_to_bool(const char* buf, bool* bool_res) {
  if (buf == nullptr) return -EINVAL;
  const bool value = std::strcmp(buf, "true") == 0;
  if (!value && std::strcmp(buf, "false") != 0) return -EINVAL;
  *bool_res = value;
  return 0;
}

int ub_str_to_u8(const char* buf, uint8_t* u8) { return read_unsigned(buf, u8); }
int ub_str_to_u16(const char* buf, uint16_t* u16) { return read_unsigned(buf, u16); }
int ub_str_to_u32(const char* buf, uint32_t* u32) { return read_unsigned(buf, u32); }
int ub_str_to_u64(const char* buf, uint64_t* u64) { return read_unsigned(buf, u64); }

int ub_str_to_int(const char* buf, int* integer) {
  if (buf == nullptr) return -EINVAL;
  long value = 0;
  if (const int failed = read_whole(buf, std::strtol, value); failed != 0) return failed;
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    return -ERANGE;
  }
  *integer = static_cast<int>(value);
  return 0;
}

}  // extern "C"
