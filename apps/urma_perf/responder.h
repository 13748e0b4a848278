#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "apps/urma_perf/messages.h"
#include "apps/urma_perf/side.h"

namespace urma::perf {

// The server's half of a case: counts and checks what arrives, and bounces it in a ping-pong.
class Responder {
 public:
  // `check_each`: nothing can be overwritten between its completion and our look at it, because
  // no engine runs meanwhile.
  Responder(Side& side, bool check_each);

  // Returns false if the completion is not of these Jetties.
  bool handle(const Completion& completion);

  void begin();
  // After the client has told what it wrote where.
  Report end();

 private:
  std::optional<uint32_t> find(JettyId id);
  void handle_message(uint32_t jetty, const Completion& completion);
  void bounce(uint32_t jetty);

  Side& side_;
  const bool check_each_;
  std::unordered_map<uint32_t, uint32_t> by_id_;
  uint32_t latest_id_ = UINT32_MAX;  // found last
  uint32_t latest_ = 0;
  std::vector<Work> works_;               // a bounce for each Jetty
  std::vector<uint32_t> bounce_windows_;  // of the one to be posted
  std::vector<uint64_t> bounced_;         // by each Jetty
  std::vector<bool> owed_;                // not posted yet, because no berth was vacant
  Report report_;
};

}  // namespace urma::perf
