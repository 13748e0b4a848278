// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "apps/urma_perf/options.h"

namespace urma::apps::perf {

// The server of --self: this program again, in a child process that serves one client. The
// destructor ends and reaps it in any case; it ends by itself if this process dies.
class ChildServer {
 public:
  // Returns when the server can be reached. It runs on `processor`, or on any if that is negative.
  ChildServer(const Options& options, const std::string& device, int processor);
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;

  // ADDRESS:PORT
  const std::string& at() const { return at_; }

 private:
  std::string read_line(int from) const;
  bool wait(int64_t patience);
  void end();

  pid_t process_ = -1;
  int status_ = 0;
  std::string at_;
};

}  // namespace urma::apps::perf
