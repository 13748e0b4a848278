// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/eal_log.h"

#include <rte_log.h>

#include <algorithm>
#include <mutex>

namespace urma::drivers::dpdk {
namespace {

constexpr size_t most_kept = 4096;

// EAL's threads may print until the process ends, so this is never destroyed.
struct Kept {
  std::mutex mutex;
  std::string text;
};
Kept& kept() {
  static Kept& one = *new Kept;
  return one;
}

}  // namespace

EalLog& EalLog::of_this_process() {
  static EalLog& log = *new EalLog;
  return log;
}

bool EalLog::capture() {
  cookie_io_functions_t functions{};
  functions.write = write;
  stream_ = fopencookie(this, "w", functions);
  if (stream_ == nullptr) return false;
  std::setvbuf(stream_, nullptr, _IOLBF, BUFSIZ);
  return rte_openlog_stream(stream_) == 0;
}

ssize_t EalLog::write(void*, const char* text, size_t bytes) {
  Kept& into = kept();
  const std::lock_guard lock(into.mutex);
  into.text.append(text, bytes);
  if (into.text.size() > most_kept) into.text.erase(0, into.text.size() - most_kept);
  return static_cast<ssize_t>(bytes);
}

std::string EalLog::quote() const {
  if (stream_ != nullptr) std::fflush(stream_);
  Kept& from = kept();
  const std::lock_guard lock(from.mutex);
  std::string out = from.text;
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  std::ranges::replace(out, '\n', ';');
  return out.empty() ? "DPDK gives no reason" : out;
}

void EalLog::clear() {
  if (stream_ != nullptr) std::fflush(stream_);
  Kept& from = kept();
  const std::lock_guard lock(from.mutex);
  from.text.clear();
}

}  // namespace urma::drivers::dpdk
