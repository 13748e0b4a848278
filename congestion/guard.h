// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "congestion/controller.h"
#include "congestion/late_ends.h"

namespace urma::congestion {

// The half of a C-AQM sender that does not trust the network: a window that is paced, and a guard
// that reads delays and ECN marks. The derived class says how switches change the window. While no
// switch with a port meter takes part, the guard alone decides, in the manner of Swift: additive
// increase below a target delay, a proportional decrease above it, and a target that is larger for
// small windows. While switches take part, the guard still cuts when a queue stands at a hop that
// they do not measure; if ends run late for longer than a quarter of a round trip, it needs a loss
// or a mark of ECN to tell that.
class Guarded : public Controller {
 public:
  // Switches tell a sender how much may be in flight, or how fast it may send.
  enum class Told : uint8_t { windows, rates };

  Guarded(const Settings& settings, Told told);

  Signal request(const Sent& event) final;
  void correct(const Written& event) final;
  void handle(const Acknowledged& event) final;
  void handle(const Lost& event) final;
  void handle(const Notified& event) final;
  void handle(const Spurious& event) final;
  Allowance allowance(Time) const final { return {window_bytes(), next_}; }
  uint64_t window_bytes() const final;
  double bytes_per_second() const final;

  // The window without the room for rounding; may be less than a packet.
  double window() const { return window_; }

 protected:
  // Returns what the packet asks for. A retransmission may not ask for an increase.
  virtual Signal ask(const Sent& event, bool may_increase) = 0;
  // Changes the window as the switches say. Called only for feedback with S.
  virtual void obey(const Acknowledged& event, const Feedback& feedback) = 0;
  // A round trip has passed.
  virtual void begin_round() = 0;

  double base() const;  // seconds
  double packet() const { return packet_; }
  uint32_t seed() const { return seed_; }
  void set_window(double bytes);
  // Draws the next departure anew within one gap, so that senders which were slowed at the same
  // time do not send at the same time.
  void spread(Time now);
  bool slow_start() const { return slow_start_; }
  void set_slow_start(bool on) { slow_start_ = on; }
  // Returns whether the window is used, so that growth means something.
  bool in_use(uint64_t inflight_bytes) const;

 private:
  void learn_base(const Acknowledged& event);
  void note_round(Time now, Duration rtt);
  bool alone() const;
  void note_marks(const Acknowledged& event, const Feedback& feedback);
  double careful_growth(double bytes) const;
  Duration gap(double bytes, uint64_t number) const;
  void hold_back(const Acknowledged& event, const Feedback& feedback, double before);
  double foreign_delay(const Acknowledged& event, const Feedback& feedback) const;
  double catch_up() const;
  double target_delay() const;
  bool punctual() const;
  void cut(double factor, Time now, double least = 0);  // once in a round

  Time next_ = Time::min();
  Time round_end_ = Time::min();
  float window_;
  uint32_t limit_;
  float link_;  // bytes per second
  uint32_t base_ns_;
  uint32_t lateness_ns_;
  uint32_t seed_;
  float marked_ = 0;  // the share of bytes with CE, averaged
  float undo_ = 0;    // the window before the last loss; zero if there is nothing to undo
  uint16_t packet_;
  LateEnds ends_;
  uint16_t rounds_without_switch_ : 2;
  uint16_t calm_rounds_ : 5;  // without a cut
  bool told_rates_ : 1;
  bool base_given_ : 1;
  bool may_cut_ : 1 = true;
  bool slow_start_ : 1 = true;
};

}  // namespace urma::congestion
