// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/raw_shm.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <vector>

#include "apps/common/failure.h"
#include "apps/urma_perf/shm_limit.h"
#include "tests/bytes.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

using test::bytes_like;
using Bytes = std::vector<std::byte>;

// This time is long enough for some messages, and short enough for a busy machine.
constexpr int64_t slice = millisecond;
constexpr int64_t patience = 20 * second;

// Returns a case with memory that is not mapped, so that both sides have work to do.
Case case_of(std::string_view test, uint64_t bytes) {
  return {.test = find_test(test), .bytes = bytes, .own_memory = true};
}

// The two lanes of one window, as two processes have them.
struct Lanes {
  explicit Lanes(const ShmPlan& plan)
      : window(ShmWindow::make(plan.there.lane_bytes() + plan.back.lane_bytes())),
        there(plan.there, window.bytes().first(plan.there.lane_bytes())),
        back(plan.back, window.bytes().subspan(plan.there.lane_bytes())) {}

  ShmWindow window;
  Lane there;
  Lane back;
};

// Starts a child that answers until the test ends it.
template <class Answer>
pid_t forked(Answer&& answer) {
  const pid_t child = fork();
  if (child != 0) return child;
  for (const int64_t until = now() + patience; now() < until;) answer(now() + slice);
  _exit(0);
}

void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

bool has_name(const std::string& name) { return std::filesystem::exists("/dev/shm/" + name); }

}  // namespace

TEST_CASE("each raw ping-pong delivers the bytes of the other process") {
  // Two processes that spin on one processor need milliseconds for a round trip.
  constexpr uint64_t enough = 50;
  for (const auto& [test, bytes] : {std::pair("send_lat", 8),
                                    {"send_lat", 48},
                                    {"send_lat", 49},
                                    {"send_lat", 65536},
                                    {"write_imm_lat", 8},
                                    {"write_imm_lat", 1000},
                                    {"write_imm_lat", 5000},
                                    {"write_lat", 64},
                                    {"write_lat", 1 << 20},
                                    {"wake_lat", 64},
                                    {"read_lat", 64},
                                    {"read_lat", 100'000}}) {
    CAPTURE(test, bytes);
    ShmPlan plan = shm_plan(case_of(test, static_cast<uint64_t>(bytes)));
    for (LanePlan* lane : {&plan.there, &plan.back}) {
      if (lane->way != Way::number) lane->use = Use::copy;
    }
    const bool echoed = plan.there.use == Use::copy && plan.back.use == Use::copy;
    const Lanes lanes(plan);
    const Bytes source = bytes_like(static_cast<size_t>(bytes) + 64);
    Bytes landing(source.size());
    ShmPong pong(lanes.there, lanes.back, landing, echoed ? landing : source, 0);
    const pid_t child = forked([&](int64_t until) { pong.run(until); });
    ShmPing ping(lanes.there, lanes.back, source, landing, 0);
    Histogram times;
    for (const int64_t until = now() + patience; times.count() < enough && now() < until;) {
      ping.run(now() + slice, times);
    }
    end(child);
    REQUIRE(times.count() >= enough);
    REQUIRE(times.percentile(0.5) > 0);
    if (plan.back.use == Use::copy) {
      REQUIRE(std::equal(landing.begin(), landing.begin() + bytes, source.begin()));
    }
  }
}

TEST_CASE("each raw stream delivers all bytes in order while both sides run in slices") {
  for (const uint64_t bytes : {8, 56, 64, 1000, 1024, 5000, 65536, 100'000, 1 << 20}) {
    CAPTURE(bytes);
    ShmPlan plan = shm_plan(case_of("write_bw", bytes));
    plan.there.use = Use::copy;
    const Lanes lanes(plan);
    const Bytes source = bytes_like(bytes);  // one slot: each message is the same
    const pid_t child = forked(
        [sender = ShmSender(lanes.there, source)](int64_t until) mutable { sender.run(until); });
    Bytes landing(bytes);
    ShmReceiver receiver(lanes.there, landing);
    const uint64_t enough = 2000 * std::min<uint64_t>(bytes, 1024) + 2 * bytes;
    for (const int64_t until = now() + patience; receiver.tally.bytes < enough && now() < until;) {
      receiver.run(now() + slice);
    }
    end(child);
    REQUIRE(receiver.tally.bytes >= enough);
    REQUIRE(receiver.tally.bytes_per_second() > 0);
    REQUIRE(landing == source);
  }
}

TEST_CASE("a side that gets no answer returns after its time limit") {
  const ShmPlan plan = shm_plan(case_of("send_lat", 8));
  const Lanes lanes(plan);
  const Bytes source = bytes_like(64);
  Bytes landing(64);
  Histogram times;
  ShmPing(lanes.there, lanes.back, source, landing, 0).run(now() + slice, times);
  ShmPong(lanes.back, lanes.there, landing, source, 0).run(now() + slice);
  const ShmPlan stream = shm_plan(case_of("write_bw", 4096));
  const Lanes more(stream);
  ShmReceiver(more.there, landing).run(now() + slice);
  const Bytes piece = bytes_like(4096);
  ShmSender sender(more.there, piece);
  for (int i = 0; i < 3; ++i) sender.run(now() + slice);
  REQUIRE(times.count() == 0);
}

TEST_CASE("the pattern of the limit follows from test and size") {
  const auto pattern = [](std::string_view test, uint64_t bytes) {
    return shm_plan(case_of(test, bytes)).pattern;
  };
  REQUIRE(pattern("send_lat", 48) == "inline ring");
  REQUIRE(pattern("send_lat", 49) == "message, copied");
  REQUIRE(pattern("write_imm_lat", 8) == "write, slot");
  REQUIRE(pattern("write_imm_lat", 65536) == "message, read");
  REQUIRE(pattern("wake_lat", 8) == "futex wake");
  REQUIRE(pattern("write_lat", 8) == "data, slot");
  REQUIRE(pattern("read_lat", 65536) == "message, slot");
  REQUIRE(pattern("send_bw", 8) == "stamped ring");
  REQUIRE(pattern("write_bw", 65536) == "two-copy pipe");
  REQUIRE(shm_plan(case_of("read_bw", 8)).back.way == Way::stamped);
  REQUIRE(shm_plan(case_of("read_lat", 8)).there.way == Way::number);
  for (const Test& test : all_tests()) {
    const bool alone = shm_plan({.test = &test, .bytes = 8}).copies;
    REQUIRE(alone == (test.operation != Operation::send && !test.immediate));
  }
}

TEST_CASE("a copier copies each slot in turn, and counts the copied bytes") {
  const Bytes source = bytes_like(4096);
  Bytes landing(3 * 4096 + 100);
  ShmCopier copier(source, landing, 4096, 4096);
  copier.run(now() + slice);
  REQUIRE(copier.tally.bytes_per_second() > 0);
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(std::equal(source.begin(), source.end(), landing.begin() + i * 4096));
  }
  Histogram times;
  copier.run(now() + slice, times);
  REQUIRE(times.count() > 0);
}

TEST_CASE("a copier that is timed in groups records picoseconds of each copy") {
  for (const size_t bytes : {8, 100}) {
    const Bytes source = bytes_like(61 * 64 + bytes);
    Bytes landing(4 * 128);
    ShmCopier copier(source, landing, bytes, 128);
    copier.group(4);
    Histogram times;
    while (times.count() == 0) copier.run(now() + slice, times);
    REQUIRE(times.count() % 4 == 0);
    REQUIRE(times.percentile(0.5) >= 1000 / 4);  // a nanosecond of four copies, at least
    REQUIRE(times.max() < uint64_t{1000} * second);
  }
}

TEST_CASE("with a spread, a copier copies from lines in all parts of its source") {
  // Each cache line contains its own number.
  Bytes source(64 * 64);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i / 64);
  Bytes landing(64);
  ShmCopier copier(source, landing, 64, 64);
  copier.spread();
  std::set<std::byte> lines;
  for (int i = 0; i < 100'000 && lines.size() < 64; ++i) {
    copier.run(now() + 1000);
    REQUIRE(landing == Bytes(64, landing[0]));
    lines.insert(landing[0]);
  }
  REQUIRE(lines.size() == 64);
}

TEST_CASE("the driver of a device string decides what it is compared with") {
  REQUIRE(limit_kind("udp:") == LimitKind::sockets);
  REQUIRE(limit_kind("udp:[::1]?mtu=4096: UDP socket on ::1") == LimitKind::sockets);
  REQUIRE(limit_kind("fault(loss=5%,seed=7):udp:127.0.0.1") == LimitKind::sockets);
  REQUIRE(limit_kind("cxl:") == LimitKind::shared_memory);
  REQUIRE(limit_kind("cxl:/dev/shm/window?places=8: rings in /dev/shm") ==
          LimitKind::shared_memory);
  REQUIRE(limit_kind("fault(dup=1%):cxl:") == LimitKind::shared_memory);
  REQUIRE(limit_kind("fault(dup=1%):fault(loss=1%):cxl:") == LimitKind::shared_memory);
  REQUIRE(limit_kind("pcap(f):dpdk:net_memif0,role=server?ip=10.9.0.1: net_memif0") ==
          LimitKind::polled_port);
  REQUIRE(innermost_device("fault(loss=1%):dpdk:net_ring0?eal=-m 64: net_ring0 at 10.9.0.1") ==
          "dpdk:net_ring0?eal=-m 64");
  REQUIRE(limit_kind("fault(loss=5%):verbs:rxe0?gid=1") == LimitKind::rdma_adapter);
  REQUIRE(limit_kind("") == LimitKind::sockets);
  REQUIRE(limit_kind("fault(") == LimitKind::sockets);
}

TEST_CASE("both sides map one window, whose name is removed once both have it") {
  ShmWindow ours = ShmWindow::make(8192);
  const std::string name = ours.name();
  REQUIRE(has_name(name));
  REQUIRE_THROWS_AS(ShmWindow::open(name, 4096), Failure);
  const ShmWindow theirs = ShmWindow::open(name, 8192);
  REQUIRE(!has_name(name));
  ours.forget_name();
  ours.bytes()[5000] = std::byte{7};
  REQUIRE(theirs.bytes()[5000] == std::byte{7});
}

TEST_CASE("files that are not windows of this user are not opened") {
  for (const char* name :
       {"", "127.0.0.1:5", "urma_perf.", "urma_perf.0123456789abcdef", "urma_perf.../../etc/passwd",
        "../../etc/passwd", "urma_perf.0123456789ABCDEF"}) {
    CAPTURE(name);
    try {
      ShmWindow::open(name, 4096);
      FAIL("opened");
    } catch (const Failure& failure) {
      REQUIRE(std::string(failure.what()).find("Fix: ") != std::string::npos);
    }
  }
}

TEST_CASE("the file that a killed process has left is removed by the next process") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const ShmWindow window = ShmWindow::make(4096);
    (void)!::write(ends[1], window.name().data(), window.name().size());
    pause();
    _exit(0);
  }
  char made[64];
  const ssize_t length = ::read(ends[0], made, sizeof made);
  close(ends[0]);
  close(ends[1]);
  REQUIRE(length > 0);
  const std::string name(made, static_cast<size_t>(length));
  ShmWindow::make(4096);
  REQUIRE(has_name(name));  // its creator is alive
  end(child);
  REQUIRE(has_name(name));
  ShmWindow::make(4096);
  REQUIRE(!has_name(name));
}

}  // namespace urma::apps::perf
