// SPDX-License-Identifier: Apache-2.0
#include "jetty/initiator/carried_slices.h"

#include <algorithm>

namespace urma::jetty {

CarriedSlices::CarriedSlices(uint32_t capacity, const InitiatorCommon& common, Flows& flows,
                             OpenWorks& works)
    : peers_(common.peers),
      counters_(common.counters),
      flows_(flows),
      works_(works),
      slices_(capacity) {}

// Works with an order are numbered for their target, which must see them arrive.
CarriedSlices::Begun CarriedSlices::begin_at_device(Flow& flow, Jetty& jetty, uint16_t lease,
                                                    Time now) {
  const Jfs& jfs = jetty.queues->jfs();
  const Berth& berth = jfs.berth(lease);
  const bool read = berth.operation == Operation::read;
  if ((!read && berth.operation != Operation::write) || berth.order != Order::none) {
    return Begun::none;
  }
  const uint32_t bytes =
      std::min(berth.bytes - jetty.works[lease].cut_bytes, carrier_->most_bytes());
  if (bytes == 0 || berth.bytes < carrier_->least_bytes()) return Begun::none;
  if (jetty.works[lease].by_packets || berth.staged != carrier_->of_accelerators()) {
    return Begun::none;
  }
  Carried* const slice = slices_.create();
  if (slice == nullptr) return Begun::none;
  WorkState& work = jetty.works[lease];
  *slice = {.number = latest_ + 1, .flow = flows_.index_of(flow), .bytes = bytes, .berth = lease};
  const bool enough = flow.carried == most_of_flow;
  const Begun begun = carrier_->begin({.peer = flow.peer,
                                       .read = read,
                                       .pieces = jfs.pieces(lease),
                                       .from = work.cut_bytes,
                                       .remote = {.address = berth.address + work.cut_bytes,
                                                  .bytes = bytes,
                                                  .id = berth.token_id,
                                                  .token = berth.token,
                                                  .wanted = read ? Rights::read : Rights::write},
                                       .slice = slices_.index_of(slice),
                                       .waits = enough},
                                      now);
  if (begun != Begun::begun) {
    slices_.destroy(slice);
    if (begun == Begun::full && !enough) peers_.at(flow.peer).waits_for_carrier = true;
    return begun;
  }
  ++latest_;
  ++flow.carried;
  ++work.open_slices;
  work.cut_bytes += bytes;
  work.cut = work.cut_bytes == berth.bytes && !notifies(berth);
  if (work.cut && work.in_line) flows_.take_out_of_line(flow, jetty, lease);
  return Begun::begun;
}

// `answered`: its end is progress of later works, too.
void CarriedSlices::end(Carried& slice, Status status, bool answered, Time now) {
  Flow& flow = flows_.at(slice.flow);
  const uint16_t lease = slice.berth;
  slices_.destroy(&slice);
  --flow.carried;
  works_.slice_ended(flows_.jetty_of(flow), lease, status, answered, now);
  if (flow.peer_over) flows_.activate(flow);
  flows_.resume(flow);
}

// Flows that found no room at the device may find some.
void CarriedSlices::make_room(PeerId id) {
  PeerState* const peer = peers_.find(id);
  if (peer == nullptr || !peer->waits_for_carrier) return;
  peer->waits_for_carrier = false;
  for (uint32_t i = peer->first_flow; i != Flow::none; i = flows_.at(i).next_of_peer) {
    flows_.resume(flows_.at(i));
  }
}

void CarriedSlices::ended(uint32_t index, bool done, Time now) {
  Carried& slice = slices_.at(index);
  make_room(peer_of(index));
  if (done) {
    ++counters_.carried;
    counters_.carried_bytes += slice.bytes;
    return end(slice, Status::ok, true, now);
  }
  const Flow& flow = flows_.at(slice.flow);
  const bool cancelled = flows_.jetty_of(flow).works[slice.berth].cancelled;
  if (cancelled || slice.given_up) return end(slice, Status::unknown, false, now);
  slice.failed = true;
}

template <class Function>
void CarriedSlices::for_each_to(PeerId peer, Function&& function) {
  if (slices_.size() == 0) return;
  slices_.for_each([&](Carried& slice) {
    if (flows_.at(slice.flow).peer == peer) function(slice);
  });
}

bool CarriedSlices::at_device_up_to(uint64_t number) {
  bool any = false;
  if (slices_.size() > 0) {
    slices_.for_each(
        [&](const Carried& one) { any = any || (!one.failed && one.number <= number); });
  }
  return any;
}

void CarriedSlices::fenced(PeerId peer, Time now) {
  for_each_to(peer, [&](Carried& slice) {
    if (!slice.failed) return;
    Flow& flow = flows_.at(slice.flow);
    WorkState& work = flows_.jetty_of(flow).works[slice.berth];
    // The end of another work may have suspended the Jetty.
    if (work.cancelled) return end(slice, Status::unknown, false, now);
    // The work ends when all of it was executed, so it may as well begin at its first byte.
    ++counters_.retries;
    if (work.status == Status::ok) {
      work.cut_bytes = 0;
      work.cut = false;
    }
    work.executed = work.by_packets = true;
    end(slice, Status::ok, false, now);
  });
}

void CarriedSlices::end_cancelled(Jetty& jetty, Time now) {
  if (slices_.size() == 0) return;
  slices_.for_each([&](Carried& slice) {
    const Flow& flow = flows_.at(slice.flow);
    if (&flows_.jetty_of(flow) != &jetty || !jetty.works[slice.berth].cancelled) return;
    if (slice.failed) return end(slice, Status::unknown, false, now);
    if (jetty.works[slice.berth].overdue) carrier_->stop(flow.peer, now);
  });
}

void CarriedSlices::peer_lost(PeerId peer, Time now) {
  for_each_to(peer, [&](Carried& slice) {
    if (slice.failed) return end(slice, Status::unknown, false, now);
    slice.given_up = true;
    carrier_->stop(peer, now);
  });
}

}  // namespace urma::jetty
