#pragma once

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "transport/loss.h"
#include "urma/base/time.h"
#include "urma/core/frame.h"

namespace urma::transport {

// Where a device is reached over its paths: first where it is found, and set up from.
struct PathList {
  uint8_t count = 0;
  std::array<Endpoint, most_paths> endpoints{};

  std::span<const Endpoint> all() const { return std::span(endpoints).first(count); }
  friend bool operator==(const PathList&, const PathList&) = default;
};

// The paths of a channel: the n-th of ours with the n-th of the peer's, and of which is to be sent
// what. A lost path costs packets, which are sent again on others, and no channel: numbers, window
// and slices are the channel's (docs/protocol.md, Paths).
//
// A path carries data only after a question to there was answered, so nobody can name the address
// of a third one as his; the same questions find out that a path is lost, where little is sent, and
// that one is back.
class Routes {
 public:
  struct Route {
    uint8_t local = 0;  // our path
    bool usable = false;
    bool known = false;  // was usable, once
    bool told_lost = false;
    uint8_t lost_in_row = 0;  // packets that left after the last one that arrived
    uint8_t unanswered = 0;   // questions
    Endpoint to;
    uint64_t inflight_bytes = 0;
    uint64_t nonce = 0;  // of the question that is not answered yet; 0: none
    Time asked_at{};
    Time ask_at{};
    Time heard_at{};  // what was sent there arrived, as we learnt then
    Duration patience{};
    Duration rtt{};
    LatestArrival latest;
    Time overtaken_before;  // within one judgement: what left before has been overtaken
    // Since the channel's peer is known, packets of data.
    uint64_t sent = 0;
    uint64_t lost = 0;
  };

  // `ours`, `theirs`: at least one each, and two of either. All are asked at once.
  Routes(std::span<const Endpoint> ours, std::span<const Endpoint> theirs, Time now);

  uint8_t count() const { return count_; }
  const Route& operator[](unsigned index) const { return routes_[index]; }
  // The route whose packets come so; nothing: it is none of these.
  std::optional<uint8_t> find(uint8_t local, const Endpoint& from) const;
  bool leads_to(const Endpoint& to) const;

  // For the next packet, or slice: the usable one with the least in flight.
  uint8_t pick();
  // For an acknowledgement: where something came last, if that can be used.
  uint8_t for_answer() const;

  // What becomes of packets of data.
  void left(uint8_t route, uint32_t bytes) {
    routes_[route].inflight_bytes += bytes;
    ++routes_[route].sent;
  }
  void resized(uint8_t route, int64_t change) {
    routes_[route].inflight_bytes += static_cast<uint64_t>(change);
  }
  // No more in flight: acknowledged, or believed lost before; or lost.
  void arrived(uint8_t route, uint32_t bytes_in_flight, Time now);
  void lose(uint8_t route, uint32_t bytes, Time sent);
  // A packet may overtake those of other paths, so in mode rack each is judged by its own.
  void note_sent_of_arrived(uint8_t route, Time sent, Time now) {
    routes_[route].latest.note(sent, now);
  }
  void judge(Duration tolerance, Time now);
  Time overtaken_before(uint8_t route) const { return routes_[route].overtaken_before; }
  Time patience(uint8_t route, Time sent, Duration tolerance) const {
    return routes_[route].latest.patience(sent, tolerance);
  }
  void came(uint8_t route, Time now) {
    latest_ = route;
    used(now);
  }
  void used(Time now) { active_until_ = now + active_for; }
  // A new channel: nothing is known of any of them.
  void doubt_all(Time now);
  // The channel that these packets were of is gone.
  void forget_packets();

  // Questions. `answered` is by whom this nonce was given to.
  struct Question {
    uint8_t route = 0;
    uint64_t nonce = 0;
  };
  Time next_deadline() const;
  // The next route to ask now, with a nonce that nobody can guess.
  std::optional<Question> question(Time now, uint64_t nonce);
  void answered(uint8_t route, uint64_t nonce, Time now);
  // This one has just carried what nobody could have made up.
  void prove(uint8_t route, Time now);

  // Routes that were lost or are back since the last call, as bits.
  struct News {
    uint8_t lost = 0;
    uint8_t back = 0;
  };
  bool any_news() const { return (news_.lost | news_.back) != 0; }
  News news() { return std::exchange(news_, {}); }

 private:
  static constexpr uint8_t losses_in_row = 6;
  static constexpr uint8_t questions_in_vain = 2;
  // Between questions: of a path that is used, after one in vain, of one that is lost.
  static constexpr Duration calm = std::chrono::milliseconds(100);
  static constexpr Duration doubt = std::chrono::milliseconds(20);
  static constexpr Duration least_patience = std::chrono::milliseconds(5);
  static constexpr Duration most_patience = std::chrono::milliseconds(40);
  // Who sends and receives nothing asks nothing.
  static constexpr Duration active_for = std::chrono::milliseconds(200);

  bool overtaken_on_others(uint8_t route, Time sent) const;
  bool others_heard_after(uint8_t route, Time when) const;
  void suspect(uint8_t route, Time now);
  void tell_lost(uint8_t route);

  std::array<Route, most_paths> routes_;
  uint8_t count_ = 0;
  uint8_t next_ = 0;
  uint8_t latest_ = 0;
  News news_;
  Time now_{};  // of the last that arrived
  Time active_until_{};
};

}  // namespace urma::transport
