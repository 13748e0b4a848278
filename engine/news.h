// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "engine/no_room.h"
#include "transport/counters.h"
#include "transport/rtp/routes.h"
#include "urma/core/log.h"
#include "urma/core/statistics.h"

namespace urma::engine {

// The counters of a device at one moment, which the log compares with those of an earlier one.
struct Snapshot {
  Statistics counts;
  transport::PeerNews peers;
  int send_failure = 0;  // errno of the latest failure to send
  // Why frames are not sent, and the fix, if the port knows it better than the system.
  std::string_view send_failure_text = {};
  transport::AllPathTotals paths{};
  NoRoom no_room{};  // the shortage if the last attempt to make a way failed
};

// One kind of log line: a counter, which is logged when it has grown. To log something else, add a
// row to news.cc, and its kind to docs/operating.md.
struct NewsKind {
  LogLevel level;
  std::string_view layer;  // LogLine::layer
  std::string_view name;   // LogLine::kind
  uint64_t (*count)(const Snapshot& now);
  // The text of a line: the event that occurred `count` times since the last line, why, and a fix.
  std::string (*text)(const Snapshot& now, uint64_t count);
};
std::span<const NewsKind> all_news();

}  // namespace urma::engine
