// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "apps/urma_perf/messages.h"
#include "apps/urma_perf/side.h"

namespace urma::apps::perf {

// The server's half of a case, for the Jetties of one completion queue: counts and checks the
// arrivals, and sends a message back for each in a ping-pong.
class Responder {
 public:
  // `check_each`: each message can be checked, because no engine runs between its completion and
  // the check, and so nothing overwrites it.
  Responder(Side& side, bool check_each);

  // Returns false if the completion is not of these Jetties.
  bool handle(const Completion& completion);

  // `profiled`: the building of works is timed, too.
  void begin(bool profiled);
  // Returns what arrived since `begin`.
  const Report& arrivals() const { return report_; }
  const Builds& builds() const { return builds_; }

 private:
  std::optional<uint32_t> find(JettyId id);
  void handle_message(uint32_t jetty, const Completion& completion);
  void bounce(uint32_t jetty);

  Side& side_;
  const bool check_each_;
  std::unordered_map<uint32_t, uint32_t> by_id_;
  uint32_t latest_id_ = UINT32_MAX;  // Jetty of the last arrival
  uint32_t latest_ = 0;
  std::vector<Work> works_;               // a reply for each Jetty
  std::vector<uint32_t> bounce_windows_;  // the window of the next reply
  std::vector<uint64_t> bounced_;         // replies by each Jetty
  std::vector<bool> owed_;  // replies that were not posted, because no berth was vacant
  Report report_;
  Builds builds_{false};
};

// Returns what came to this side since all its responders began. Called after the client has
// written its ledger to this side.
Report report_of(const Side& side, std::span<const Responder> responders);

}  // namespace urma::apps::perf
