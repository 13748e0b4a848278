// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <queue>
#include <string_view>
#include <vector>

#include "congestion/arithmetic.h"
#include "congestion/controller.h"
#include "congestion/echo.h"
#include "congestion/port_meter.h"

namespace urma::test {

// Senders with one controller each, whose packets pass the same ports one after the other. A port
// is a FIFO without a bound. Propagation is a constant of each sender. Everything is computed from
// the options, so a run can be repeated.
struct BottleneckOptions {
  std::string_view controller = "caqm_r";
  struct Hop {
    std::string_view meter{};  // of the switch; empty if the switch has none
    double bytes_per_second = 12.5e9;
    // If not zero, ECN marks above this queue: all packets, or with a chance that rises to
    // `most_chance` at `mark_most_bytes`.
    uint64_t mark_bytes = 0;
    uint64_t mark_most_bytes = 0;
    double most_chance = 1;
  };
  std::vector<Hop> hops;
  double link_bytes_per_second = 12.5e9;  // of the senders
  Duration base_rtt{8000};
  uint32_t packet_bytes = 4096;
  uint32_t packets_per_ack = 1;
  double loss = 0;  // of data packets
  double ack_loss = 0;
  Duration ack_jitter{};  // an acknowledgement is late by up to this much
  uint64_t limit_bytes = 64 << 20;
  bool tell_base = true;
  uint32_t seed = 1;
};

struct SenderOptions {
  Time start{};
  Time stop = never;
  uint64_t bytes = UINT64_MAX;
  Duration each{};      // if not zero, it wants to send `bytes` more after each so long
  Duration base_rtt{};  // if zero, that of the options
  size_t first_hop = 0;
  size_t last_hop = SIZE_MAX;
};

class Bottleneck {
 public:
  struct Sender {
    explicit Sender(const SenderOptions& given) : options(given), wanted(given.bytes) {}

    SenderOptions options;
    uint64_t wanted;  // bytes that it wants to have sent by now
    alignas(8) std::array<std::byte, congestion::Controller::storage> storage{};
    congestion::Controller* controller = nullptr;
    congestion::Echo echo;
    uint32_t unacknowledged = 0;  // packets that the receiver has not yet acknowledged
    uint64_t unacknowledged_bytes = 0;
    uint64_t marked_bytes = 0;
    uint64_t number = 0;
    uint64_t sent = 0;   // bytes, without retransmissions
    uint64_t again = 0;  // bytes that have to be sent again
    uint64_t inflight = 0;
    uint64_t delivered = 0;
    uint64_t counted = 0;  // delivered when counting began
    Duration smoothed{}, least{};
    Time wakes = never;
    Time last_send = Time::min();
    Time finished = never;
    Time notified = Time::min();
  };

  explicit Bottleneck(const BottleneckOptions& options);
  ~Bottleneck();
  Bottleneck(const Bottleneck&) = delete;
  Bottleneck& operator=(const Bottleneck&) = delete;

  void add(const SenderOptions& options);
  void run(Time until);
  // A packet that no sender sent, and that says this, arrives at the first hop now.
  void forge(uint32_t bytes, const congestion::Signal& signal);
  // From now on, bytes, queues and shares are counted anew.
  void begin_count();

  double utilisation() const;  // of the slowest hop since the count began
  double fairness() const;     // Jain's index of the senders that run
  double queue_packets(double quantile, size_t hop = 0) const;
  double peak_packets(size_t hop = 0) const { return hops_[hop].peak / options_.packet_bytes; }
  const std::vector<Sender>& senders() const { return senders_; }
  Time now() const { return now_; }
  double share(size_t sender) const;  // of the slowest hop
  double bdp_packets() const;

 private:
  static constexpr uint32_t forged = UINT32_MAX;
  struct Packet {
    uint32_t sender;  // or `forged`
    uint32_t bytes;
    uint64_t number;
    Time sent;
    congestion::Signal signal;
    bool marked;
  };
  enum class What : uint8_t {
    start,
    more,
    wake,
    depart,
    acknowledge,
    lost,
    late,
    time_out,
    notify
  };
  struct Event {
    int64_t at;  // picoseconds
    What what;
    uint32_t which;  // sender or hop
    uint64_t bytes = 0;
    Time sent{};
    congestion::Feedback feedback{};
    uint64_t order = 0;

    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Hop {
    BottleneckOptions::Hop options;
    alignas(8) std::array<std::byte, congestion::PortMeter::storage> storage{};
    congestion::PortMeter* meter = nullptr;
    std::deque<Packet> queue;
    int64_t busy_until = 0;  // picoseconds
    uint64_t queued = 0;
    double peak = 0;  // bytes
    std::vector<float> samples;
  };

  double chance() { return congestion::chance_of(options_.seed, ++draws_); }
  void post(int64_t at, What what, uint32_t which) {
    post_event({.at = at, .what = what, .which = which});
  }
  void post_event(Event event);
  void handle(const Event& event);
  void want_more(uint32_t index);
  void try_send(uint32_t index);
  void send(uint32_t index, uint32_t bytes, bool again);
  void enter(size_t hop, const Packet& packet);
  bool marks(const Hop& hop, double queue_bytes);
  void leave(size_t hop);
  void deliver(const Packet& packet);
  void return_acknowledgement(uint32_t index, Time sent);
  void acknowledge(const Event& event);
  void notify(Sender& sender, uint32_t index);
  void catch_up(const Event& event);
  void lose(const Event& event);
  Duration base_of(const Sender& sender) const;
  const Hop& slowest() const;

  BottleneckOptions options_;
  const congestion::ControllerKind& kind_;
  std::vector<Hop> hops_;
  std::vector<Sender> senders_;
  std::priority_queue<Event> events_;
  uint64_t orders_ = 0;
  uint64_t draws_ = 0;
  int64_t picoseconds_ = 0;
  Time now_{};
  Time count_began_{};
};

}  // namespace urma::test
