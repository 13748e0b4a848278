#pragma once

#include <span>
#include <string>

#include "engine/no_room.h"
#include "transport/counters.h"
#include "transport/rtp/routes.h"
#include "urma/core/log.h"
#include "urma/core/statistics.h"

namespace urma::engine {

// A device at one moment, as it is told from another one.
struct Snapshot {
  Statistics counts;
  transport::PeerNews peers;
  int send_failure = 0;  // errno of the latest
  transport::AllPathTotals paths{};
  NoRoom no_room{};  // of the medium, when a way was last asked for
};

// What a log tells when it has become more. To log something else: a row in news.cc, and its kind
// in docs/operating.md.
struct NewsKind {
  LogLevel level;
  std::string_view name;  // LogLine::kind
  uint64_t (*count)(const Snapshot& now);
  // What happened `count` times since it was told last, why, and the fix.
  std::string (*text)(const Snapshot& now, uint64_t count);
};
std::span<const NewsKind> all_news();

}  // namespace urma::engine
