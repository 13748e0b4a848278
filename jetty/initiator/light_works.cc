// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/light_works.h"

#include <utility>

#include "base/assert.h"

namespace urma::jetty {

LightWorks::LightWorks(const InitiatorCommon& common, Flows& flows, FlowSlices& slices,
                       Offers& offers, OpenWorks& works)
    : jetties_(common.jetties),
      peers_(common.peers),
      counters_(common.counters),
      flows_(flows),
      slices_(slices),
      offers_(offers),
      works_(works) {}

void LightWorks::add(Flow& flow, Jetty& jetty, Time now) {
  Jfs& jfs = jetty.queues->jfs();
  LightRun& run = flow.light;
  if (run.count == 0) {
    run.position = jfs.next_position();
    run.first = flow.next_tassn;
    // The channel expects one answer as long as there are light works.
    peers_.at(flow.peer).channel->expect_answers(1, now);
    works_.watch(jetty, now);
  }
  URMA_PARANOID_ASSERT(
      run.position + run.count == jfs.next_position() && run.first + run.count == flow.next_tassn,
      "light works are consecutive, and the newest ones");
  const uint16_t lease = jfs.take_posted();
  jetty.works[lease].progress = now;
  ++run.count;
  ++flow.works;
  ++flow.next_tassn;
  slices_.reserve(1);
  ++counters_.works;
  ++counters_.slices;
}

bool LightWorks::end_executed(Flow& flow, Tassn first, Tassn last, Time now) {
  LightRun& run = flow.light;
  if (run.count == 0 || last < run.first) return false;
  Jetty& jetty = flows_.jetty_of(flow);
  if (first != run.first || flow.first_slice != Slice::none) {
    record(flow, jetty, now);
    return false;
  }
  const auto count = static_cast<uint32_t>(last - first) + 1;
  const Jfs& jfs = jetty.queues->jfs();
  const uint32_t position = run.position;
  run.count -= count;
  run.position += count;
  run.first = last + 1;
  slices_.give_back(count);
  flow.last_answer = now;
  flow.last_answered = flow.works - run.count;
  if (run.count == 0) peers_.at(flow.peer).channel->expect_answers(-1, now);
  for (uint32_t i = 0; i < count; ++i) works_.complete_light(jetty, jfs.posted(position + i));
  return true;
}

// Makes the state that `Initiator::take` and `Cutter` would have made of works that were sent past
// the channel's queue.
void LightWorks::record(Flow& flow, Jetty& jetty, Time now) {
  const LightRun run = std::exchange(flow.light, {});
  const PeerState& peer = peers_.at(flow.peer);
  Jfs& jfs = jetty.queues->jfs();
  slices_.give_back(run.count);
  for (uint32_t i = 0; i < run.count; ++i) {
    const uint16_t lease = jfs.posted(run.position + i);
    const Berth& berth = jfs.berth(lease);
    WorkState& work = jetty.works[lease];
    work = {.progress = work.progress,
            .flow = flows_.index_of(flow),
            .number = flow.works - (run.count - 1 - i),
            .cut_bytes = berth.bytes,
            .open_slices = 1,
            .cut = true};
    jetty.gate.posted(lease, berth.signalled);
    works_.add(jetty, lease, work.progress);
    Slice& slice = *slices_.create();
    slice.bytes = berth.bytes;
    slice.berth = lease;
    slice.last = true;
    slice.state = step(SliceState::offered, SliceEvent::pulled, false).state;
    slice.expected = true;
    offers_.begin_attempt(slice);
    slices_.append(flow, slice, run.first + i);
  }
  // The first one is expected already.
  if (peer.channel != nullptr && run.count > 1) {
    peer.channel->expect_answers(static_cast<int32_t>(run.count) - 1, now);
  }
}

void LightWorks::record_of(const PeerState& peer, Time now) {
  for (uint32_t i = peer.first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    Flow& flow = flows_.at(i);
    if (flow.light.count > 0) record(flow, flows_.jetty_of(flow), now);
  }
}

void LightWorks::record_all(Time now) {
  jetties_.for_each([&](Jetty& jetty) { record(jetty, now); });
}

}  // namespace urma::jetty
