// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/initiator/copier.h"
#include "jetty/initiator/open_works.h"

namespace urma::jetty {

// How many works were copied while they were posted, and what they have taken from the budget.
struct CopiedInPost {
  uint32_t works = 0;
  uint32_t cost = 0;
};

// Works on mapped memory that are copied whole and complete before anything is recorded of them:
// nearly all of one slice that do not notify. A work that is alone in its Jetty waits for no other,
// and none has to wait for it. The Initiator owns it; only the thread that runs the engine calls
// it.
class CopiedWorks {
 public:
  CopiedWorks(const InitiatorCommon& common, Flows& flows, OpenWorks& works, Copier& copier);

  // Returns the channel of the flow to whose peer posted works can be copied now, or null.
  transport::Channel* channel(const Jetty& jetty) {
    if (jetty.outstanding > 0 || jetty.first_flow == Flow::none ||
        jetty.state != JettyState::ready) {
      return nullptr;
    }
    const Flow& flow = flows_.at(jetty.first_flow);
    return flow.peer_over || flow.light.count > 0 ? nullptr : peers_.at(flow.peer).channel;
  }
  // Copies these works, of one slice each, before any of them has a berth, and completes them;
  // stops as the following function. Copies none if works that were posted before wait. The caller
  // is the posting thread, and posts the works that are left.
  CopiedInPost copy(Jetty& jetty, transport::Channel& channel, std::span<const Work> works,
                    uint32_t budget);
  // Copies posted works of up to `most_bytes` and completes them, oldest first, until one has to be
  // recorded, or would take more than is left of `budget`. Takes 1 from it for each work, or for
  // each 4 KiB. Returns how many works.
  uint32_t copy(Jetty& jetty, transport::Channel& channel, uint32_t most_bytes, uint32_t& budget);

 private:
  // Without bytes this is more than any budget: such a work cannot be copied.
  static uint32_t cost_of(uint32_t bytes) { return (bytes - 1) / copied_like_one + 1; }
  bool copy_next(const Jetty& jetty, uint16_t lease, Flow& flow, transport::Channel& channel);
  uint32_t copy_work(Jetty& jetty, const Work& work, Flow& flow, transport::Channel& channel,
                     uint32_t budget);

  PeerStates& peers_;
  InitiatorCounters& counters_;
  Flows& flows_;
  OpenWorks& works_;
  Copier& copier_;
};

}  // namespace urma::jetty
