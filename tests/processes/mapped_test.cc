// SPDX-License-Identifier: Apache-2.0
// Processes that are stopped or killed in the middle of a copy into another process's memory, and
// processes into whose memory others copy.

#include <cstdio>
#include <functional>
#include <initializer_list>

#include "base/prng.h"
#include "tests/drivers/window_file.h"
#include "tests/fresh_seed.h"
#include "tests/no_address_space.h"
#include "tests/processes/bystanders.h"
#include "tests/processes/copies.h"
#include "tests/processes/shared_memory.h"

namespace urma::test {
namespace {

constexpr size_t granule_bytes = drivers::cxl::least_granule_bytes;
constexpr size_t slice_bytes = 64 << 10;  // the bytes that are copied under one hold

std::vector<std::string> copy(const std::string& device, const SharedMemory<Report>& report) {
  return {URMA_TEST_PEER, device, "copy", "urma://localhost/canvas", report.path()};
}

uint64_t sum(const std::atomic<uint64_t> (&counts)[32]) {
  uint64_t out = 0;
  for (const auto& count : counts) out += count;
  return out;
}

bool only(const std::atomic<uint64_t> (&counts)[32], std::initializer_list<Status> statuses) {
  uint64_t these = 0;
  for (const Status status : statuses) these += counts[static_cast<size_t>(status)];
  return these == sum(counts);
}

uint64_t of(const std::atomic<uint64_t> (&counts)[32], Status status) {
  return counts[static_cast<size_t>(status)];
}

[[nodiscard]] bool comes(const std::function<bool()>& what) {
  for (const Time begun = read_clock(); !what();) {
    if (since(begun) > patience) return false;
    std::this_thread::sleep_for(200us);
  }
  return true;
}

// Returns the memory where a segment was, whatever it is used for now.
std::span<std::byte> memory_of(Intruder& window, const RemoteSegment& segment) {
  const drivers::cxl::Parts parts = window.parts();
  const uint64_t number =
      (segment.address & ~drivers::cxl::in_the_window) >> drivers::cxl::offset_bits;
  return window.all().subspan(parts.memory_at + number * parts.granule_bytes, segment.bytes);
}

// Allocates all memory that a window has left: large segments, then whatever fits in between.
std::vector<Segment> take_the_rest(Device& device) {
  std::vector<Segment> out;
  for (const size_t bytes : {canvas_bytes, granule_bytes}) {
    for (;;) {
      Segment segment = device.allocate(bytes).value();
      if (!segment.mapped()) break;
      out.push_back(std::move(segment));
    }
  }
  return out;
}

size_t bytes_of(const std::vector<Segment>& segments) {
  size_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.bytes().size();
  return bytes;
}

// Returns the number of bytes from the first to the last that differ.
size_t changed(std::span<const std::byte> before, std::span<const std::byte> now) {
  if (std::memcmp(before.data(), now.data(), now.size()) == 0) return 0;
  size_t first = 0;
  size_t last = now.size() - 1;
  while (before[first] == now[first]) ++first;
  while (before[last] == now[last]) --last;
  return last - first + 1;
}

Duration moment(Prng& prng, Duration most) {
  return Duration(static_cast<int64_t>(prng.below(static_cast<uint64_t>(most.count()))));
}

// The findings of a test about stopped processes.
struct Stopped {
  int fenced = 0;
  int moved = 0;  // of these: its pages were replaced
  int not_fenced = 0;
  int finished = 0;  // of these: the copy continued when the process did
  Duration shortest = 1h;
};

// Revokes memory while a stopped process is writing to it. The process finishes its current copy in
// private pages. If pages cannot be replaced, it may finish in the memory itself, provided that the
// hold was recorded. It touches no memory of others.
void stop_and_take_away(Side& here, const WindowFile& window, const Child& writer, Report& report,
                        Duration after, bool movable, Stopped& found) {
  Intruder any(window);
  const size_t room = bytes_of(take_the_rest(here.device)) - canvas_bytes;
  std::optional<Segment> canvas = here.device.allocate(canvas_bytes).value();
  REQUIRE(canvas->mapped());
  const std::span<std::byte> memory = memory_of(any, canvas->local());
  const uint64_t over = report.over;
  report.begin_again();
  here.device.publish("canvas", *canvas).value();
  REQUIRE(comes([&] { return report.all_written(); }));
  std::this_thread::sleep_for(after);
  writer.stop();
  here.device.unpublish("canvas").value();
  const Time begun = read_clock();
  const Status status = [&] {
    std::optional<NoAddressSpace> none;
    if (!movable) none.emplace();
    return canvas->unregister().status();
  }();
  const bool fenced = status == Status::ok;
  const bool held = !here.device.quarantined().value().empty();
  REQUIRE((fenced || (status == Status::not_fenced && !movable)));
  REQUIRE((fenced || held));
  const bool moved = fenced && held;
  found.moved += moved;
  int& count = fenced ? found.fenced : found.not_fenced;
  if (held) found.shortest = std::min(found.shortest, since(begun));
  // The memory as its owner sees it, and as it lies in the window.
  const std::span<std::byte> seen = canvas->bytes();
  const std::vector<std::byte> before(seen.begin(), seen.end());
  CHECK(changed(before, memory) == 0);
  // The memory is allocated again, or it is quarantined: then other segments take all that is free.
  const bool left_behind = ++count % 2 == 0;
  std::vector<Segment> others;
  if (left_behind) {
    canvas.reset();
    others = take_the_rest(here.device);
    CHECK(bytes_of(others) == (held ? room : room + canvas_bytes));
    for (const Segment& other : others) std::ranges::fill(other.bytes(), std::byte{0xab});
  } else if (fenced) {
    CHECK(canvas->unregister().ok());
  }
  writer.go_on();
  REQUIRE(comes([&] { return report.over > over; }));
  for (const Segment& other : others) CHECK(all_are(other.bytes(), std::byte{0xab}));
  if (canvas) CHECK(canvas->unregister().ok());
  const size_t finished = held ? changed(before, memory) : 0;
  CHECK(finished <= slice_bytes);
  if (canvas && fenced) CHECK(changed(before, seen) == 0);
  found.finished += finished > 0;
  // The data of completed works is in memory, and no work completes after one was refused.
  CHECK(whole(canvas ? std::span<const std::byte>(seen) : before, report));
  CHECK(only(report.ended, {Status::ok, Status::unknown, Status::remote_access}));
  CHECK(only(report.late, {Status::remote_access}));
  CHECK(sum(report.late) == stripes.size());
  CHECK(report.torn == 0);
  others.clear();
  canvas.reset();
  CHECK(bytes_of(take_the_rest(here.device)) == room + canvas_bytes);
}

TEST_CASE("revoke waits for a process stopped in a copy, which touches no memory of others") {
  const WindowFile window("stopped");
  const std::string device = window.device("?size=16M");
  Side here = Side::open(device);
  const SharedMemory<Report> report;
  const Child writer(copy(device, report));
  REQUIRE(writer.said() == "ready");
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  Stopped found;
  int round = 0;
  const Time begun = read_clock();
  const bool can_say_no = NoAddressSpace::possible;
  const auto enough = [&] {
    const bool all =
        found.fenced - found.moved > 1 && found.moved > 1 && (found.not_fenced > 1 || !can_say_no);
    return (all && (round >= 3 * rounds() || since(begun) > 10s)) || since(begun) > 60s;
  };
  for (; round < 200 && !enough(); ++round) {
    INFO("round " << round);
    const bool movable = round % 2 == 0 || !can_say_no;
    stop_and_take_away(here, window, writer, *report, moment(prng, 3ms), movable, found);
  }
  std::printf(
      "stopped %d times: %d fenced, %d of these by replacing pages; %d not fenced; %d finished a "
      "copy\n",
      round, found.fenced, found.moved, found.not_fenced, found.finished);
  CHECK(found.fenced > found.moved);
  CHECK(found.moved > 0);
  CHECK((found.not_fenced > 0 || !can_say_no));
  // A lower bound, so a slow machine meets it, too: a copy has this time to end by itself.
  CHECK(found.shortest >= 500us);
}

// As in the previous test, except that the owner was killed, so it could not look for holds.
TEST_CASE(
    "after a target was killed while a process is stopped in a copy, others get only free memory") {
  const WindowFile window("both");
  const std::string device = window.device("?size=16M");
  Side here = Side::open(device);
  Intruder any(window);
  const SharedMemory<Report> shared;
  Report& report = *shared;
  const Child writer(copy(device, shared));
  REQUIRE(writer.said() == "ready");
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  const size_t room = bytes_of(take_the_rest(here.device));
  int held = 0;
  int finished = 0;
  int round = 0;
  const Time begun = read_clock();
  const auto enough = [&] {
    const bool both = held > 0 && held < round;
    return (both && (round >= rounds() || since(begun) > 10s)) || since(begun) > 60s;
  };
  for (; round < 200 && !enough(); ++round) {
    INFO("round " << round);
    const uint64_t over = report.over;
    report.begin_again();
    Child target(serve(device, "canvas", canvas_bytes));
    const RemoteSegment canvas = here.device.import("urma://localhost/canvas").value().segment;
    REQUIRE(comes([&] { return report.all_written(); }));
    std::this_thread::sleep_for(moment(prng, 3ms));
    writer.stop();
    target.end(SIGKILL);
    const std::span<std::byte> memory = memory_of(any, canvas);
    const std::vector<std::byte> before(memory.begin(), memory.end());
    std::vector<Segment> others = take_the_rest(here.device);
    const bool free = bytes_of(others) == room;
    CHECK((free || bytes_of(others) == room - canvas_bytes));
    held += !free;
    for (const Segment& other : others) std::ranges::fill(other.bytes(), std::byte{0xab});
    writer.go_on();
    REQUIRE(comes([&] { return report.over > over; }));
    for (const Segment& other : others) CHECK(all_are(other.bytes(), std::byte{0xab}));
    if (!free) {
      const size_t bytes = changed(before, memory);
      CHECK(bytes <= slice_bytes);
      finished += bytes > 0;
    }
    CHECK(whole(free ? std::span<const std::byte>(before) : memory, report));
    CHECK(only(report.ended,
               {Status::ok, Status::unknown, Status::peer_unreachable, Status::peer_restarted}));
    CHECK(of(report.late, Status::ok) == 0);
    CHECK(report.torn == 0);
    others.clear();
    CHECK(bytes_of(take_the_rest(here.device)) == room);
  }
  std::printf("stopped %d times, the target killed: %d held its memory (%d finished a copy)\n",
              round, held, finished);
  CHECK(held > 0);
}

TEST_CASE("memory is free again after a process was killed in the middle of a copy to it") {
  const WindowFile window("killed");
  const std::string device = window.device("?size=32M");
  Side here = Side::open(device);
  Intruder any(window);
  Pair calm(device, serve(device, "calm", 1 << 20));
  const SharedMemory<Report> report;
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  const size_t room = bytes_of(take_the_rest(here.device));
  int held = 0;
  const auto kill_one = [&](Duration after, bool stopped) {
    Segment canvas = here.device.allocate(canvas_bytes).value();
    REQUIRE(canvas.mapped());
    (*report).begin_again();
    here.device.publish("canvas", canvas).value();
    Child writer(copy(device, report));
    REQUIRE(comes([&] { return (*report).all_written(); }));
    std::this_thread::sleep_for(after);
    if (stopped) {
      writer.stop();
      CHECK(canvas.unregister().ok());
      held += !here.device.quarantined().value().empty();
    }
    writer.end(SIGKILL);
    CHECK(calm.goes_on());
    CHECK(canvas.unregister().ok());
    CHECK(whole(canvas.bytes(), *report));
    CHECK(only((*report).ended, {Status::ok}));
    CHECK((*report).torn == 0);
    here.device.unpublish("canvas").value();
    { const Segment gone = std::move(canvas); }
    // This is checked before another process can have the slot of the dead one.
    CHECK(bytes_of(take_the_rest(here.device)) == room);
  };
  for (int round = 0; round < 3; ++round) kill_one(10ms, false);
  const size_t descriptors = entries_of("/proc/self/fd");
  for (int round = 0; round < rounds(); ++round) {
    INFO("round " << round);
    kill_one(moment(prng, 5ms), round % 2 == 1);
  }
  std::printf("killed %d times, %d of them stopped while they held the segment\n", rounds(), held);
  CHECK(entries_of("/proc/self/fd") == descriptors);
  CHECK(calm.end());
  CHECK(entries_of("/dev/shm", "urma-test-" + std::to_string(getpid())) == 1);
}

TEST_CASE("a target is killed while others copy: works end, and the next process has its memory") {
  const WindowFile window("target");
  const std::string device = window.device("?size=64M");
  Side here = Side::open(device);
  Intruder any(window);
  Pair calm(device, serve(device, "calm", 1 << 20));
  const size_t room = bytes_of(take_the_rest(here.device));
  constexpr size_t bytes_of_one = 8 << 20;
  REQUIRE(room < 5 * bytes_of_one);
  INFO("URMA_TEST_SEED=" << fresh_seed());
  Prng prng(fresh_seed());
  Report report{};
  std::map<Status, uint64_t> late;
  for (int round = 0; round < rounds(); ++round) {
    INFO("round " << round);
    const auto command = serve(device, "phoenix", bytes_of_one);
    std::optional<Child> target(std::in_place, command);
    const Imported old = here.device.import("urma://localhost/phoenix").value();
    REQUIRE(old.segment.mapped());
    Copies copies(here.jetty, old.segment, report);
    const Duration after = moment(prng, 20ms);
    for (const Time begun = read_clock(); since(begun) < after || !report.all_written();) {
      REQUIRE(copies.turn(1s));
    }
    target->end(SIGKILL);
    CHECK(calm.goes_on());
    // In some rounds it is back before any other process can have noticed its death.
    const bool at_once = round % 2 == 1;
    if (at_once) target.emplace(command);
    const Time killed = read_clock();
    while (copies.turn(10ms)) REQUIRE(since(killed) < patience);
    CHECK(sum(report.late) == stripes.size());
    CHECK(of(report.late, Status::ok) == 0);
    CHECK(only(report.ended,
               {Status::ok, Status::unknown, Status::peer_unreachable, Status::peer_restarted}));
    for (const Status status : {Status::unknown, Status::peer_unreachable, Status::peer_restarted})
      late[status] += of(report.late, status);
    CHECK(report.torn == 0);
    if (!at_once) {
      CHECK(whole(memory_of(any, old.segment), report));
      target.emplace(command);
    }
    const auto bytes = bytes_like(100'000, static_cast<unsigned>(round));
    CHECK(run_one(here.jetty, write(bytes, old.segment)).status == Status::peer_restarted);
    const Imported fresh = here.device.import("urma://localhost/phoenix").value();
    REQUIRE(fresh.segment.mapped());
    REQUIRE(run_one(here.jetty, write(bytes, fresh.segment)).ok());
    std::vector<std::byte> back(bytes.size());
    REQUIRE(run_one(here.jetty, read(back, fresh.segment)).ok());
    CHECK(back == bytes);
  }
  std::printf(
      "%d targets killed, %zu MiB through %zu: late works ended as unknown %llu times, unreachable "
      "%llu, restarted %llu\n",
      rounds(), 2 * static_cast<size_t>(rounds()) * bytes_of_one >> 20, room >> 20,
      static_cast<unsigned long long>(late[Status::unknown]),
      static_cast<unsigned long long>(late[Status::peer_unreachable]),
      static_cast<unsigned long long>(late[Status::peer_restarted]));
  CHECK(bytes_of(take_the_rest(here.device)) == room);
  CHECK(calm.end());
  CHECK(entries_of("/dev/shm", "urma-test-" + std::to_string(getpid())) == 1);
}

// A target that is stopped, and a process that copies into its memory.
struct Sleeper {
  Sleeper(const WindowFile& window, const std::string& device)
      : here(Side::open(device, {.threads = Threads::inlined})),
        telling(here.device.jetty({.berths = 4}).value()),
        any(window),
        target(serve(device, "sleeper", canvas_bytes)),
        remote(here.device.import("urma://localhost/sleeper").value()) {}

  // Notifies a word behind the stripes.
  void tell() {
    const Work work = write(std::as_bytes(std::span(&number, 1)), remote.segment, canvas_bytes - 8);
    REQUIRE(telling.post(Work(work).to(remote.jetty).immediate(1)) == 1);
  }
  // Copies for at least `time`, and until 20 works have ended. Returns false if copies have
  // stopped.
  [[nodiscard]] bool copy(Copies& copies, Duration time) const {
    const uint64_t enough = sum(report.ended) + 20;
    for (const Time begun = read_clock(); since(begun) < time || sum(report.ended) < enough;) {
      if (since(begun) > patience || !copies.turn(10ms)) return false;
    }
    return true;
  }
  bool all_is_there() { return whole(memory_of(any, remote.segment), report); }

  Side here;
  Jetty telling;
  Intruder any;
  Child target;
  Imported remote;
  Report report{};
  uint64_t number = 0x0123'4567'89ab'cdef;
};

TEST_CASE("copies continue while their target is stopped, and notifications wait for it") {
  const WindowFile window("sleeper");
  Sleeper sleeper(window, window.device("?size=64M"));
  Copies copies(sleeper.here.jetty, sleeper.remote.segment, sleeper.report);
  REQUIRE(sleeper.copy(copies, 50ms));
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    sleeper.target.stop();
    sleeper.tell();
    CHECK(sleeper.copy(copies, 300ms));
    CHECK(collect(sleeper.telling, 1, 1ms).empty());
    sleeper.target.go_on();
    CHECK(collect(sleeper.telling, 1).at(0).ok());
  }
  // The target is stopped for longer than a target may be silent.
  sleeper.target.stop();
  const uint64_t before = sum(sleeper.report.ended);
  CHECK(sleeper.copy(copies, 1500ms));
  const uint64_t count = sum(sleeper.report.ended) - before;
  sleeper.target.go_on();
  sleeper.tell();
  CHECK(collect(sleeper.telling, 1).at(0).ok());
  while (copies.wait(1s)) {
  }
  std::printf("a target was stopped for 1.5 s: %llu works on its memory\n",
              static_cast<unsigned long long>(count));
  CHECK(only(sleeper.report.ended, {Status::ok}));
  CHECK(sleeper.report.torn == 0);
  CHECK(sleeper.all_is_there());
}

// Copies do not need the target's processor. Notifications while it is stopped end in time: as
// unknown if they are in its ring, as unreachable if they were never put there.
TEST_CASE("notifications to a stopped target end in time, and copies continue") {
  const WindowFile window("dozer");
  Sleeper sleeper(window, window.device("?size=64M"));
  Copies copies(sleeper.here.jetty, sleeper.remote.segment, sleeper.report);
  REQUIRE(sleeper.copy(copies, 50ms));
  sleeper.target.stop();
  for (const Status end : {Status::unknown, Status::peer_unreachable}) {
    const Time told = read_clock();
    sleeper.tell();
    std::vector<Completion> ended;
    while (ended.empty() && since(told) < patience) {
      REQUIRE(sleeper.copy(copies, 50ms));
      ended = collect(sleeper.telling, 1, 0ms);
    }
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].status == end);
  }
  sleeper.target.go_on();
  sleeper.tell();
  CHECK(collect(sleeper.telling, 1).at(0).ok());
  CHECK(sleeper.copy(copies, 50ms));
  while (copies.wait(1s)) {
  }
  CHECK(only(sleeper.report.ended, {Status::ok}));
  CHECK(sleeper.report.torn == 0);
  CHECK(sleeper.all_is_there());
}

}  // namespace
}  // namespace urma::test
