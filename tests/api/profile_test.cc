// SPDX-License-Identifier: Apache-2.0
// A device that was opened with DeviceOptions::profile times its stages.

#include <thread>

#include "base/clock.h"
#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Without a page of counters there are no reports, so each pass ends once.
DeviceOptions timed(Threads threads = Threads::inlined) {
  return {.threads = threads, .observable = false, .profile = true};
}

Profile profile_of(Side& side) { return side.device.profile().value(); }

uint64_t times(const Profile& end, const Profile& begin, Stage stage) {
  return end[stage].times - begin[stage].times;
}

// The time of the stages of the device, or of the calls of its application.
Duration total(const Profile& profile, bool calls) {
  Duration sum{};
  for (const StageInfo& info : all_stages()) {
    if (is_call(info.stage) == calls) sum += profile[info.stage].total;
  }
  return sum;
}

// Ticks are counted at a rate that was measured within a millisecond.
constexpr double most_off = 1.02;

// Counts the polls of a Jetty as an application sees them.
struct Polls {
  uint64_t found = 0;
  uint64_t nothing = 0;

  uint64_t of(Side& side) {
    std::array<Completion, 8> out;
    const size_t count = side.jetty.poll(out);
    ++(count > 0 ? found : nothing);
    for (size_t i = 0; i < count; ++i) REQUIRE(out[i].ok());
    return count;
  }
};

TEST_CASE("a device that was not opened with `profile` says how it is profiled") {
  Side side = Side::open("udp:");
  const auto refused = side.device.profile();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().status == Status::invalid_argument);
  CHECK(refused.error().message.find("Fix: open it with DeviceOptions::profile = true") !=
        std::string::npos);
}

TEST_CASE("posts and polls are counted as they were made, and passes as the device counts them") {
  for (const std::string_view text : media) {
    INFO(text);
    const Medium medium(text);
    Side user = Side::open(medium.text(), timed());
    Side owner = Side::open(medium.text(), timed());
    const Imported there = user.device.import(owner.line()).value();
    const auto data = bytes_like(20'000, 1);
    const uint64_t passes_before = user.device.stats().value().passes;
    const Time before = read_clock();
    const Profile begin = profile_of(user);
    Polls polls;
    Polls others;
    constexpr uint64_t works = 50;
    for (uint64_t i = 0; i < works; ++i) {
      REQUIRE(user.jetty.post(write(data, there.segment)) == 1);
      while (polls.of(user) == 0) others.of(owner);
    }
    const Profile end = profile_of(user);
    const uint64_t passes = user.device.stats().value().passes - passes_before;
    CHECK(times(end, begin, Stage::post) == works);
    CHECK(times(end, begin, Stage::poll_found) == polls.found);
    CHECK(times(end, begin, Stage::poll_nothing) == polls.nothing);
    CHECK(times(end, begin, Stage::wait) == 0);
    CHECK(times(end, begin, Stage::report) == 0);
    // Each pass that does everything goes through these stages once.
    const uint64_t whole = times(end, begin, Stage::settle);
    CHECK(whole > 0);
    CHECK(whole <= passes);
    for (const Stage stage : {Stage::take, Stage::timers, Stage::send})
      CHECK(times(end, begin, stage) == whole);
    // A pass ends by `finish`, or by `look` if it found nothing. Beginnings of whole passes may
    // also be `look`. The three control calls above ran a few passes outside of the two profiles.
    const uint64_t ended = times(end, begin, Stage::finish);
    const uint64_t looks = times(end, begin, Stage::look);
    CHECK(ended >= whole);
    CHECK(ended <= passes);
    CHECK(ended + looks + 16 >= passes);
    CHECK(looks <= passes);
    // One thread did all this, so neither its calls nor the device take more than the time that has
    // passed.
    const Duration passed = end.at - before;
    CHECK(end.at > begin.at);
    CHECK(total(end, true) - total(begin, true) <= passed * most_off);
    CHECK(total(end, false) - total(begin, false) <= passed * most_off);
    CHECK(end[Stage::send].total > begin[Stage::send].total);
    CHECK(end.cost_ns == begin.cost_ns);
  }
}

TEST_CASE("a wait is timed, and so is the poll at its end") {
  const Medium medium("cxl:");
  Side user = Side::open(medium.text(), timed());
  const Profile begin = profile_of(user);
  for (int i = 0; i < 3; ++i) CHECK(user.jetty.wait(2ms).empty());
  const Profile end = profile_of(user);
  CHECK(times(end, begin, Stage::wait) == 3);
  CHECK(times(end, begin, Stage::poll_nothing) == 3);
  CHECK(end[Stage::wait].total - begin[Stage::wait].total * most_off >= 6ms);
}

TEST_CASE("a simulated device is profiled in the machine's time, while its own stands still") {
  constexpr const char* text = "sim:profile?seed=1";
  Side user = Side::open(text, timed());
  Side owner = Side::open(text);
  const RemoteSegment there = user.device.import(owner.segment.descriptor()).value().segment;
  const auto data = bytes_like(3000, 1);
  const Time before = read_clock();
  const Profile begin = profile_of(user);
  constexpr uint64_t works = 20;
  for (uint64_t i = 0; i < works; ++i) {
    REQUIRE(user.jetty.post(write(data, there)) == 1);
    const auto done = user.jetty.wait(patience);
    REQUIRE(done.size() == 1);
    CHECK(done[0].ok());
  }
  const Profile end = profile_of(user);
  CHECK(times(end, begin, Stage::post) == works);
  CHECK(times(end, begin, Stage::wait) == works);
  CHECK(times(end, begin, Stage::poll_found) == works);
  CHECK(times(end, begin, Stage::settle) > 0);
  CHECK(end[Stage::send].total > begin[Stage::send].total);
  CHECK(total(end, false) - total(begin, false) <= (end.at - before) * most_off);
}

TEST_CASE("works that end in post are counted as copies in post") {
  const Medium medium("cxl:");
  Side user = Side::open(medium.text(), timed());
  Side owner = Side::open(medium.text(), {.threads = Threads::served});
  const RemoteSegment there = user.device.import(owner.segment.descriptor()).value().segment;
  std::array<std::byte, 8> back{};
  REQUIRE(run_one(user.jetty, read(back, there)).ok());
  const auto data = bytes_like(8, 1);
  const Profile begin = profile_of(user);
  uint64_t in_place = 0;
  std::array<Completion, 1> out;
  for (uint64_t round = 0; round < 64; ++round) {
    for (int i = 0; i < 4; ++i) REQUIRE(user.jetty.poll(out) == 0);
    const auto landing = owner.segment.bytes().subspan(8 * round, 8);
    REQUIRE(user.jetty.post(write(data, there, 8 * round)) == 1);
    in_place += same(landing, data);
    REQUIRE(user.jetty.wait(patience).size() == 1);
  }
  const Profile end = profile_of(user);
  CHECK(in_place > 0);
  CHECK(times(end, begin, Stage::copy_in_post) == in_place);
  CHECK(times(end, begin, Stage::send_ahead) == 0);
  // The copies are a part of the posts.
  CHECK(end[Stage::copy_in_post].total - begin[Stage::copy_in_post].total <=
        end[Stage::post].total - begin[Stage::post].total);
}

TEST_CASE("a reply that leaves in post is counted as sent ahead") {
  const Medium medium("cxl:");
  Side left = Side::open(medium.text(), timed());
  Side right = Side::open(medium.text(), timed());
  const RemoteJetty to_right = left.device.import(right.line()).value().jetty;
  const RemoteJetty to_left = right.device.import(left.line()).value().jetty;
  const auto data = bytes_like(8, 1);
  std::array<std::byte, 8> buffer{};
  const Profile begin = profile_of(right);
  constexpr uint64_t rounds = 20;
  const auto passes_to = [&](Side& from, Side& to, const RemoteJetty& target) {
    REQUIRE(to.jetty.receive(buffer));
    REQUIRE(from.jetty.post(send(data, target)) == 1);
    std::array<Completion, 1> out;
    for (bool there = false; !there;) {
      (void)from.jetty.poll({out.data(), 0});
      there = to.jetty.poll(out) == 1 && out[0].operation == Operation::receive;
    }
  };
  for (uint64_t i = 0; i < rounds; ++i) {
    passes_to(left, right, to_right);
    passes_to(right, left, to_left);
  }
  const Profile end = profile_of(right);
  CHECK(times(end, begin, Stage::post) == rounds);
  CHECK(times(end, begin, Stage::send_ahead) > 0);
  CHECK(times(end, begin, Stage::send_ahead) <= rounds);
}

TEST_CASE("calls of several threads are counted, and those of destroyed objects stay counted") {
  for (const Threads threads : {Threads::automatic, Threads::served}) {
    Side user = Side::open("udp:", timed(threads));
    Side owner = Side::open("udp:");
    const RemoteSegment there = user.device.import(owner.segment.descriptor()).value().segment;
    const auto data = bytes_like(100, 1);
    const Profile begin = profile_of(user);
    constexpr uint64_t works = 200;
    const auto write_all = [&] {
      Jetty jetty = user.device.jetty({.berths = 8}).value();
      for (uint64_t i = 0; i < works; ++i) {
        if (jetty.post(write(data, there)) != 1) return;
        while (jetty.wait(patience).empty()) {
        }
      }
    };
    std::thread other(write_all);
    write_all();
    // Reading meanwhile disturbs neither.
    CHECK(times(profile_of(user), begin, Stage::post) >= works);
    other.join();
    const Profile end = profile_of(user);
    CHECK(times(end, begin, Stage::post) == 2 * works);
    CHECK(times(end, begin, Stage::wait) >= 2 * works);
    CHECK(times(end, begin, Stage::poll_found) == 2 * works);
    CHECK(times(end, begin, Stage::settle) > 0);
  }
}

TEST_CASE("a Jfc and a Jfr of a profiled device are timed") {
  Side user = Side::open("udp:", timed());
  Jfc jfc = user.device.jfc(64).value();
  Jfr jfr = user.device.jfr({.receives = 4}).value();
  std::array<Completion, 1> out;
  const Profile begin = profile_of(user);
  REQUIRE(jfc.poll(out) == 0);
  REQUIRE(jfr.poll(out) == 0);
  CHECK(times(profile_of(user), begin, Stage::poll_nothing) == 2);
}

}  // namespace
}  // namespace urma::test
