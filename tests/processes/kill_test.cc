// Processes that are killed or stopped in the middle of traffic, and what it costs the others.

#include <map>

#include "tests/api/helpers.h"
#include "tests/processes/child.h"
#include "urma/base/clock.h"
#include "urma/base/prng.h"

namespace urma::test {
namespace {

std::vector<std::string> serve(const std::string& device, const std::string& name) {
  return {URMA_TEST_PEER, device, "serve", name};
}

Duration since(Time begun) { return read_clock() - begun; }

// Keeps a Jetty busy and notes how long nothing came back.
class Traffic {
 public:
  Traffic(Jetty& jetty, const Imported& target)
      : jetty_(jetty), target_(target), last_(read_clock()) {}

  void turn() {
    const Work works[] = {write(bytes_, target_.segment),
                          send(std::span(bytes_).first(100), target_.jetty),
                          write(bytes_, target_.segment, 8192).to(target_.jetty).immediate(1)};
    while (jetty_.vacant_berths() >= std::size(works)) posted_ += jetty_.post(works);
    std::array<Completion, 64> out;
    const size_t count = jetty_.poll(out);
    for (const Completion& completion : std::span(out).first(count)) ++ended_[completion.status];
    if (count > 0) {
      longest_gap_ = std::max(longest_gap_, since(last_));
      last_ = read_clock();
    }
    completed_ += count;
  }
  void finish() {
    while (completed_ < posted_) {
      const auto completions = jetty_.wait(10s);
      if (completions.empty()) return;
      completed_ += completions.size();
      for (const Completion& completion : completions) ++ended_[completion.status];
    }
  }

  bool all_completed() const { return completed_ == posted_; }
  uint64_t completed() const { return completed_; }
  Duration longest_gap() const { return longest_gap_; }
  uint64_t ended(Status status) { return ended_[status]; }

 private:
  Jetty& jetty_;
  Imported target_;
  std::vector<std::byte> bytes_ = bytes_like(5000, 1);
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  std::map<Status, uint64_t> ended_;
  Time last_;
  Duration longest_gap_{};
};

TEST_CASE(
    "a target is killed in the middle of traffic: its works end in time, others do not notice") {
  Side here = Side::open("udp:");
  Jetty other = here.device.jetty({.berths = 64}).value();
  Child bystander(serve("udp:", "bystander"));
  Prng prng(read_clock().time_since_epoch().count());
  for (int round = 0; round < 5; ++round) {
    INFO("round " << round);
    Child target(serve("udp:127.0.0.221", "target"));
    REQUIRE(target.said() == "ready");
    Traffic doomed(here.jetty, here.device.import("urma://localhost/target").value());
    Traffic calm(other, here.device.import("urma://localhost/bystander").value());
    const Time until =
        read_clock() + 50ms + Duration(static_cast<int64_t>(prng.below(100'000'000)));
    while (read_clock() < until) doomed.turn(), calm.turn();
    target.end(SIGKILL);
    const Time killed = read_clock();
    // Works posted to the dead end too, as long as somebody posts.
    while (since(killed) < 200ms) doomed.turn(), calm.turn();
    while (!doomed.all_completed() && since(killed) < 10s) {
      calm.turn();
      doomed.finish();
    }
    CHECK(doomed.all_completed());
    // The verdict after 1 s of silence, then 2 s for a new channel.
    CHECK(since(killed) < 3s + 500ms);
    CHECK(doomed.ended(Status::ok) > 0);
    CHECK(doomed.ended(Status::unknown) + doomed.ended(Status::peer_unreachable) +
              doomed.ended(Status::peer_restarted) >
          0);
    calm.finish();
    CHECK(calm.all_completed());
    CHECK(calm.ended(Status::ok) == calm.completed());
  }
}

TEST_CASE("a killed target that is started again is known as another one, and served at once") {
  Side here = Side::open("udp:");
  const auto bytes = bytes_like(20'000, 7);
  for (int round = 0; round < 10; ++round) {
    INFO("round " << round);
    Child target(serve("udp:127.0.0.222", "phoenix"));
    const Imported remote = here.device.import("urma://localhost/phoenix").value();
    const Time begun = read_clock();
    here.jetty.post(write(bytes, remote.segment));
    REQUIRE(collect(here.jetty, 1).at(0).ok());
    CHECK(since(begun) < 500ms);
    here.jetty.post(write(bytes, remote.segment));
    target.end(SIGKILL);
    Child again(serve("udp:127.0.0.222", "phoenix"));
    // The one under way ends as it must; the old import is told that its owner is gone.
    REQUIRE(collect(here.jetty, 1, 10s).size() == 1);
    here.jetty.post(write(bytes, remote.segment));
    const auto told = collect(here.jetty, 1, 10s);
    REQUIRE(told.size() == 1);
    const bool restarted =
        told[0].status == Status::peer_restarted || told[0].status == Status::unknown;
    CHECK(restarted);
    const Imported fresh = here.device.import("urma://localhost/phoenix").value();
    here.jetty.post(write(bytes, fresh.segment));
    CHECK(collect(here.jetty, 1, 10s).at(0).ok());
  }
}

TEST_CASE(
    "an initiator is killed in the middle of writes: what arrived is whole, others are served") {
  Side here = Side::open("udp:", {}, {.berths = 16, .receives = 256});
  here.device.publish("victim", here.segment, here.jetty).value();
  Child bystander({URMA_TEST_PEER, "udp:", "write", "steady", "urma://localhost/victim"});
  for (int round = 0; round < 5; ++round) {
    INFO("round " << round);
    Child writer({URMA_TEST_PEER, "udp:127.0.0.223", "write", "doomed", "urma://localhost/victim"});
    uint64_t arrivals = 0;
    std::map<uint64_t, uint64_t> last;  // per sender
    const auto receive_for = [&](Duration time) {
      const Time until = read_clock() + time;
      while (read_clock() < until) {
        for (const Completion& arrival : here.jetty.wait(10ms)) {
          REQUIRE(arrival.ok());
          CHECK(arrival.bytes == 8000);
          ++arrivals;
          ++last[number(arrival.from_jetty)];
        }
      }
    };
    receive_for(100ms);
    CHECK(last.size() == 2);
    writer.end(SIGKILL);
    receive_for(50ms);
    const uint64_t before = arrivals;
    receive_for(100ms);
    CHECK(arrivals > before);  // the bystander goes on
  }
}

TEST_CASE("a target that is stopped for less than the verdict costs no work") {
  Side here = Side::open("udp:");
  Child target(serve("udp:", "sleeper"));
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
}

TEST_CASE("a target that is stopped for long is given up, and taken back when it wakes") {
  Side here = Side::open("udp:");
  Child target(serve("udp:", "dozer"));
  const Imported remote = here.device.import("urma://localhost/dozer").value();
  const auto bytes = bytes_like(5000, 1);
  here.jetty.post(write(bytes, remote.segment));
  REQUIRE(collect(here.jetty, 1).at(0).ok());
  target.stop();
  const Time stopped = read_clock();
  here.jetty.post(write(bytes, remote.segment));
  CHECK(collect(here.jetty, 1, 10s).at(0).status == Status::unknown);
  CHECK(since(stopped) < 3s + 500ms);
  target.go_on();
  here.jetty.post(write(bytes, remote.segment));
  CHECK(collect(here.jetty, 1, 10s).at(0).ok());
}

TEST_CASE("a killed process leaves its name and its port, though a child that it forked lives on") {
  Child publisher({URMA_TEST_PEER, "udp:127.0.0.224", "fork", "heirloom"});
  const pid_t sleeper = std::stoi(publisher.said());
  Side here = Side::open("udp:");
  CHECK(here.device.import("urma://localhost/heirloom").ok());
  publisher.end(SIGKILL);
  REQUIRE(kill(sleeper, 0) == 0);
  CHECK(here.device.import("urma://localhost/heirloom", 50ms).status() == Status::not_found);
  Side heir = Side::open("udp:127.0.0.224");
  CHECK(heir.device.endpoint().port == ub_port);
  CHECK(heir.device.publish("heirloom", heir.segment).ok());
  kill(sleeper, SIGKILL);
}

}  // namespace
}  // namespace urma::test
