// SPDX-License-Identifier: Apache-2.0
// Processes that are killed or stopped in the middle of traffic, and the effect on others.

#include <map>

#include "base/prng.h"
#include "tests/drivers/io_ways.h"
#include "tests/drivers/window_file.h"
#include "tests/fresh_seed.h"
#include "tests/processes/child.h"
#include "tests/processes/numbered_writes.h"
#include "tests/processes/traffic.h"

namespace urma::test {
namespace {

// The device string of most processes, and that of a process that restarts.
struct Medium {
  std::string any;
  std::string home;
};

template <class Function>
void on_each_medium(const std::string& home, Function&& function) {
  const WindowFile window("kill");
  const std::string shared = window.device("?size=64M");
  std::vector<Medium> media = {{shared, shared}};
  for (const std::string& way : io_ways()) media.push_back({"udp:" + way, "udp:" + home + way});
  for (const Medium& medium : media) {
    INFO("medium " << medium.home);
    function(medium);
  }
}

TEST_CASE("a target is killed in the middle of traffic: its works end in time, others continue") {
  on_each_medium("127.0.0.221", [](const Medium& medium) {
    Side here = Side::open(medium.any);
    Jetty other = here.device.jetty({.berths = 64}).value();
    Child bystander(serve(medium.any, "bystander"));
    INFO("URMA_TEST_SEED=" << fresh_seed());
    Prng prng(fresh_seed());
    for (int round = 0; round < 3; ++round) {
      INFO("round " << round);
      Child target(serve(medium.home, "target"));
      REQUIRE(target.said() == "ready");
      Traffic doomed(here.jetty, here.device.import("urma://localhost/target").value());
      Traffic calm(other, here.device.import("urma://localhost/bystander").value());
      const Time until =
          read_clock() + 50ms + Duration(static_cast<int64_t>(prng.below(100'000'000)));
      // On a busy machine the first work ends later than that.
      const auto flows = [&] { return doomed.ended(Status::ok) > 0; };
      while (read_clock() < until || (!flows() && since(until) < patience)) {
        doomed.turn(), calm.turn();
      }
      target.end(SIGKILL);
      const Time killed = read_clock();
      // Works that are posted after the death of the process end too.
      while (since(killed) < 200ms) doomed.turn(), calm.turn();
      while (!doomed.all_completed() && since(killed) < patience) {
        calm.turn();
        doomed.finish();
      }
      CHECK(doomed.all_completed());
      CHECK(doomed.ended(Status::ok) > 0);
      CHECK(doomed.ended(Status::unknown) + doomed.ended(Status::peer_unreachable) +
                doomed.ended(Status::peer_restarted) >
            0);
      calm.finish();
      CHECK(calm.all_completed());
      CHECK(calm.ended(Status::ok) == calm.completed());
    }
  });
}

TEST_CASE("a killed target that is started again is a new peer, and is served immediately") {
  on_each_medium("127.0.0.222", [](const Medium& medium) {
    Side here = Side::open(medium.any);
    const auto bytes = bytes_like(20'000, 7);
    for (int round = 0; round < 10; ++round) {
      INFO("round " << round);
      Child target(serve(medium.home, "phoenix"));
      const Imported remote = here.device.import("urma://localhost/phoenix").value();
      REQUIRE(run_one(here.jetty, write(bytes, remote.segment)).ok());
      REQUIRE(here.jetty.post(write(bytes, remote.segment)) == 1);
      target.end(SIGKILL);
      Child again(serve(medium.home, "phoenix"));
      // The outstanding work ends with any status; a work with the old import ends as
      // peer_restarted.
      REQUIRE(collect(here.jetty, 1, 10s).size() == 1);
      REQUIRE(here.jetty.post(write(bytes, remote.segment)) == 1);
      const auto told = collect(here.jetty, 1, 10s);
      REQUIRE(told.size() == 1);
      const bool restarted =
          told[0].status == Status::peer_restarted || told[0].status == Status::unknown;
      CHECK(restarted);
      const Imported fresh = here.device.import("urma://localhost/phoenix").value();
      REQUIRE(here.jetty.post(write(bytes, fresh.segment)) == 1);
      CHECK(collect(here.jetty, 1, 10s).at(0).ok());
    }
  });
}

// The notifications that two writers with `NumberedWrites` have sent to the owner of a segment.
class Told {
 public:
  explicit Told(Side& here) : here_(here) {}

  // Receives until `enough` returns true. Fails if nothing arrives for 10 s.
  template <class Enough>
  void receive_until(Enough&& enough) {
    while (!enough()) {
      const auto arrivals = here_.jetty.wait(10s);
      REQUIRE_FALSE(arrivals.empty());
      for (const Completion& arrival : arrivals) {
        REQUIRE(arrival.ok());
        CHECK(arrival.bytes == NumberedWrites::slot_bytes);
        Sender& sender = senders_[number(arrival.from_jetty)];
        ++sender.arrivals;
        sender.last[NumberedWrites::source_of(arrival.immediate)] = arrival.immediate;
      }
    }
  }
  uint64_t arrivals(uint64_t jetty) { return senders_[jetty].arrivals; }
  std::vector<uint64_t> senders() const {
    std::vector<uint64_t> out;
    for (const auto& [jetty, sender] : senders_) out.push_back(jetty);
    return out;
  }
  // Takes the last number that each source of the sender has notified. Returns how many of these
  // numbers `region` contains in every word of their slots.
  size_t whole(uint64_t jetty, std::span<const std::byte> region) {
    return static_cast<size_t>(std::ranges::count_if(senders_[jetty].last, [&](uint64_t last) {
      return last != 0 && NumberedWrites::whole(region, last);
    }));
  }

 private:
  struct Sender {
    uint64_t arrivals = 0;
    std::array<uint64_t, NumberedWrites::sources> last{};
  };
  Side& here_;
  std::map<uint64_t, Sender> senders_;
};

TEST_CASE(
    "an initiator is killed in the middle of writes: notified writes are whole, others continue") {
  on_each_medium("127.0.0.223", [](const Medium& medium) {
    Side here = Side::open(medium.any, {}, {.berths = 16, .receives = 256});
    here.device.publish("victim", here.segment, here.jetty).value();
    const auto write_at = [](const std::string& device, const char* name, size_t offset) {
      return std::vector<std::string>{
          URMA_TEST_PEER, device, "write", name, "urma://localhost/victim", std::to_string(offset)};
    };
    const std::span region = here.segment.bytes().first(NumberedWrites::target_bytes);
    Child bystander(write_at(medium.any, "steady", region.size()));
    uint64_t steady = 0;
    for (int round = 0; round < 5; ++round) {
      INFO("round " << round);
      std::ranges::fill(region, std::byte{0});
      Told told(here);
      if (round == 0) {
        told.receive_until([&] { return told.senders().size() == 1; });
        steady = told.senders()[0];
      }
      Child writer(write_at(medium.home, "doomed", 0));
      uint64_t doomed = 0;
      told.receive_until([&] {
        for (const uint64_t jetty : told.senders()) doomed = jetty != steady ? jetty : doomed;
        return doomed != 0 && told.arrivals(doomed) >= 20 * NumberedWrites::sources;
      });
      writer.end(SIGKILL);
      // The last writes of the dead writer are received before the next ones of the bystander, or
      // at the latest during its next hundreds of writes.
      uint64_t before = told.arrivals(steady);
      uint64_t of_the_dead = told.arrivals(doomed);
      told.receive_until([&] {
        if (told.arrivals(doomed) != std::exchange(of_the_dead, told.arrivals(doomed))) {
          before = told.arrivals(steady);
        }
        return told.arrivals(steady) >= before + 200;
      });
      CHECK(told.whole(doomed, region) == NumberedWrites::sources);
    }
  });
}

TEST_CASE("a target that is stopped for less than the time-out of a channel fails no work") {
  on_each_medium("127.0.0.226", [](const Medium& medium) {
    Side here = Side::open(medium.any);
    Child target(serve(medium.any, "sleeper"));
    Traffic traffic(here.jetty, here.device.import("urma://localhost/sleeper").value());
    for (int round = 0; round < 3; ++round) {
      Time until = read_clock() + 50ms;
      while (read_clock() < until) traffic.turn();
      target.stop();
      until = read_clock() + 400ms;
      while (read_clock() < until) traffic.turn();
      target.go_on();
    }
    traffic.finish();
    CHECK(traffic.all_completed());
    CHECK(traffic.ended(Status::ok) == traffic.completed());
  });
}

TEST_CASE(
    "a target that is stopped for long is declared dead, and served again when it continues") {
  on_each_medium("127.0.0.227", [](const Medium& medium) {
    Side here = Side::open(medium.any);
    Child target(serve(medium.any, "dozer"));
    const Imported remote = here.device.import("urma://localhost/dozer").value();
    const auto bytes = bytes_like(5000, 1);
    REQUIRE(run_one(here.jetty, write(bytes, remote.segment)).ok());
    target.stop();
    // The target's memory can be written while the target is stopped, but it cannot take a
    // notification.
    REQUIRE(here.jetty.post(write(bytes, remote.segment).to(remote.jetty).immediate(1)) == 1);
    CHECK(collect(here.jetty, 1, 10s).at(0).status == Status::unknown);
    target.go_on();
    REQUIRE(here.jetty.post(write(bytes, remote.segment)) == 1);
    CHECK(collect(here.jetty, 1, 10s).at(0).ok());
  });
}

TEST_CASE("a killed process leaves its name and port to others, even if a child of it still runs") {
  on_each_medium("127.0.0.224", [](const Medium& medium) {
    Child publisher({URMA_TEST_PEER, medium.home, "fork", "heirloom"});
    const pid_t sleeper = std::stoi(publisher.said());
    Side here = Side::open(medium.any);
    CHECK(here.device.import("urma://localhost/heirloom").ok());
    publisher.end(SIGKILL);
    REQUIRE(kill(sleeper, 0) == 0);
    CHECK(here.device.import("urma://localhost/heirloom", 50ms).status() == Status::not_found);
    Side heir = Side::open(medium.home);
    CHECK(heir.device.endpoint().port == ub_port);
    CHECK(heir.device.publish("heirloom", heir.segment).ok());
    kill(sleeper, SIGKILL);
  });
}

}  // namespace
}  // namespace urma::test
