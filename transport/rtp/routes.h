#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/slab.h"
#include "congestion/controller.h"
#include "transport/rtp/loss.h"
#include "urma/core/path.h"
#include "urma/core/time.h"
#include "wire/path_list.h"

namespace urma::transport {

// Of all peers, over one path of ours.
struct PathTotals {
  uint64_t sent = 0;  // packets of data, each copy
  uint64_t lost = 0;
  Duration rtt{};  // of the last question that was answered
};
using AllPathTotals = std::array<PathTotals, most_paths>;

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
    uint8_t local = 0;    // our place
    bool there = false;   // false: taken away, or never led anywhere
    bool added = false;   // later than the others, and nobody was told that it carries
    bool usable = false;  // only if it is there
    bool known = false;   // was usable, once
    bool told_lost = false;
    uint8_t lost_in_row = 0;  // packets that left after the last one that arrived
    uint8_t unanswered = 0;   // questions
    bool hasty = false;       // not even one may be unanswered
    Endpoint to;
    Time begun{};                 // what left before it did so elsewhere, and says nothing of it
    uint64_t inflight_bytes = 0;  // what left before it included
    uint64_t nonce = 0;           // of the question that is not answered yet; 0: none
    Time asked_at{};
    Time ask_at = never;  // of what is not there, too
    Time heard_at{};      // what was sent there arrived, as we learnt then
    Duration patience{};
    Duration rtt{};
    LatestArrival latest;
    Time overtaken_before;       // within one judgement: what left before has been overtaken
    Duration later{};            // likewise: what leaves here may come so much later than elsewhere
    Duration took{};             // packets until they were acknowledged, smoothed
    uint32_t arrived_bytes = 0;  // since the window was told
    uint32_t lost_bytes = 0;
    uint32_t planned_bytes = 0;  // lost ones that are about to leave here
    // Since the channel's peer is known, packets of data.
    uint64_t sent = 0;
    uint64_t lost = 0;
  };

  // Of four paths. Most channels have no more, and those that ever had keep the other four.
  struct Four {
    std::array<Route, 4> routes;
    alignas(8) std::array<std::byte[congestion::Controller::storage], 4> storage;
    std::array<congestion::Controller*, 4> windows{};
  };

  // `ours`, `theirs`: at least one place each. All paths are asked at once. `more`: of as many as
  // there are channels, for paths from the fifth on; null: there are none.
  Routes(const PathList& ours, const PathList& theirs, Time now, Slab<Four>* more = nullptr);
  ~Routes() { shut_windows(); }
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  // Which places there are now. Paths that stay keep all that is known of them, and packets of one
  // that goes are in flight there until they arrive or are lost, which says nothing of another path
  // that took its place meanwhile. `news`: who uses them is told.
  void lead(const PathList& ours, const PathList& theirs, bool news, Time now);
  const PathList& theirs() const { return theirs_; }
  // Whoever says again and again that it has moved is not believed each time.
  bool led_often(Time now) const { return led_ >= 8 && now < led_at_ + calm; }

  // The peer is to be told of our places, again and again until it has answered `nonce`.
  void tell(uint64_t nonce, Time now);
  void told() { tell_at_ = never; }
  bool telling() const { return tell_at_ != never; }
  uint64_t tell_nonce() const { return tell_nonce_; }
  // The path on which to tell it now, another one each time.
  std::optional<uint8_t> tells(Time now);

  // Where the sums over all peers are kept.
  void count_in(AllPathTotals& totals) { totals_ = &totals; }

  // Numbers of paths, those that are not there included.
  uint8_t count() const { return count_; }
  const Route& operator[](unsigned index) const { return routes_[index]; }
  // The route whose packets come so, one that was taken away included, for what was on its way;
  // nothing: it is none of these.
  std::optional<uint8_t> find(uint8_t local, const Endpoint& from) const;
  bool leads_to(const Endpoint& to) const;
  // The same, now: what was taken away does not, nor what none of our places is paired with.
  bool goes_to(const Endpoint& to) const;

  // Where what overtakes counts as lost: all goes over one route, the first that can be used.
  void use_one_at_a_time(bool one) { one_at_a_time_ = one; }
  bool one_at_a_time() const { return one_at_a_time_; }
  // Such a channel sends nothing new before what is on its way elsewhere has come: else it would be
  // overtaken.
  bool changes_over() const;

  // For the n-th try to be heard: those that carry come first, then those that did, and each fourth
  // time one that never did. Whoever named it may have named somebody else.
  uint8_t way(unsigned number) const;
  // Each path has a window of its own, so that one that loses or is slow takes from no other. For a
  // new channel; before it there are none, and there is room.
  void open_windows(const congestion::ControllerKind& kind, const congestion::Settings& settings);
  bool has_room(uint8_t route, uint32_t bytes) const;
  bool any_room(uint32_t bytes) const;
  // What has arrived and what was lost since the last call.
  void tell_windows(bool timed_out, Time now);
  // Of a burst: lost packets count for their new path before they leave.
  void begin_plan() {
    for (unsigned i = 0; i < routes_.size(); ++i) routes_[i].planned_bytes = 0;
  }
  void plan(uint8_t route, uint32_t bytes) { routes_[route].planned_bytes += bytes; }

  // For the next packet, or slice: of the usable ones with room the one with the least in flight.
  uint8_t pick(uint32_t bytes);
  // For an acknowledgement: where something came last, if that can be used.
  uint8_t for_answer() const;

  // What becomes of packets of data.
  void left(uint8_t route, uint32_t bytes) {
    routes_[route].inflight_bytes += bytes;
    ++routes_[route].sent;
    if (totals_ != nullptr) ++totals_of(route).sent;
  }
  void resized(uint8_t route, int64_t change) {
    routes_[route].inflight_bytes += static_cast<uint64_t>(change);
  }
  // No more in flight: acknowledged, or believed lost before; or lost, or `asked`: only sent again
  // as a question. `sent`: its last copy.
  void arrived(uint8_t route, uint32_t bytes_in_flight, Time sent, Time now);
  void lose(uint8_t route, uint32_t bytes, Time sent, bool asked = false);
  // A packet may overtake those of other paths, so in mode rack each is judged by its own.
  void note_sent_of_arrived(uint8_t route, Time sent, Time now);
  void judge(Duration tolerance, Time now);
  Time overtaken_before(uint8_t route) const { return routes_[route].overtaken_before; }
  Duration later(uint8_t route) const { return routes_[route].later; }
  Time patience(uint8_t route, Time sent, Duration tolerance) const {
    return routes_[route].latest.patience(sent, tolerance);
  }
  void came(uint8_t route, Time now) {
    latest_ = route;
    used(now);
  }
  void used(Time now) { active_until_ = now + active_for; }
  // A time-out: is it the path? All are asked, and one that is in vain is enough to leave it.
  void question_all(Time now);
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
  // Returns false if no question with this nonce is open.
  bool answered(uint8_t route, uint64_t nonce, Time now);
  // This one has just carried what nobody could have made up.
  void prove(uint8_t route, Time now);

  // What has become of routes since the last call, as bits.
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
  // Between questions: of a path that is used, after one in vain, of one that is lost.
  static constexpr Duration calm = std::chrono::milliseconds(100);
  static constexpr Duration doubt = std::chrono::milliseconds(20);
  static constexpr Duration least_patience = std::chrono::milliseconds(5);
  static constexpr Duration most_patience = std::chrono::milliseconds(40);
  // Of one that never was: it may be somebody else's.
  static constexpr Duration most_patience_unknown = std::chrono::seconds(1);
  static constexpr Duration most_queueing = std::chrono::milliseconds(1);
  // Who sends and receives nothing asks nothing.
  static constexpr Duration active_for = std::chrono::milliseconds(200);

  class Places {
   public:
    explicit Places(Slab<Four>* more) : more_(more) {}
    ~Places() {
      if (others_ != nullptr) more_->destroy(others_);
    }
    Places(const Places&) = delete;
    Places& operator=(const Places&) = delete;

    unsigned size() const { return others_ == nullptr ? 4 : most_paths; }
    void widen() {
      URMA_ASSERT(more_ != nullptr, "whoever may have more than four paths has room for them");
      others_ = more_->create();
    }
    Route& operator[](unsigned i) { return of(i).routes[i % 4]; }
    const Route& operator[](unsigned i) const { return i < size() ? of(i).routes[i % 4] : nowhere; }
    congestion::Controller*& window(unsigned i) { return of(i).windows[i % 4]; }
    const congestion::Controller* window(unsigned i) const { return of(i).windows[i % 4]; }
    void* storage(unsigned i) { return of(i).storage[i % 4]; }

   private:
    static const Route nowhere;
    // Below `size` only.
    Four& of(unsigned i) { return i < 4 ? first_ : *others_; }
    const Four& of(unsigned i) const { return i < 4 ? first_ : *others_; }

    Four first_;
    Four* others_ = nullptr;
    Slab<Four>* more_;
  };

  PathTotals& totals_of(uint8_t route) { return (*totals_)[routes_[route].local]; }
  void open_window(uint8_t route);
  void shut_windows();
  Duration least_taken() const;
  bool active(Time now);
  uint8_t first_usable() const;
  uint8_t fallback(unsigned number) const;
  void take_away(uint8_t route);
  void put(uint8_t route, uint8_t local, const Endpoint& to, bool news, Time now);
  bool overtaken_on_others(uint8_t route, Time sent) const;
  bool others_heard_after(uint8_t route, Time when) const;
  void suspect(uint8_t route, Time now);
  void tell_lost(uint8_t route);

  Places routes_;
  const congestion::ControllerKind* kind_ = nullptr;  // not null: windows are open
  congestion::Settings window_settings_;
  PathList theirs_;
  uint64_t tell_nonce_ = 0;
  Time tell_at_ = never;
  Time led_at_{};    // for the first time of a few
  uint8_t led_ = 0;  // times
  uint16_t tells_ = 0;
  AllPathTotals* totals_ = nullptr;
  uint8_t count_ = 0;
  uint8_t next_ = 0;
  uint8_t latest_ = 0;
  bool one_at_a_time_ = false;
  News news_;
  Time now_{};  // of the last that arrived
  Time active_until_{};
};

}  // namespace urma::transport
