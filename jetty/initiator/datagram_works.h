// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "jetty/initiator/open_works.h"

namespace urma::jetty {

// Sends the works of unreliable Jetties (UB: UNO), which complete as soon as they are sent. They
// have neither slices nor answers. The Initiator owns it; only the thread that runs the engine
// calls it.
class DatagramWorks {
 public:
  DatagramWorks(const InitiatorCommon& common, OpenWorks& works);

  // Sends at most `budget` posted works of the Jetty, and returns how many. The others wait until
  // some packets have been sent.
  [[gnu::cold]] uint32_t take(Jetty& jetty, uint32_t budget, Time now);
  // Flushes the works that use this memory. The queue can only be emptied from its front, so works
  // before the last one of these are flushed, too.
  [[gnu::cold]] void flush_memory(Jetty& jetty, const std::byte* base, uint64_t bytes, Time now);

 private:
  // Returns how the work ends, or nothing if it must wait.
  std::optional<Status> send(const Jetty& jetty, uint16_t lease);
  void end_next(Jetty& jetty, Status status, Time now);

  transport::Channels& channels_;
  InitiatorCounters& counters_;
  OpenWorks& works_;
  Staging& staging_;
};

}  // namespace urma::jetty
