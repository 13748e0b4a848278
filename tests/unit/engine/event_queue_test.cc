// SPDX-License-Identifier: Apache-2.0
#include "engine/event_queue.h"

#include <poll.h>

#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::EventQueue;

constexpr uint32_t gathered = EventQueue::most_gathered;
constexpr uint32_t room = EventQueue::capacity;

Event lost_path(uint32_t path, Status status = Status::ok) {
  return {.kind = EventKind::path_lost, .status = status, .path = path};
}

std::vector<Event> all_of(EventQueue& queue) {
  std::vector<Event> out(2 * room);
  out.resize(queue.take(out));
  return out;
}

bool readable(const EventQueue& queue) {
  pollfd one{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

// Fills the ring: each pass hands over as many different events as can be gathered.
void fill(EventQueue& queue) {
  for (uint32_t path = 0; path < room; ++path) {
    queue.raise(lost_path(path));
    if ((path + 1) % gathered == 0) queue.hand_over(Time{});
  }
}

TEST_CASE("events that are alike within a millisecond are one, with their count and last reason") {
  EventQueue queue;
  CHECK(queue.next_deadline() == never);
  queue.raise(lost_path(1, Status::timed_out));
  queue.deliver(Time(5ms));
  queue.raise(lost_path(1, Status::timed_out));
  queue.raise(lost_path(1, Status::io_error));
  CHECK(queue.next_deadline() == Time(6ms));
  queue.deliver(Time(6ms) - Duration(1));
  CHECK(all_of(queue).size() == 1);
  queue.deliver(Time(6ms));
  const auto events = all_of(queue);
  REQUIRE(events.size() == 1);
  CHECK(events[0].count == 2);
  CHECK(events[0].status == Status::io_error);
  CHECK(queue.next_deadline() == never);
}

TEST_CASE("another event of the same peer between two that are alike keeps them apart") {
  EventQueue queue;
  for (const uint32_t path : {1u, 2u, 1u}) queue.raise(lost_path(path));
  queue.hand_over(Time{});
  const auto events = all_of(queue);
  REQUIRE(events.size() == 3);
  CHECK(events[1].path == 2);
  CHECK(events[2].path == 1);
}

TEST_CASE("events beyond those that can be gathered are counted as missed") {
  EventQueue queue;
  for (uint32_t path = 0; path < gathered + 3; ++path) queue.raise(lost_path(path));
  queue.hand_over(Time{});
  const auto events = all_of(queue);
  REQUIRE(events.size() == gathered + 1);
  CHECK(events.back().kind == EventKind::missed);
  CHECK(events.back().count == 3);
  queue.raise(lost_path(1));
  queue.hand_over(Time{});
  CHECK(all_of(queue).size() == 1);
}

TEST_CASE("kinds of events that the application has not asked for are dropped") {
  EventQueue queue({EventKind::path_lost});
  REQUIRE(queue.make_descriptor());
  queue.raise({.kind = EventKind::peer_left});
  queue.hand_over(Time{});
  CHECK_FALSE(readable(queue));
  for (uint32_t path = 0; path < gathered + 3; ++path) queue.raise(lost_path(path));
  queue.hand_over(Time{});
  CHECK(readable(queue));
  CHECK(all_of(queue).size() == gathered);  // `missed` is not among the kinds
}

TEST_CASE("a Jetty that is destroyed takes along the events that are still gathered") {
  EventQueue queue;
  for (const uint32_t id : {8u, 7u, 8u, 9u}) {
    queue.raise({.kind = EventKind::jetty_error, .jetty = JettyId(id)});
    queue.raise(lost_path(id));  // so that those of Jetty 8 are not counted as one
  }
  queue.forget(JettyId(8));
  queue.hand_over(Time{});
  const auto events = all_of(queue);
  REQUIRE(events.size() == 6);
  for (const Event& event : events) CHECK(event.jetty != JettyId(8));
  queue.raise({.kind = EventKind::jetty_error, .jetty = JettyId(8)});
  queue.forget(JettyId(8));
  CHECK(queue.next_deadline() == never);
}

TEST_CASE("events that find no room in the ring wait until others have been taken") {
  EventQueue queue;
  fill(queue);
  CHECK_FALSE(queue.full());
  queue.raise(lost_path(room));
  queue.deliver(Time(1s));
  CHECK(queue.full());
  CHECK(queue.next_deadline() == never);
  std::vector<Event> some(3);
  REQUIRE(queue.take(some) == 3);
  CHECK(some[2].path == 2);
  queue.hand_over(Time(1s));
  CHECK_FALSE(queue.full());
  const auto events = all_of(queue);
  REQUIRE(events.size() == room - 2);
  CHECK(events.front().path == 3);
  CHECK(events.back().path == room);
}

TEST_CASE("the descriptor is readable while there are events to take") {
  EventQueue queue;
  queue.raise(lost_path(1));
  queue.hand_over(Time{});
  REQUIRE(queue.make_descriptor());
  CHECK(readable(queue));
  queue.raise(lost_path(2));
  queue.hand_over(Time{});
  Event one;
  queue.quieten();
  REQUIRE(queue.take({&one, 1}) == 1);
  CHECK(readable(queue));
  queue.quieten();
  REQUIRE(queue.take({&one, 1}) == 1);
  CHECK(one.path == 2);
  CHECK_FALSE(readable(queue));
  CHECK(queue.take({&one, 1}) == 0);
}

TEST_CASE("two queues can share a descriptor, which the one that made it closes") {
  EventQueue first;
  REQUIRE(first.make_descriptor());
  {
    EventQueue second;
    second.raise(lost_path(1));
    second.hand_over(Time{});
    second.share_descriptor(first);
    CHECK(readable(first));
    Event one;
    first.quieten();
    // An event that comes meanwhile stays visible when the other queue is read.
    first.raise(lost_path(4));
    first.hand_over(Time{});
    REQUIRE(second.take({&one, 1}) == 1);
    CHECK(readable(first));
    first.quieten();
    REQUIRE(first.take({&one, 1}) == 1);
    CHECK_FALSE(readable(first));
    second.raise(lost_path(2));
    second.hand_over(Time{} + std::chrono::milliseconds(2));
    CHECK(readable(first));
    first.quieten();
    REQUIRE(second.take({&one, 1}) == 1);
  }
  first.raise(lost_path(3));
  first.hand_over(Time{} + std::chrono::milliseconds(4));
  CHECK(readable(first));
}

TEST_CASE("a set of kinds of events has those that are listed, and closed") {
  constexpr auto invalid = static_cast<EventKind>(77);
  CHECK((EventKinds().has(EventKind::closed) && EventKinds().has(EventKind::peer_left)));
  const EventKinds some{EventKind::jetty_error, invalid};
  CHECK((some.has(EventKind::jetty_error) && some.has(EventKind::closed)));
  CHECK_FALSE((some.has(EventKind::peer_left) || some.has(EventKind::missed)));
  CHECK_FALSE((some.has(invalid) || EventKinds().has(invalid)));
}

}  // namespace
}  // namespace urma::test
