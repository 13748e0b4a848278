// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace urma::nccl {
namespace {

constexpr size_t most_bytes = 1024;  // of a line

std::atomic<Logger> to_nccl{nullptr};

void write(int level, const char* format, va_list arguments) {
  const Logger logger = to_nccl.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  char line[most_bytes];
  std::vsnprintf(line, sizeof line, format, arguments);
  logger(level, log_init | log_net, "liburma", 0, "NET/URMA: %s", line);
}

}  // namespace

void log_to(Logger logger) {
  if (logger != nullptr) to_nccl.store(logger, std::memory_order_release);
}

void warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write(log_warn, format, arguments);
  va_end(arguments);
}

void inform(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write(log_info, format, arguments);
  va_end(arguments);
}

}  // namespace urma::nccl
