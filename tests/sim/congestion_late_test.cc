// SPDX-License-Identifier: Apache-2.0
// Senders behind a switch with port meters, as processes on a busy machine: their engines run late,
// as their ports state, or do not run for longer than that.

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

struct LateHosts {
  std::string control{};
  uint64_t megabits = 100;  // of each line
  int senders = 1;
  Duration stated{};     // how late an engine may run: it is late by up to as much
  Duration paused{};     // for about so long at a time, a process does not run; between two such
                         // pauses it runs four times as long
  Duration delay{10us};  // of each cable
  Duration rtt{1ms};     // that the switch knows
};

struct Outcome {
  double utilisation = 0;  // of the line to the receiver
  double least_share = 1;  // of what each sender would get if all got the same
  double repeated = 0;     // of the packets
};

// Hosts on a star. Each sender keeps writing 16 KiB.
class LateStar {
 public:
  LateStar(const std::string& network, const LateHosts& what)
      : what_(what), hosts_(network), receiver_(start()) {
    for (int i = 0; i < what.senders; ++i) {
      senders_.push_back({.host = start()});
      senders_[i].target = senders_[i].host.device.import(receiver_.line).value();
    }
    changes_.resize(senders_.size() + 1);
  }

  Outcome run(Duration time) {
    run_until(hosts_.now() + time / 4);  // begins
    for (Sender& sender : senders_) sender.ended = 0;
    run_until(hosts_.now() + time);
    Outcome out;
    uint64_t all = 0, sent = 0, again = 0;
    for (Sender& sender : senders_) {
      const Statistics counters = sender.host.device.stats().value();
      all += sender.ended;
      sent += counters.packets_sent;
      again += counters.retransmitted;
      CHECK(counters.channels_lost == 0);
    }
    const double line = static_cast<double>(what_.megabits) * 1e6 / 8;
    const double seconds = std::chrono::duration<double>(time).count();
    out.utilisation = static_cast<double>(all * data_.size()) / (line * seconds);
    out.repeated = static_cast<double>(again) / static_cast<double>(sent);
    for (const Sender& sender : senders_) {
      const auto share = static_cast<double>(sender.ended * senders_.size());
      out.least_share = std::min(out.least_share, share / static_cast<double>(all));
    }
    return out;
  }

 private:
  struct Sender {
    SimHosts::Host host;
    Imported target{};
    uint64_t ended = 0;
  };
  struct Change {
    Time at{};
    bool paused = false;
  };

  SimHosts::Host start() {
    const std::string stated = std::to_string(what_.stated / 1us) + "us";
    const std::string delay = std::to_string(what_.delay / 1us) + "us";
    const std::string rtt = std::to_string(what_.rtt / 1us) + "us";
    return hosts_.start("topology=star&rate=" + std::to_string(what_.megabits) +
                            "Mbit&queue=256K&delay=" + delay + "&rtt=" + rtt +
                            "&meter=" + what_.control + "&scheduling_delay=" + stated,
                        {.berths = 64, .receives = 16}, {.congestion = what_.control});
  }

  void run_until(Time until) {
    while (hosts_.now() < until) {
      for (Sender& sender : senders_) {
        while (sender.host.jetty.post(write(data_, sender.target.segment)) == 1) continue;
        for (const Completion& one : sender.host.jetty.wait(100us)) {
          REQUIRE(name(one.status) == "ok");
          ++sender.ended;
        }
      }
      if (what_.paused > Duration{}) pause();
    }
  }

  void pause() {
    for (size_t i = 0; i < changes_.size(); ++i) {
      Change& change = changes_[i];
      if (hosts_.now() < change.at) continue;
      change.paused = !change.paused;
      const Duration most = change.paused ? what_.paused : 4 * what_.paused;
      change.at = hosts_.now() + most / 4 +
                  Duration(static_cast<int64_t>(prng_.below(static_cast<uint64_t>(most.count()))));
      hosts_.stop(i < senders_.size() ? senders_[i].host : receiver_, change.paused);
    }
  }

  const LateHosts what_;
  Prng prng_{1};
  const std::vector<std::byte> data_ = bytes_like(16 << 10);
  SimHosts hosts_;
  SimHosts::Host receiver_;
  std::vector<Sender> senders_;
  std::vector<Change> changes_;  // of each sender and the receiver
};

// Returns the least use of the line. A C-AQM keeps no queue that would fill it while a process is
// paused, which each process is for a fifth of the time. In 5 ms more leaves at 1 Gb/s than the
// queue holds.
double least_utilisation(uint64_t megabits, Duration stated) {
  if (stated <= 1ms) return 0.6;
  return megabits == 100 ? 0.55 : 0.4;
}

void check(const std::string& control, uint64_t megabits, Duration stated, Duration paused) {
  for (const int senders : {1, 2, 4}) {
    const LateHosts what{control, megabits, senders, stated, paused};
    const std::string name = "late-" + control + "-" + std::to_string(megabits) + "-" +
                             std::to_string(senders) + "-" + std::to_string(stated.count()) + "-" +
                             std::to_string(paused.count());
    const Outcome out = LateStar(name, what).run(1s);
    INFO(name);
    CHECK(out.utilisation > least_utilisation(megabits, stated));
    CHECK(out.least_share > 0.5);
    CHECK(out.repeated < 0.1);
  }
}

TEST_CASE("senders whose ends run late use the line of a receiver, and share it") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    for (const uint64_t megabits : {100u, 1000u}) {
      for (const Duration stated : {0us, 1000us, 5000us}) check(control, megabits, stated, 0us);
    }
  }
}

TEST_CASE("senders whose ends are paused use the line of a receiver, and share it") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    for (const uint64_t megabits : {100u, 1000u}) {
      for (const Duration stated : {0us, 1000us, 5000us}) check(control, megabits, stated, 4ms);
    }
  }
}

// Processes that wait for a processor whenever they have sent: the shortest round trip that such an
// end finds may be longer than the lateness that it states, and others are longer still.
TEST_CASE("paused ends whose shortest round trip is longer than their lateness use the line") {
  for (const std::string control : {"caqm_w", "caqm_r"}) {
    for (const Duration delay : {400us, 800us}) {
      const LateHosts what{
          .control = control, .stated = 1ms, .paused = 8ms, .delay = delay, .rtt = 2ms};
      const std::string name = "longer-" + control + std::to_string(delay.count());
      INFO(name);
      CHECK(LateStar(name, what).run(1s).utilisation > 0.8);
    }
  }
}

}  // namespace
}  // namespace urma::test
