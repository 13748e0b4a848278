// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <atomic>
#include <thread>

#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

#if !defined(__SANITIZE_THREAD__)  // the thread sanitizer starts no thread in a child
constexpr int cannot = 77;

// Runs `body` in a network namespace in which the interface lo is down. `body` returns 0 if all is
// well.
void where_lo_is_down(int (*body)()) {
  const int result = in_child([&] { return unshare(CLONE_NEWNET) != 0 ? cannot : body(); });
  if (result == cannot) {
    WARN("skipped: this process may not have a network namespace");
    return;
  }
  CHECK(result == 0);
}

bool says_lo_is_down(std::string_view message) {
  return message.find("lo is down") != std::string_view::npos &&
         message.find("Fix: ") != std::string_view::npos;
}

// Without this check, fourteen copies of this program, each in a namespace of its own, had not
// ended after 110 s.
TEST_CASE("tests report immediately that the interface lo is down") {
  where_lo_is_down([] {
    try {
      const Side side = Side::open("udp:");
    } catch (const std::runtime_error& error) {
      return says_lo_is_down(error.what()) ? 0 : 2;
    }
    return 1;
  });
}

TEST_CASE("an import from an address of this host says that the interface lo is down") {
  where_lo_is_down([] {
    Device device = urma::open("udp:127.0.0.5").value();
    const auto found = device.import("urma://127.0.0.6/nobody", 10ms);
    return !found && says_lo_is_down(found.error().message) ? 0 : 1;
  });
}
#endif

TEST_CASE("peers write to and read from a process that makes no call") {
  Side owner = Side::open("udp:");
  Side user = Side::open("udp:");
  const Imported remote = user.device.import(owner.line()).value();
  const auto bytes = bytes_like(700'000, 3);
  std::vector<std::byte> back(bytes.size());
  REQUIRE(run_one(user.jetty, write(bytes, remote.segment, 5)).ok());
  REQUIRE(run_one(user.jetty, read(std::span(back), remote.segment, 5)).ok());
  CHECK(back == bytes);
}

TEST_CASE("packets that the system refuses to send are counted") {
  Side user = Side::open("udp:127.0.0.1");
  REQUIRE(user.device.stats().value().send_failures == 0);
  // This is a broadcast address, to which a socket may send only with SO_BROADCAST.
  CHECK(user.device.import("urma://127.255.255.255:4792/x", 100ms).status() ==
        Status::peer_unreachable);
  const Statistics statistics = user.device.stats().value();
  CHECK(statistics.send_failures > 0);
  CHECK(statistics.unreachable == 0);
}

TEST_CASE("inlined devices work while they are polled") {
  const DeviceOptions options{.threads = Threads::inlined};
  Side a = Side::open("udp:", options);
  Side b = Side::open("udp:", options);
  const Imported to_b = a.device.import(b.line()).value();
  const Imported to_a = b.device.import(a.line()).value();
  std::atomic<int> failed{0};
  std::thread other([&] {
    for (int i = 0; i < 2000 && failed == 0;) {
      for (const Completion& completion : b.jetty.wait(patience)) {
        failed += !completion.ok();
        if (completion.operation != Operation::receive) continue;
        failed += b.jetty.post(write(b.segment.bytes().first(8), to_a.segment)
                                   .to(to_a.jetty)
                                   .immediate(completion.immediate)) != 1;
        ++i;
      }
    }
    // The last answers leave while this device is polled, and the completions of the other works
    // may already be there.
    while (!b.jetty.wait(20ms).empty()) {
    }
  });
  for (uint64_t i = 0; i < 2000; ++i) {
    REQUIRE(a.jetty.post(
                write(a.segment.bytes().first(8), to_b.segment).to(to_b.jetty).immediate(i)) == 1);
    bool answered = false;
    while (!answered) {
      const auto completions = a.jetty.wait(patience);
      REQUIRE_FALSE(completions.empty());
      for (const Completion& completion : completions) {
        answered =
            answered || (completion.operation == Operation::receive && completion.immediate == i);
      }
    }
  }
  other.join();
  CHECK(failed == 0);
}

TEST_CASE("close completes the works in flight, and later calls return closed") {
  const bool profile = GENERATE(false, true);
  Side owner = Side::open("udp:", {}, {.berths = 1, .receives = 1});
  Side user = Side::open("udp:", {.profile = profile}, {.berths = 256});
  const Imported remote = user.device.import(owner.line()).value();
  const auto bytes = bytes_like(100'000, 1);
  // Messages that are never received, and writes in flight.
  std::vector<Work> works;
  for (uint64_t i = 0; i < 100; ++i) {
    works.push_back(i % 2 ? send(std::span(bytes).first(100), remote.jetty)
                          : write(bytes, remote.segment));
  }
  REQUIRE(user.jetty.post(works) == works.size());
  user.device.close();
  std::vector<Completion> out(256);
  CHECK(user.jetty.poll(out) == works.size());
  CHECK(user.jetty.post(works[0]) == 0);
  CHECK(user.jetty.flush().status() == Status::closed);
  CHECK(user.device.jetty().status() == Status::closed);
  CHECK(user.device.allocate(1).status() == Status::closed);
  CHECK(user.device.import("urma://localhost/x").status() == Status::closed);
  CHECK(user.device.stats().status() == Status::closed);
  CHECK(user.segment.unregister().status() == Status::closed);
}

TEST_CASE("objects can be destroyed in any order") {
  for (int order = 0; order < 6; ++order) {
    Side owner = Side::open("udp:");
    auto user = std::make_unique<Side>(Side::open("udp:"));
    const Imported remote = user->device.import(owner.line()).value();
    const auto bytes = bytes_like(10'000, 1);
    std::optional<Device> device(std::move(user->device));
    std::optional<Jetty> jetty(std::move(user->jetty));
    std::optional<Segment> segment(std::move(user->segment));
    REQUIRE(jetty->post(write(bytes, remote.segment)) == 1);
    const auto end = [&](int which) {
      if (which == 0) device.reset();
      if (which == 1) jetty.reset();
      if (which == 2) segment.reset();
    };
    constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const int which : orders[order]) end(which);
  }
}

TEST_CASE("one process can have several devices, each with peers of its own") {
  std::vector<Side> sides;
  for (int i = 0; i < 4; ++i) sides.push_back(Side::open("udp:"));
  for (Side& from : sides) {
    for (Side& to : sides) {
      const Imported remote = from.device.import(to.line()).value();
      const auto bytes = bytes_like(1000, 4);
      CHECK(run_one(from.jetty, write(bytes, remote.segment)).ok());
    }
  }
  // A target that another device imported is refused.
  const Imported foreign = sides[0].device.import(sides[1].line()).value();
  RemoteSegment stranger = foreign.segment;
  stranger.peer.index += 500;
  const auto bytes = bytes_like(10, 4);
  REQUIRE(sides[0].jetty.post(write(bytes, stranger)) == 1);
  CHECK_FALSE(collect(sides[0].jetty, 1).at(0).ok());
}

TEST_CASE("invalid calls are refused with the reason and the fix") {
  const auto says = [](const Error& error, std::string_view what) {
    INFO(error.message);
    CHECK(error.message.find(what) != std::string::npos);
    CHECK(error.message.find("Fix: ") != std::string::npos);
  };
  says(urma::open("").error(), "driver's name is missing");
  says(urma::open("udp").error(), "a colon is missing");
  says(urma::open("udp:", {.operation_timeout = 1us}).error(), "operation_timeout");
  says(urma::open("udp:", {.idle_timeout = 1us}).error(), "idle_timeout");
  says(urma::open("udp:", {.congestion = "magic"}).error(), "aimd");
  says(urma::open("udp:", {.limits = {.jetties = 0}}).error(), "jetties from 1 to");
  Side side = Side::open("udp:", {.limits = {.jetties = 2, .segments = 1}});
  says(side.device.allocate(0).error(), "0 bytes");
  says(side.device.allocate(SIZE_MAX / 2).error(), "address space");
  says(side.device.allocate(4096).error(), "Limits::segments");
  says(side.device.jetty({.berths = 0}).error(), "at least 1");
  says(side.device.jetty({.berths = 1 << 20}).error(), "32768");
  auto second = side.device.jetty({.berths = 1}).value();
  says(side.device.jetty({.berths = 1}).error(), "Limits::jetties");
  says(side.device.jfc(0).error(), "the depth 0 is out of range");
  says(side.device.import("urma:/x").error(), "urma1");
  says(side.device.import("urma://").error(), "NAME");
  says(side.device.import("urma://localhost/../../etc/passwd").error(), "valid name");
  says(side.device.import("urma://no.such.host.invalid/x").error(), "not known");
  says(side.device.import("urma://[::1]/x").error(), "cannot be reached");
  says(side.device.publish("a/b", side.segment).error(), "not a valid name");
  says(side.device.unpublish("never").error(), "does not publish");
}

TEST_CASE("a device reports its settings and the source of each") {
  Device device =
      urma::open("fault(loss=5%):sim:settings?mtu=2K", {.operation_timeout = 3s}).value();
  const SettingList settings = device.settings().value();
  const auto is = [&](std::string_view name, std::string_view value, Origin origin) {
    size_t found = 0;
    for (const Setting& setting : settings) {
      CHECK_FALSE(setting.meaning.empty());
      if (setting.name != name) continue;
      ++found;
      CHECK(setting.value == value);
      CHECK(setting.origin == origin);
    }
    INFO(name);
    CHECK(found == 1);
  };
  is("fault.loss", "5%", Origin::device_string);
  is("fault.dup", "0%", Origin::by_default);
  is("sim.mtu", "2K", Origin::device_string);
  is("address", to_string(device.endpoint()), Origin::drawn);
  is("mtu", "2K", Origin::driver);
  is("lossless", "no", Origin::driver);
  is("scheduling_delay", "0s", Origin::driver);
  is("carries", "ecn", Origin::driver);
  is("port_meters", "none", Origin::driver);
  is("line_rate", "unknown", Origin::driver);
  is("virtual_time", "yes", Origin::driver);
  is("operation_timeout", "3s", Origin::option);
  is("congestion", "aimd", Origin::by_default);
  is("limits.peers", "1024", Origin::by_default);
  device.close();
  CHECK(device.settings().status() == Status::closed);
}

TEST_CASE("a device reaches itself, even before it has met any peer") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    Side side = Side::open(medium.text());
    const auto bytes = bytes_like(3000, 1);
    INFO(driver);
    REQUIRE(side.jetty.post(write(bytes, side.segment.local())) == 1);
    REQUIRE(side.jetty.post(write(bytes, side.segment.local()).to(side.jetty.local())) == 1);
    for (const Completion& completion : collect(side.jetty, 2)) CHECK(completion.ok());
    CHECK(std::equal(bytes.begin(), bytes.end(), side.segment.bytes().begin()));
  }
}

TEST_CASE("ids and tokens of objects that are created again differ") {
  Side side = Side::open("udp:");
  std::string last;
  for (int i = 0; i < 100; ++i) {
    const Segment segment = side.device.allocate(4096).value();
    CHECK(segment.descriptor() != last);
    last = segment.descriptor();
  }
  for (int i = 0; i < 5000; ++i) {
    const Jetty jetty = side.device.jetty({.berths = 1}).value();
    REQUIRE(number(jetty.id()) >= number(first_dynamic_jetty));
  }
}

}  // namespace
}  // namespace urma::test
