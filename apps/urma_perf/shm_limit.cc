// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/shm_limit.h"

namespace urma::apps::perf {
namespace {

// The largest message that fits in a cache line beside its number and the words that say where it
// belongs.
constexpr uint64_t most_in_slot = 48;
constexpr uint64_t small = 1024;

ShmPlan bounce_plan(const Case& what, Use looked_at) {
  const uint64_t bytes = what.bytes;
  if (what.test->asleep) {
    const LanePlan lane{.way = Way::woken, .bytes = bytes, .use = Use::copy};
    return {lane, lane, "futex wake"};
  }
  if (what.test->sends() && bytes <= most_in_slot) {
    const LanePlan lane{.way = Way::in_slot, .bytes = bytes, .use = looked_at};
    return {lane, lane, "inline ring"};
  }
  // A send is copied into a buffer of the receiver, while a write goes directly to its slot.
  if (what.test->sends()) {
    const LanePlan lane{.way = Way::handed, .bytes = bytes, .use = Use::copy};
    return {lane, lane, "message, copied"};
  }
  const LanePlan lane{
      .way = bytes < small ? Way::placed : Way::handed, .bytes = bytes, .use = looked_at};
  return {lane, lane, bytes < small ? "write, slot" : "message, read"};
}

ShmPlan one_way_plan(const Case& what, Use looked_at) {
  const bool placed = what.bytes < small;
  const LanePlan data{
      .way = placed ? Way::placed : Way::handed, .bytes = what.bytes, .use = looked_at};
  ShmPlan plan{data, {}, placed ? "data, slot" : "message, slot"};
  if (what.test->reads() || what.test->atomics()) std::swap(plan.there, plan.back);
  return plan;
}

ShmPlan stream_plan(const Case& what, Use looked_at) {
  const bool stamped = what.bytes < small;
  const LanePlan data{.way = stamped ? Way::stamped : Way::piped,
                      .bytes = what.bytes,
                      .use = stamped ? looked_at : Use::copy};
  ShmPlan plan{data, {}, stamped ? "stamped ring" : "two-copy pipe"};
  if (what.test->reads()) std::swap(plan.there, plan.back);
  return plan;
}

}  // namespace

ShmPlan shm_plan(const Case& what) {
  const Use looked_at = what.verify ? Use::read : Use::nothing;
  const bool half = what.test->shape == Shape::half_round_trip;
  if (!what.own_memory && !half && !what.test->told()) {
    const bool atomics = what.test->atomics();
    return {.there = {}, .back = {}, .pattern = atomics ? "instruction" : "copy", .copies = true};
  }
  switch (what.test->shape) {
    case Shape::half_round_trip:
      return bounce_plan(what, looked_at);
    case Shape::post_to_completion:
      return one_way_plan(what, looked_at);
    case Shape::bandwidth:
      break;
  }
  return stream_plan(what, looked_at);
}

ShmLimit::ShmLimit(Side& side, Place place)
    : side_(side), place_(place), plan_(shm_plan(side.what())) {
  if (place == Place::client) {
    window_.emplace(ShmWindow::make(window_bytes()));
  }
}

uint64_t ShmLimit::window_bytes() const {
  if (!plan_.copies) return plan_.there.lane_bytes() + plan_.back.lane_bytes();
  const Layout& layout = side_.layout();
  return side_.what().test->reads() ? layout.sources() * layout.source_stride()
                                    : layout.landing_bytes();
}

void ShmLimit::meet(const std::string& told) {
  if (place_ == Place::client) {
    window_->forget_name();
  } else {
    window_.emplace(ShmWindow::open(told, window_bytes()));
  }
  if (plan_.copies) return make_copier();
  const uint64_t there = plan_.there.lane_bytes();
  make_loops({plan_.there, window_->bytes().first(there)},
             {plan_.back, window_->bytes().subspan(there)});
}

void ShmLimit::make_copier() {
  if (place_ != Place::client) return;
  const Layout& layout = side_.layout();
  const uint64_t bytes = side_.what().bytes;
  const uint64_t step = layout.slot_at(0, 1) - layout.slot_at(0, 0);
  // A lane is so fast that it matters whether the slots are in the first cache. So its limit uses
  // as many as the lane.
  const auto landing = [&](std::span<std::byte> all) {
    return side_.what().test->lane ? all.first(step * layout.slots()) : all;
  };
  if (side_.what().test->reads()) {
    // All pages that were never written are the same page of zeros, so each page is written once.
    std::ranges::fill(window_->bytes(), std::byte{1});
    copier_.emplace(window_->bytes(), landing(side_.landing()), bytes, step);
    if (layout.sources() > 1) copier_->spread();
  } else {
    copier_.emplace(side_.source(), landing(window_->bytes()), bytes, step);
    if (side_.what().test->atomics()) copier_->operate(side_.what().atomic->atomic);
  }
  if (side_.what().test->lane) copier_->group(calls_per_group(side_.what()));
}

void ShmLimit::make_loops(const Lane& there, const Lane& back) {
  const bool client = place_ == Place::client;
  const bool sends = client != side_.what().test->reads();
  const int64_t rest = side_.what().test->asleep ? rest_before_send : 0;
  if (!side_.what().test->bandwidth()) {
    if (client) {
      ping_.emplace(there, back, side_.source(), side_.landing(), rest);
    } else {
      pong_.emplace(there, back, side_.landing(), side_.source(), rest);
    }
    return;
  }
  const Lane& data = side_.what().test->reads() ? back : there;
  if (sends) {
    sender_.emplace(data, side_.source());
  } else {
    receiver_.emplace(data, side_.landing());
  }
}

std::string ShmLimit::why_silent() const {
  return "the server does not answer in shared memory. Fix: run both sides on one host and do not "
         "stop the server, or leave --limit out";
}

void ShmLimit::begin() {
  round_trips_.clear();
  if (ping_) ping_->begin();
  if (receiver_) receiver_->tally = {};
  if (copier_) copier_->tally = {};
}

void ShmLimit::run(int64_t until) {
  if (ping_) ping_->run(until, round_trips_);
  if (pong_) pong_->run(until);
  if (sender_) sender_->run(until);
  if (receiver_) receiver_->run(until);
  if (!copier_) return;
  if (side_.what().test->bandwidth()) {
    copier_->run(until);
  } else {
    copier_->run(until, round_trips_);
  }
}

}  // namespace urma::apps::perf
