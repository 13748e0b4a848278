// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace urma::drivers::dpdk {

// The log of EAL and its ports, which would otherwise go to stderr and syslog, so that an error can
// quote it. The last 4 KiB are kept. Any thread may call it; there is one per process, because EAL
// has one log.
class EalLog {
 public:
  static EalLog& of_this_process();

  // Gives EAL the stream. Call it before EAL is started. Returns false if the system has no memory.
  bool capture();
  // Returns the lines since the last call of `clear`, as one line.
  std::string quote() const;
  void clear();

 private:
  static ssize_t write(void* self, const char* text, size_t bytes);

  std::FILE* stream_ = nullptr;
};

}  // namespace urma::drivers::dpdk
