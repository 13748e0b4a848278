// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/copied_works.h"

namespace urma::jetty {

CopiedWorks::CopiedWorks(const InitiatorCommon& common, Flows& flows, OpenWorks& works,
                         Copier& copier)
    : peers_(common.peers),
      counters_(common.counters),
      flows_(flows),
      works_(works),
      copier_(copier) {}

uint32_t CopiedWorks::copy(Jetty& jetty, transport::Channel& channel, uint32_t most_bytes,
                           uint32_t& budget) {
  Flow& flow = flows_.at(jetty.first_flow);
  Jfs& jfs = jetty.queues->jfs();
  uint32_t done = 0;
  for (const uint32_t count = jfs.waiting(); done < count; ++done) {
    const uint16_t lease = jfs.next_posted();
    const uint32_t bytes = jfs.berth(lease).bytes;
    // Without bytes this is more than any budget: such a work cannot be copied.
    const uint32_t cost = (bytes - 1) / copied_like_one + 1;
    if (bytes > most_bytes || cost > budget || !copy_next(jetty, lease, flow, channel)) break;
    budget -= cost;
    jfs.take_posted();
    works_.complete_light(jetty, lease);
  }
  counters_.works += done;
  return done;
}

// Copies the work before anything is recorded. Returns false if the work must be recorded.
inline bool CopiedWorks::copy_next(const Jetty& jetty, uint16_t lease, Flow& flow,
                                   transport::Channel& channel) {
  const Berth& berth = jetty.queues->jfs().berth(lease);
  if (berth.verdict != Status::ok || notifies(berth) || !(flow.peer == berth.peer)) return false;
  // A failed work may have to suspend the Jetty, which only `finish` does.
  if (jetty.ordering.suspend_on_error && berth.operation == Operation::atomic) return false;
  return copier_.copy(flow, jetty.queues->jfs(), lease, 0, channel) > 0;
}

}  // namespace urma::jetty
