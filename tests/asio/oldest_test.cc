// SPDX-License-Identifier: Apache-2.0
// Tests the code for Boost 1.74, which has no cancellation slots, and has `awaitable` where newer
// versions have `deferred`. The header is compiled as if the installed Boost were that old.
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>

#include "tests/asio/echo.h"

namespace urma::test {
namespace {

#if defined(URMA_ASIO_DEFERRED) || defined(URMA_ASIO_CANCELLATION)
#error "compile this with URMA_ASIO_BOOST_VERSION=107400"
#endif

#if defined(BOOST_ASIO_HAS_CO_AWAIT)
TEST_CASE("coroutines echo messages and write and read memory without naming a token") {
  for (const std::string_view driver : media) {
    INFO(driver);
    echo_and_access(driver, 20);
  }
}

TEST_CASE("an owner that is kept for an awaitable is released once") {
  Pair pair("udp:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here);
  Segment memory = pair.there.allocate(64).value();
  const RemoteSegment segment = import(pair.here, memory);
  const auto buffer = std::make_shared<std::string>("kept");
  spawn(context, [&]() -> awaitable<void> {
    co_await jetty.async_write(bytes_of(*buffer), segment, 0, {.timeout = 10s, .keep = buffer});
    CHECK(buffer.use_count() == 1);
    co_await jetty.async_post(write(bytes_of(*buffer), segment), {.keep = buffer});
    CHECK(buffer.use_count() == 1);
    error_code error;
    co_await jetty.async_write(bytes_of(*buffer), segment, 62, {.keep = buffer},
                               net::redirect_error(net::use_awaitable, error));
    CHECK(error == Status::remote_access);
    CHECK(buffer.use_count() == 1);
  });
  CHECK(run(context));
  CHECK(buffer.use_count() == 1);
}

TEST_CASE("an event and an arrival can be awaited with a time-out") {
  Pair pair("cxl:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here, {.receives = 1});
  asio::Events events = asio::Events::make(context.get_executor(), pair.here).value();
  spawn(context, [&]() -> awaitable<void> {
    error_code error;
    const auto into = [&] { return net::redirect_error(net::use_awaitable, error); };
    co_await jetty.async_receive(1ms, into());
    CHECK(error == boost::system::errc::timed_out);
    co_await events.async_wait_event(1ms, into());
    CHECK(error == Status::timed_out);
    co_await asio::async_import(context.get_executor(), pair.here, "urma1 nonsense", into());
    CHECK(error == boost::system::errc::invalid_argument);
    pair.here.close();
    const Event event = co_await events.async_wait_event();
    CHECK(event.kind == EventKind::closed);
  });
  CHECK(run(context));
}
#endif

// A handler with its own allocator, which counts allocations.
struct Counted {
  using allocator_type = Counting<void*>;
  allocator_type get_allocator() const { return allocator_type(allocations); }
  void operator()(error_code error, const Completion& done) const {
    called[0] += !error && done.ok() && allocations->live == 0;
  }

  Allocations* allocations;
  int* called;
};

TEST_CASE("functions, strands, allocators and futures are completed once") {
  Pair pair("udp:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here);
  Segment memory = pair.there.allocate(64).value();
  const RemoteSegment segment = import(pair.here, memory);
  const auto bytes = bytes_like(8, 1);
  const Work work = write(bytes, segment).tag(77);
  int called = 0;
  Allocations allocations;
  jetty.async_post(
      work, [&](error_code error, const Completion& done) { called += !error && done.tag == 77; });
  const auto strand = net::make_strand(context);
  jetty.async_post(work, net::bind_executor(strand, [&](error_code, const Completion&) {
                     called += strand.running_in_this_thread();
                   }));
  jetty.async_write(
      bytes, segment, 0,
      [one = std::make_unique<int>(1), &called](error_code, const Completion&) { called += *one; });
  auto future = jetty.async_post(work, net::use_future);
  CHECK(run(context));
  jetty.async_post(work, Counted{&allocations, &called});
  CHECK(allocations.live == 1);
  CHECK(run(context));
  CHECK(allocations.live == 0);
  CHECK(future.get().ok());
  CHECK(called == 4);
}

TEST_CASE("operations end by time-out, by cancel, and with their Jetty") {
  Pair pair("udp:");
  io_context context;
  urma::Jetty deaf = pair.there.jetty({.receives = 4}).value();  // this Jetty has posted no buffer
  const RemoteJetty to = import(pair.here, deaf);
  const auto text = std::make_shared<std::string>("kept");
  std::vector<error_code> ends;
  const auto note = [&](error_code error, const auto&) { ends.push_back(error); };
  {
    asio::Jetty jetty = make(context, pair.here, {.berths = 1, .receives = 1});
    jetty.async_send(bytes_of(*text), to, {.timeout = 10ms, .keep = text}, note);
    CHECK(run(context));
    REQUIRE(ends.size() == 1);
    CHECK(ends[0] == Status::timed_out);
    CHECK(text.use_count() == 2);  // the work may still read it
    jetty.async_send(bytes_of(*text), to, note);
    jetty.async_receive(note);
    jetty.cancel();
    CHECK(text.use_count() == 1);
    CHECK(run(context));
    REQUIRE(ends.size() == 3);
    jetty.async_receive(note);
  }
  CHECK(run(context));
  REQUIRE(ends.size() == 4);
  for (size_t i = 1; i < 4; ++i) CHECK(ends[i] == boost::system::errc::operation_canceled);
}

}  // namespace
}  // namespace urma::test
