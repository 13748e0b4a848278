// SPDX-License-Identifier: Apache-2.0
// Random senders with any congestion control and any retransmission mode, over random lines to one
// receiver, with paths that fail and heal, and acknowledgements that are lost, late or few. In half
// of the worlds the processes run late, as their devices state, or are stopped for longer. In
// two of three worlds the switch has lanes, port meters, or both; the meters may belong to
// another control than the senders'. The seed decides everything. With URMA_LONG: 3000 seeds.

#include <algorithm>

#include "base/prng.h"
#include "congestion/controller.h"
#include "tests/catch.h"
#include "tests/long_run.h"
#include "tests/sanitized.h"
#include "tests/sim/excess.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

uint64_t swarm_seeds() { return long_run() ? 3000 : sanitized ? 10 : 300; }

constexpr size_t work_bytes = 32 << 10;
constexpr int works_each = 40;
// No control may slow a sender so much that no work ends for so long, while a path works.
constexpr Duration patience = 3s;
// The longest queue at a port meter of caqm_r, if all senders use caqm_r: the largest bound that
// bench/congestion has for up to 8 flows of the whole transport, in full packets. Senders have at
// most 6 routes here.
constexpr uint32_t most_metered_queue = 20 * (4096 + 64);
// How many bytes more a paced sender has sent on a line than it carries: the packet that leaves,
// the one after a timer's tick, and what was rounded.
constexpr double most_catch_up = 64 << 10;  // by a sender whose ends run later than they state
constexpr double most_excess = 3 * (4096 + 96);

template <class T, size_t N>
const T& one_of(Prng& prng, const std::array<T, N>& values) {
  return values[prng.below(N)];
}

// A line to a device. Each of its packets passes it in both directions.
struct DrawnLine {
  uint64_t megabits = 0;
  uint64_t queue_bytes = 0;
  std::string text{};

  static DrawnLine drawn(Prng& prng) {
    const std::array<const char*, 5> delays{"1us", "4us", "20us", "100us", "1ms"};
    const std::array<const char*, 4> losses{"", "", "&loss=0.1%", "&loss=2%"};
    const std::array<const char*, 4> jitters{"", "", "&jitter=5us", "&jitter=300us"};
    DrawnLine line{.megabits = one_of(prng, std::array<uint64_t, 3>{200, 1000, 10'000}),
                   .queue_bytes = prng.between(64, 600) << 10};
    line.text = "topology=star&rate=" + std::to_string(line.megabits) +
                "Mbit&queue=" + std::to_string(line.queue_bytes) + "&delay=" + one_of(prng, delays);
    if (prng.below(4) != 0) line.text += "&mark=" + std::to_string(line.queue_bytes / 4);
    line.text += one_of(prng, losses);
    line.text += one_of(prng, jitters);
    return line;
  }
};

// The switch between all lines.
struct DrawnSwitch {
  uint32_t lanes = 1;
  std::string meter = "none";
  std::string text{};

  static DrawnSwitch drawn(uint64_t seed) {
    Prng prng(~seed);
    DrawnSwitch it;
    if (prng.below(3) == 0) return it;
    const std::array<const char*, 4> meters{"none", "caqm_w", "caqm_r", "caqm_r"};
    const std::array<const char*, 3> round_trips{"8us", "100us", "2ms"};
    it.lanes = static_cast<uint32_t>(prng.between(1, 4));
    it.meter = one_of(prng, meters);
    it.text = "&lanes=" + std::to_string(it.lanes) + "&meter=" + it.meter +
              "&rtt=" + one_of(prng, round_trips);
    return it;
  }
};

// How late the processes run.
struct DrawnLateness {
  Duration stated{};
  Duration stopped{};  // at most, each few milliseconds

  static DrawnLateness drawn(uint64_t seed) {
    Prng prng(~seed * 3);
    if (prng.below(2) == 0) return {};
    return {.stated = one_of(prng, std::array<Duration, 4>{0us, 100us, 1000us, 5000us}),
            .stopped = one_of(prng, std::array<Duration, 3>{0us, 2000us, 8000us})};
  }
  bool punctual() const { return stated == 0us && stopped == 0us; }
  std::string text() const { return "&scheduling_delay=" + std::to_string(stated / 1us) + "us"; }
};

struct SwarmEnd {
  std::vector<DrawnLine> lines{};
  uint32_t lane = 0;
  std::string control{};
  std::string mode{};
  DeviceOptions options{};

  // Three of four senders have the control of the port meters, if there are any.
  static SwarmEnd drawn(Prng& prng, const DrawnSwitch& at) {
    SwarmEnd end;
    const auto controls = congestion::controllers();
    end.lines.resize(prng.between(1, 2));
    for (DrawnLine& line : end.lines) line = DrawnLine::drawn(prng);
    end.control = controls[prng.below(controls.size())].name;
    if (at.meter != "none" && prng.below(4) != 0) end.control = at.meter;
    // Devices whose packets overtake one another refuse the modes with fast retransmission.
    const bool reorders = std::ranges::any_of(end.lines, [](const DrawnLine& line) {
      return line.text.find("jitter") != line.text.npos;
    });
    const std::array modes{sel_rack, sel_timeout, gbn_timeout, sel_fast, gbn_fast};
    Retransmission mode = modes[prng.below(reorders ? 3 : modes.size())];
    end.mode = urma::name(mode);
    if (prng.below(3) == 0) {  // acknowledgements are few
      mode.ack_packets = 64;
      mode.ack_delay = 1ms;
    }
    end.options = {.operation_timeout = 60s,
                   .congestion = end.control,
                   .retransmission = mode,
                   .balance = prng.below(2) == 0 ? Balance::slice : Balance::packet};
    return end;
  }
  bool is_paced() const { return congestion::find_controller(control)->paces; }
  std::string device(const std::string& network, const DrawnSwitch& at,
                     const DrawnLateness& late) const {
    std::string text = lines.size() > 1 ? "paths():" : "";
    for (const DrawnLine& line : lines) {
      text += (&line == lines.data() ? "sim:" : "+sim:") + network + "?" + line.text + at.text +
              late.text() + "&sl=" + std::to_string(lane);
    }
    return text;
  }
};

struct SwarmTotals : Statistics {
  uint64_t congested = 0;
  uint64_t lanes_used = 0;  // above the lowest
  uint64_t metered = 0;
  uint64_t paced_lines = 0;
  uint64_t late_worlds = 0;
  uint64_t stops = 0;
};

// One world: runs it at once, and checks it meanwhile.
class SwarmWorld {
 public:
  explicit SwarmWorld(uint64_t seed, const std::string& name)
      : prng_(seed),
        hosts_(name, seed),
        switch_(DrawnSwitch::drawn(seed)),
        late_(DrawnLateness::drawn(seed)),
        receiver_(SwarmEnd::drawn(prng_, switch_)) {
    there_.push_back(start(receiver_, name));
    const auto count = prng_.between(1, 3);
    for (uint32_t i = 0; i < count; ++i) {
      ends_.push_back(SwarmEnd::drawn(prng_, switch_));
      ends_.back().lane = i % switch_.lanes;
    }
    for (const SwarmEnd& end : ends_) {
      here_.push_back({.host = start(end, name)});
      here_.back().target = here_.back().host.device.import(there_[0].line).value();
      here_.back().ended_at = hosts_.now();
      if (end.is_paced() && end.lines.size() * receiver_.lines.size() == 1)
        watch(end, here_.back().host.device);
    }
    hosts_.network().faults.on_leave = [this](const Endpoint& from, auto packet) {
      for (auto& [line, excess] : excess_) {
        if (line == from && is_data(packet)) excess.add(packet.size(), hosts_.now());
      }
    };
  }
  ~SwarmWorld() { hosts_.network().faults = {}; }

  std::string describe() const {
    std::string text = "receiver " + receiver_.device("net", switch_, late_);
    for (const SwarmEnd& end : ends_) {
      text += "\n" + end.control + " " + end.mode + " " + end.device("net", switch_, late_);
    }
    return text;
  }

  void run() {
    while (std::ranges::any_of(here_, [](const Sender& one) { return one.ended < works_each; })) {
      trouble();
      if (late_.stopped > 0us) stop_some();
      for (Sender& sender : here_) post_and_take(sender);
    }
    if (cut_) sever(false);
    if (stopped_ != nullptr) hosts_.stop(*std::exchange(stopped_, nullptr), false);
    check_packets();
    settle();
    check_lines();
    check_switch();
    // No control is faster than the line of its sender, except to catch up after it was late.
    for (const auto& [line, excess] : excess_) {
      const double stated = std::chrono::duration<double>(late_.stated).count();
      const double late =
          late_.punctual() ? 0 : std::max(excess.bytes_per_second * stated, most_catch_up);
      CHECK(excess.most <= most_excess + late);
    }
  }
  uint64_t trace_hash() { return hosts_.network().trace_hash(); }
  // Adds up what has happened, to show that the worlds have enough trouble.
  void add_to(SwarmTotals& totals) {
    totals.packets_marked += there_[0].device.stats().value().packets_marked;
    for (Sender& sender : here_) {
      const Statistics one = sender.host.device.stats().value();
      totals.notifications += one.notifications;
      totals.retransmitted += one.retransmitted;
      totals.retransmission_timeouts += one.retransmission_timeouts;
      totals.overtaken_reports += one.overtaken_reports;
      totals.paths_lost += one.paths_lost;
      totals.paths_back += one.paths_back;
    }
    totals.congested += congested_;
    totals.lanes_used += lanes_used_;
    totals.metered += metered_;
    totals.late_worlds += late_.stated > 0us;
    totals.stops += stops_;
    for (const auto& [line, excess] : excess_) totals.paced_lines += excess.most > 0;
  }

 private:
  struct Sender {
    SimHosts::Host host;
    Imported target{};
    int posted = 0;
    int ended = 0;
    Time ended_at{};
  };

  SimHosts::Host start(const SwarmEnd& end, const std::string& network) {
    return SimHosts::start_at(end.device(network, switch_, late_), {.berths = 16, .receives = 16},
                              end.options);
  }

  // A path of a sender that has another one fails for a while.
  void trouble() {
    if (hosts_.now() < next_trouble_) return;
    next_trouble_ = hosts_.now() + Duration(prng_.between(200'000, 10'000'000));
    if (cut_) return sever(false);
    Sender& sender = here_[prng_.below(here_.size())];
    const auto paths = sender.host.device.paths(sender.target.segment.peer);
    if (!paths || paths->size() < 2) return;
    cut_ = (*paths)[prng_.below(paths->size())];
    sever(true);
  }
  void sever(bool severed) {
    hosts_.network().faults.cut(cut_->from, cut_->to, severed);
    hosts_.network().faults.cut(cut_->to, cut_->from, severed);
    if (!severed) cut_.reset();
  }

  // One process after the other is stopped, and continues later.
  void stop_some() {
    if (hosts_.now() < next_stop_) return;
    if (stopped_ != nullptr) {
      hosts_.stop(*std::exchange(stopped_, nullptr), false);
    } else {
      const auto chosen = prng_.below(here_.size() + 1);
      stopped_ = chosen == 0 ? &there_[0] : &here_[chosen - 1].host;
      hosts_.stop(*stopped_);
      ++stops_;
    }
    const auto most = static_cast<uint64_t>(late_.stopped.count());
    next_stop_ = hosts_.now() + Duration(static_cast<int64_t>(prng_.between(most / 4, most)));
  }

  void post_and_take(Sender& sender) {
    static const auto data = bytes_like(work_bytes);
    while (sender.posted < works_each &&
           sender.host.jetty.post(write(data, sender.target.segment)) == 1) {
      ++sender.posted;
    }
    for (const Completion& one : sender.host.jetty.wait(100us)) {
      REQUIRE(name(one.status) == "ok");
      ++sender.ended;
      sender.ended_at = hosts_.now();
    }
    const bool moves = sender.ended == works_each || hosts_.now() < sender.ended_at + patience;
    REQUIRE(moves);
  }

  fabric::Switch& the_switch() { return hosts_.network().switches()->network().switches()[0]; }
  // Runs the world until all packets have arrived, also copies that a channel sent although the
  // first ones had arrived.
  void settle() {
    const Time last = hosts_.now() + patience;
    do {
      const Time until = hosts_.now() + 50ms;
      while (hosts_.now() < until) hosts_.network().step(until);
    } while (the_switch().used_bytes() > 0 && hosts_.now() < last);
  }

  // Returns whether port meters bound the queues to the receiver. Each of them takes the whole line
  // for its own, so only one lane may have packets.
  bool metered() const {
    return switch_.meter == "caqm_r" && late_.punctual() &&
           (switch_.lanes == 1 || ends_.size() == 1) &&
           std::ranges::all_of(ends_, [](const SwarmEnd& end) { return end.control == "caqm_r"; });
  }
  // A sender with several routes has a control for each, which takes a whole line for its own.
  void watch(const SwarmEnd& end, Device& device) {
    const auto places = device.endpoints();
    REQUIRE(places.size() == end.lines.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const double rate = static_cast<double>(end.lines[i].megabits) * 1e6 / 8;
      excess_.push_back({places[i], {.bytes_per_second = rate}});
    }
  }
  // Port meters keep queues short.
  void check_lines() {
    const auto places = there_[0].device.endpoints();
    REQUIRE(places.size() == receiver_.lines.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const auto port = hosts_.network().switches()->port_to(hosts_.network().host_of(places[i]));
      port.at.settle(port.number, hosts_.now());
      for (uint32_t lane = 0; lane < switch_.lanes; ++lane) {
        const fabric::LaneCounters& counters = port.at.counters(port.number, lane);
        if (metered()) {
          CHECK(counters.most_queue <= most_metered_queue);
          metered_ += counters.congested > 0;
        }
        congested_ += counters.congested;
        lanes_used_ += lane > 0 && counters.packets > 0;
      }
    }
  }

  // All packets that have reached the switch have left it or were dropped; its queues are empty.
  void check_switch() {
    fabric::Switch& at = the_switch();
    uint64_t received = 0, left = 0, dropped = 0;
    for (uint32_t port = 0; port < at.settings().ports; ++port) {
      at.settle(port, hosts_.now());
      received += at.counters(port).received_packets;
      for (const uint64_t drops : at.counters(port).drops) dropped += drops;
      for (uint32_t lane = 0; lane < switch_.lanes; ++lane) left += at.counters(port, lane).packets;
    }
    CHECK(received == left + dropped);
    CHECK(at.used_bytes() == 0);
  }

  void check_packets() {
    const bool floods =
        std::ranges::any_of(ends_, [](const SwarmEnd& end) { return end.control == "fixed"; });
    static const auto data = bytes_like(work_bytes);
    CHECK(same(data, std::span(there_[0].memory).first(work_bytes)));
    for (Sender& sender : here_) {
      const Statistics counters = sender.host.device.stats().value();
      // A sender without control keeps a queue full, so others may receive nothing for a long time.
      CHECK((floods || counters.channels_lost == 0));
    }
    check_sums();
  }

  struct Sums {
    uint64_t sent = 0;
    uint64_t received = 0;
  };
  // All packets on the network are those that the devices have counted. A device may send while the
  // counters of others are read, so they are read until none does.
  void check_sums() {
    for (int reads = 0; reads < 1000; ++reads) {
      const uint64_t before = hosts_.network().counters().sent;
      const Sums sums = read_sums();
      const uint64_t after = hosts_.network().counters().sent;
      if (after != before) continue;
      CHECK(sums.sent == after);
      CHECK(sums.received <= after);
      return;
    }
    FAIL("the devices do not stop sending");
  }
  Sums read_sums() {
    Sums sums;
    const auto add = [&](SimHosts::Host& host) {
      const Statistics counters = host.device.stats().value();
      sums.sent += counters.frames_sent;
      sums.received += counters.frames_received;
    };
    add(there_[0]);
    for (Sender& sender : here_) add(sender.host);
    return sums;
  }

  std::vector<std::pair<Endpoint, Excess>> excess_;  // of the lines of paced senders
  Prng prng_;
  SimHosts hosts_;
  DrawnSwitch switch_;
  DrawnLateness late_;
  SwarmEnd receiver_;
  std::vector<SwarmEnd> ends_;
  std::vector<SimHosts::Host> there_;
  std::vector<Sender> here_;
  Time next_trouble_{};
  Time next_stop_{};
  SimHosts::Host* stopped_ = nullptr;
  uint64_t stops_ = 0;
  std::optional<Path> cut_;
  uint64_t congested_ = 0;  // packets to the receiver that a port meter answered with C
  uint64_t lanes_used_ = 0;
  uint64_t metered_ = 0;  // lines whose port meter bounded the queue, and had to
};

uint64_t hash_of(uint64_t seed, const std::string& name, SwarmTotals& totals) {
  SwarmWorld world(seed, name);
  INFO("seed " << seed << "\n" << world.describe());
  world.run();
  world.add_to(totals);
  return world.trace_hash();
}

TEST_CASE("swarm: no control starves a sender, exceeds a line or loses a packet for good") {
  SwarmTotals totals;
  for (uint64_t seed = 1; seed <= swarm_seeds(); ++seed) {
    const std::string name = "congestion-swarm-" + std::to_string(seed);
    const uint64_t hash = hash_of(seed, name, totals);
    if (seed % 10 == 0) CHECK(hash_of(seed, name, totals) == hash);
  }
  if (sanitized) return;  // too few seeds
  CHECK(totals.packets_marked > 1000);
  CHECK(totals.notifications > 10);
  CHECK(totals.retransmitted > 1000);
  CHECK(totals.retransmission_timeouts > 10);
  CHECK(totals.overtaken_reports > 10);
  CHECK(totals.paths_lost > 10);
  CHECK(totals.paths_back > 3);
  CHECK(totals.congested > 3000);
  CHECK(totals.lanes_used > 10);
  CHECK(totals.metered > 20);
  CHECK(totals.paced_lines > 50);
  CHECK(totals.late_worlds > 50);
  CHECK(totals.stops > 500);
}

}  // namespace
}  // namespace urma::test
