// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "transport/rtp/route_table.h"

namespace urma::transport {

// Decides which routes are usable, that is, carry packets to the peer. A route becomes usable only
// when the peer answers a question sent there, so that a peer cannot redirect traffic to a third
// party by naming its address. The same questions find routes that fail while little is sent, and
// routes that work again. Lost packets raise a doubt sooner. The class sends nothing: `question`
// says which question is due, and `news` what has changed.
class RouteHealth {
 public:
  explicit RouteHealth(RouteTable& table) : table_(table) {}

  // Called when a new route gets this number. `announced`: it is reported as added when it becomes
  // usable.
  void add(uint8_t route, bool announced, Time now);
  void remove(uint8_t route);

  // ---- packets

  // A packet that was sent at `sent` was acknowledged.
  void note_arrived(uint8_t route, Time sent, Time now);
  // A packet is believed lost. This counts only if a packet that was sent later on another route
  // has arrived, because a stalled peer loses the packets of all routes.
  void note_lost(uint8_t route, Time sent);
  void forget_packets();
  // The channel sends or receives something. An idle channel asks no questions.
  void used(Time now) { active_until_ = now + active_for; }
  // Returns whether the channel was used within the last 200 ms. Once the result is false, it stays
  // false until `used` is called again.
  bool active(Time now);
  // Returns `then` if the channel is still active at that time, else `never`.
  Time unless_idle(Time then) const { return then < active_until_ ? then : never; }

  // ---- doubts and questions

  // The channel had a time-out. All usable routes are asked; a route on which the first question is
  // not answered is not used any more.
  void question_all(Time now);
  // Called for a new channel: no route is usable until the peer answers on it again.
  void doubt_all(Time now);
  struct Question {
    uint8_t route = 0;
    uint64_t nonce = 0;
  };
  Time next_deadline() const;
  // Returns the next question that is due; call until it returns nothing. `nonce` must not be
  // guessable, nor 0.
  std::optional<Question> question(Time now, uint64_t nonce);
  // Returns false if no question with this nonce is open on the route.
  bool answered(uint8_t route, uint64_t nonce, Time now);
  // The route has just carried a packet that no third party could have forged.
  void prove(uint8_t route, Time now);

  // ---- what to report

  // Routes by number, one bit each, that changed since the last call of `news`. Those that never
  // became usable are not reported.
  struct News {
    uint8_t lost = 0;
    uint8_t back = 0;
    uint8_t added = 0;
    uint8_t removed = 0;
  };
  bool any_news() const { return (news_.lost | news_.back | news_.added | news_.removed) != 0; }
  News news() { return std::exchange(news_, {}); }

 private:
  static constexpr uint8_t losses_in_row = 6;
  static constexpr uint8_t questions_in_vain = 2;
  // The time between two questions: on a usable route; after an unanswered one; the first and the
  // longest interval on a route that is not usable, where the interval doubles.
  static constexpr Duration calm = std::chrono::milliseconds(100);
  static constexpr Duration doubt = std::chrono::milliseconds(20);
  static constexpr Duration least_patience = std::chrono::milliseconds(5);
  static constexpr Duration most_patience = std::chrono::milliseconds(40);
  // The same for a route that was never usable, whose address may belong to a third party.
  static constexpr Duration most_patience_unknown = std::chrono::seconds(1);
  static constexpr Duration active_for = std::chrono::milliseconds(200);

  bool overtaken_on_others(uint8_t route, Time sent) const;
  bool others_heard_after(uint8_t route, Time when) const;
  void suspect(uint8_t route, Time now);
  void judge_unanswered(uint8_t route, Time now);
  void plan_next_question(Route& route, bool unanswered, Time now);
  void tell_lost(uint8_t route);

  RouteTable& table_;
  Time now_{};  // of the latest arrival
  Time active_until_{};
  News news_;
};

}  // namespace urma::transport
