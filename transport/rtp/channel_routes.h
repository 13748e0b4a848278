// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/channel_departures.h"
#include "transport/rtp/channel_reports.h"
#include "transport/rtp/judged_routes.h"
#include "transport/rtp/routes.h"
#include "transport/rtp/waits.h"
#include "urma/core/balance.h"
#include "wire/frame.h"

namespace urma::transport {

// The routes of a channel, or its only path. `Tp` and `SentWindow` call this class for everything
// that a channel with several routes does differently. If there is only one path, each function
// does nothing, or returns a value that changes nothing; the addresses are then the channel's.
// `several` tells which of the two it is, where a channel with one path can do without a step.
//
// It is a reference and is passed by value: a channel with one path has no `Routes`, which are
// larger than the rest of the channel. The `Routes` outlive it. Only the thread that runs the
// engine calls it.
class ChannelRoutes {
 public:
  // `several`: null if the channel has one path.
  ChannelRoutes(Routes* several) : several_(several) {}

  bool several() const { return several_ != nullptr; }

  // ---- sending

  // For a new channel: each route gets a congestion window, and sums for reports of these forms.
  void open(bool one_at_a_time, const congestion::ControllerKind& kind,
            const congestion::Settings& settings, ReportForm gives = ReportForm::none,
            ReportForm takes = ReportForm::none) const {
    if (several_ == nullptr) return;
    several_->scheduler().use_one_at_a_time(one_at_a_time);
    several_->windows().open(kind, settings);
    several_->reports().open(gives, takes);
  }
  // Returns whether the routes permit a packet of this size now; with `never`, whether they permit
  // it once it may depart. `any_room_for_new` may return false although `any_room` returns true,
  // because a new packet must not overtake others if one route is used at a time.
  bool any_room(uint32_t bytes, Time now = never) const {
    return several_ == nullptr || several_->scheduler().any_room(bytes, now);
  }
  bool any_room_for_new(uint32_t bytes, Time now = never) const {
    return several_ == nullptr ||
           (!several_->scheduler().changes_over() && several_->scheduler().any_room(bytes, now));
  }
  ChannelDepartures departures() const { return ChannelDepartures(several_); }
  // Called while a burst is put together: at its beginning, and for each lost packet in it.
  void begin_plan() const {
    if (several_ != nullptr) several_->windows().begin_plan();
  }
  void plan(uint8_t route, uint32_t bytes) const {
    if (several_ != nullptr) several_->windows().plan(route, bytes);
  }
  // Returns the route of the next packet or slice.
  uint8_t pick(uint32_t bytes, Time now = never) const {
    return several_ == nullptr ? uint8_t{0} : several_->scheduler().pick(bytes, now);
  }
  // Returns the route of the next packet of a slice whose last one took `route`. Unless packets are
  // balanced one by one, a slice keeps its route while that has room and no congestion, and takes
  // another one rather than wait.
  uint8_t pick_next(uint8_t route, uint32_t bytes, Balance balance, Time now = never) const {
    if (several_ == nullptr) return route;
    const bool leaves = balance == Balance::packet || several_->scheduler().one_at_a_time() ||
                        !(*several_)[route].usable ||
                        several_->windows().fit(route, bytes, now) != RouteWindows::Fit::good;
    return leaves ? several_->scheduler().pick(bytes, now) : route;
  }
  // Returns the route of an acknowledgement.
  uint8_t for_answer() const {
    return several_ == nullptr ? uint8_t{0} : several_->scheduler().for_answer();
  }
  // Addresses a frame that takes `route`.
  void address(TxFrame& frame, uint8_t route) const {
    if (several_ == nullptr) return;
    frame.to = (*several_)[route].to;
    frame.path = (*several_)[route].local;
  }
  bool leads_to(const Endpoint& endpoint) const {
    return several_ != nullptr && several_->table().leads_to(endpoint);
  }

  // ---- receiving

  // Returns whether the frame came over a route, which is then known to carry packets. `only`: the
  // peer's address if there is one path.
  bool came_from(const RxFrame& frame, const Endpoint& only, Time now) const {
    if (several_ == nullptr) return only == *frame.from;
    const auto route = several_->table().find(frame.path, *frame.from);
    if (route) several_->came(*route, now);
    return route.has_value();
  }
  // Describes each route; see Routes.
  size_t view(const ChannelView& whole, const PathList& ours, std::span<ChannelView> out) const {
    return several_ == nullptr ? 0 : several_->view(whole, ours, out);
  }
  // Returns whether routes have changed in a way that is not reported yet.
  bool any_news() const { return several_ != nullptr && several_->health().any_news(); }

  // ---- congestion

  ChannelReports reports() const { return ChannelReports(several_); }

  // ---- packets in flight: see Routes and its parts

  void left(uint8_t route, uint32_t bytes) const {
    if (several_ != nullptr) several_->windows().left(route, bytes);
  }
  void resized(uint8_t route, int64_t change) const {
    if (several_ != nullptr) several_->windows().resized(route, change);
  }
  void arrived(uint8_t route, uint32_t bytes, Time sent, Time now) const {
    if (several_ != nullptr) several_->arrived(route, bytes, sent, now);
  }
  void lose(uint8_t route, uint32_t bytes, Time sent, bool probe) const {
    if (several_ != nullptr) several_->lose(route, bytes, sent, probe);
  }
  void forget_packets() const {
    if (several_ != nullptr) several_->forget_packets();
  }
  // A packet that was believed lost has arrived.
  void note_in_vain(uint8_t route) const {
    if (several_ != nullptr) several_->windows().note_in_vain(route);
  }
  void update_windows(bool timed_out, Time now,
                      const congestion::Feedback* feedback = nullptr) const {
    if (several_ != nullptr) several_->tell_windows(timed_out, now, feedback);
  }

  // ---- time

  // A burst has left.
  void used(Time now) const {
    if (several_ != nullptr) several_->health().used(now);
  }
  // The channel has timed out. With one route at a time, only a time-out shows that a path is lost.
  void timed_out(Time now) const {
    if (several_ != nullptr && several_->scheduler().one_at_a_time())
      several_->health().question_all(now);
  }
  Time next_deadline() const { return several_ == nullptr ? never : several_->next_deadline(); }
  // Returns how long packets took on this route.
  Duration took(uint8_t route) const {
    return several_ == nullptr ? Duration{} : (*several_)[route].took;
  }
  // Returns by how much packets of different routes overtake each other.
  Duration spread(const Waits& waits, Duration rtt) const {
    return several_ == nullptr ? Duration{} : waits.overtaking(rtt);
  }

  // ---- packets that later ones on their own route have overtaken

  // Returns the routes by which packets are judged. With one route at a time, they are judged by
  // the rules of the mode alone, as on a single path.
  JudgedRoutes judged() const {
    const bool apart = several_ != nullptr && !several_->scheduler().one_at_a_time();
    return JudgedRoutes(apart ? several_ : nullptr);
  }
  // A copy that left at `sent` has arrived.
  void note_arrival(uint8_t route, Time sent, Time now) const {
    if (several_ != nullptr) several_->delays().note_arrival(route, sent, now);
  }

 private:
  Routes* several_;
};

}  // namespace urma::transport
