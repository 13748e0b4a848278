// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/bind_cancellation_slot.hpp>

#include "tests/asio/helpers.h"

namespace urma::test {
namespace {

asio::Events events_of(io_context& context, Device& device) {
  return asio::Events::make(context.get_executor(), device).value();
}

TEST_CASE("a coroutine gets an event when a peer leaves, and when the device closes") {
  for (const std::string_view driver : media) {
    Pair pair(driver);
    io_context context;
    std::vector<EventKind> told;
    asio::Events events = events_of(context, pair.here);
    {
      Device leaving = urma::open(pair.medium.text()).value();
      std::array<std::byte, 8> buffer;
      urma::Jetty there = leaving.jetty({.receives = 1}).value();
      REQUIRE(there.receive(buffer));
      asio::Jetty jetty = make(context, pair.here);
      spawn(context, [&]() -> awaitable<void> {
        co_await jetty.async_send({}, import(pair.here, there), net::use_awaitable);
        leaving.close();
        while (told.empty() || told.back() != EventKind::closed) {
          const Event event = co_await events.async_wait_event(net::use_awaitable);
          told.push_back(event.kind);
          if (event.kind == EventKind::peer_left) pair.here.close();
        }
      });
      CHECK(run(context));
    }
    CHECK(told == std::vector{EventKind::peer_left, EventKind::closed});
  }
}

TEST_CASE("waiting for an event ends by time-out, by cancellation, and with its Events object") {
  using boost::system::errc::operation_canceled;
  Pair pair("cxl:");
  io_context context;
  std::vector<error_code> ends;
  const auto note = [&](error_code error, const Event&) { ends.push_back(error); };
  net::cancellation_signal signal;
  {
    asio::Events events = events_of(context, pair.here);
    events.async_wait_event(1ms, note);
    CHECK(run(context));
    CHECK(ends.back() == Status::timed_out);
    events.async_wait_event(net::bind_cancellation_slot(signal.slot(), note));
    context.restart();
    context.poll();
    CHECK(ends.size() == 1);
    signal.emit(net::cancellation_type::total);
    CHECK(run(context));
    REQUIRE(ends.size() == 2);
    CHECK(ends.back() == operation_canceled);
    events.async_wait_event(note);
    events.async_wait_event(note);
  }
  CHECK(run(context));
  REQUIRE(ends.size() == 4);
  CHECK(ends.back() == operation_canceled);
}

TEST_CASE("if several coroutines wait for events, each event reaches one of them") {
  Pair pair("cxl:");
  io_context context;
  asio::Events events = events_of(context, pair.here);
  size_t left = 0;
  const auto count = [&](error_code error, const Event& event) {
    REQUIRE_FALSE(error);
    left += event.kind == EventKind::peer_left ? event.count : 0;
  };
  for (int i = 0; i < 3; ++i) events.async_wait_event(count);
  for (int i = 0; i < 3; ++i) {
    Device leaving = urma::open(pair.medium.text()).value();
    std::array<std::byte, 8> buffer;
    urma::Jetty there = leaving.jetty({.receives = 1}).value();
    REQUIRE(there.receive(buffer));
    asio::Jetty jetty = make(context, pair.here);
    bool sent = false;
    jetty.async_send({}, import(pair.here, there), [&](error_code, Completion) { sent = true; });
    REQUIRE(run_until(context, [&] { return sent; }));
    leaving.close();
    const size_t before = left;
    REQUIRE(run_until(context, [&] { return left > before; }));
  }
  CHECK(left == 3);
}

TEST_CASE("a destroyed context destroys a coroutine that waits for events") {
  Pair pair("cxl:");
  const auto witness = std::make_shared<int>(0);
  {
    io_context context;
    const auto events = std::make_shared<asio::Events>(events_of(context, pair.here));
    spawn(context, [events, witness]() -> awaitable<void> {
      co_await events->async_wait_event(net::use_awaitable);
    });
    context.run_for(10ms);
  }
  CHECK(witness.use_count() == 1);
}

}  // namespace
}  // namespace urma::test
