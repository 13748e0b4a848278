// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "apps/urma_perf/stream.h"

namespace urma::apps::perf {

// Sends a message, waits until the server has sent one back, and repeats this, over some Jetties of
// the client in turn. Records half of each round trip. Both ends have checked the bytes by then.
class PingPong {
 public:
  PingPong(Side& side, std::vector<uint32_t> jetties, Jfc& completions, bool polls);

  void run(const Stop& stop, Outcome& outcome);

 private:
  int64_t rest(int64_t time);
  void send(uint32_t jetty, uint32_t window, Builds& builds);
  void post_late(Jetty& jetty, const Work& work);
  bool await(uint32_t jetty, uint32_t window, int64_t since, Verdict& verdict);
  bool handle(const Completion& completion, uint32_t jetty, uint32_t window, Verdict& verdict);
  bool is_late(uint32_t jetty, uint32_t slot, uint32_t window) const;

  Side& side_;
  std::vector<uint32_t> jetties_;
  Jfc& completions_;
  Taker taker_;
  std::vector<Work> works_;  // one for each Jetty of this loop
  uint32_t next_window_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace urma::apps::perf
