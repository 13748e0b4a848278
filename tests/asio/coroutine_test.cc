// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cstring>
#include <type_traits>

#include "tests/asio/helpers.h"
#include "urma/asio/keep.h"

namespace urma::test {
namespace {

// If the expression of a co_await contains a braced temporary, gcc 12 destroys its members twice.
// So each type that public calls take in braces either has a trivial destructor, or survives a
// second destruction.
template <class... Taken>
constexpr bool destroyed_without_effect = (std::is_trivially_destructible_v<Taken> && ...);
static_assert(destroyed_without_effect<Duration, Work, Buffer, RemoteSegment, RemoteJetty,
                                       Completion, Event, asio::JettyOptions, ImportOptions>);
static_assert(std::is_aggregate_v<asio::PostOptions>);

// The memory that works of a coroutine read, write and keep.
struct Ends {
  explicit Ends(std::string_view driver)
      : pair(driver),
        jetty(make(context, pair.here)),
        inbox(make(context, pair.there, {.receives = 16})),
        memory(pair.there.allocate(4096).value()),
        segment(import(pair.here, memory)),
        target(import(pair.here, inbox.jetty())) {}

  Pair pair;
  io_context context;
  asio::Jetty jetty;
  asio::Jetty inbox;
  Segment memory;
  RemoteSegment segment;
  RemoteJetty target;
  // The bytes of this string are the buffer of all works.
  std::shared_ptr<std::string> buffer = std::make_shared<std::string>(64, 'x');

  std::span<std::byte> bytes() const { return std::as_writable_bytes(std::span(*buffer)); }
};

TEST_CASE("an owner that a coroutine passes in braces is released once, with every call") {
  for (const std::string_view driver : media) {
    INFO(driver);
    Ends ends(driver);
    const std::weak_ptr<std::string> watched = ends.buffer;
    spawn(ends.context, [&]() -> awaitable<void> {
      const Work work = write(ends.bytes(), ends.segment);
      co_await ends.jetty.async_post(work, {.timeout = 1s, .keep = ends.buffer});
      CHECK(ends.buffer.use_count() == 1);
      co_await ends.jetty.async_post(work, {.timeout = 1s, .keep = ends.buffer},
                                     net::use_awaitable);
      CHECK(ends.buffer.use_count() == 1);
      const auto [error, done] = co_await ends.jetty.async_post(work, {.keep = ends.buffer}, tuple);
      CHECK((!error && done.ok()));
      CHECK(ends.buffer.use_count() == 1);
      co_await ends.jetty.async_post(write(ends.bytes(), ends.segment).tag(1),
                                     {.keep = ends.buffer});
      CHECK(ends.buffer.use_count() == 1);
      co_await ends.jetty.async_write(ends.bytes(), ends.segment, 64,
                                      {.timeout = 1s, .keep = ends.buffer});
      CHECK(ends.buffer.use_count() == 1);
      co_await ends.jetty.async_read(ends.bytes(), ends.segment, 64,
                                     {.timeout = 1s, .keep = ends.buffer});
      CHECK(ends.buffer.use_count() == 1);
      co_await ends.jetty.async_send(ends.bytes(), ends.target,
                                     {.timeout = 1s, .keep = ends.buffer});
      CHECK(ends.buffer.use_count() == 1);
      using namespace net::experimental::awaitable_operators;
      co_await (ends.jetty.async_write(ends.bytes(), ends.segment, 0, {.keep = ends.buffer},
                                       net::use_awaitable) &&
                ends.jetty.async_read(ends.bytes(), ends.segment, 0, {.keep = ends.buffer},
                                      net::use_awaitable));
      CHECK(ends.buffer.use_count() == 1);
      co_await ends.jetty.async_send(ends.bytes(), ends.target, {.timeout = 1s});
      co_await ends.jetty.async_send(ends.bytes(), ends.target, {});
      co_await ends.jetty.async_send(ends.bytes(), ends.target,
                                     asio::PostOptions{.keep = ends.buffer});
      CHECK(ends.buffer.use_count() == 1);
    });
    CHECK(run(ends.context));
    CHECK(ends.buffer.use_count() == 1);
    ends.buffer.reset();
    CHECK(watched.expired());
  }
}

TEST_CASE("an owner may be passed by copy, by move, as a temporary, and from a variable") {
  Ends ends("udp:");
  spawn(ends.context, [&]() -> awaitable<void> {
    const Work work = write(ends.bytes(), ends.segment);
    std::weak_ptr<int> last;
    const auto owner = [&] {
      auto made = std::make_shared<int>(1);
      last = made;
      return made;
    };
    co_await ends.jetty.async_post(work, {.keep = owner()});
    CHECK(last.expired());
    std::shared_ptr<int> moved = owner();
    co_await ends.jetty.async_post(work, {.keep = std::move(moved)});
    CHECK(last.expired());
    co_await ends.jetty.async_post(work, {.keep = std::shared_ptr<const void>(owner())});
    CHECK(last.expired());
    co_await ends.jetty.async_post(work, {.keep = std::make_unique<std::string>("converted")});
    co_await ends.jetty.async_post(work, {.keep = nullptr});
    {
      asio::PostOptions options{.timeout = 1s, .keep = owner()};
      co_await ends.jetty.async_post(work, options);
      CHECK(last.use_count() == 1);
      co_await ends.jetty.async_post(work, std::move(options));
      CHECK(last.expired());
    }
    // With `deferred`: the owner is released with an operation that is never started, and after
    // each start.
    {
      const auto kept = owner();
      auto later = ends.jetty.async_post(work, {.keep = kept});
      CHECK(last.use_count() == 2);
      co_await std::move(later);
    }
    CHECK(last.expired());
    {
      const auto kept = owner();
      (void)ends.jetty.async_post(work, {.keep = kept});
      CHECK(last.use_count() == 1);
    }
  });
  CHECK(run(ends.context));
  CHECK(ends.buffer.use_count() == 1);
}

TEST_CASE("an owner is shared while its work is outstanding, and released when that ends") {
  Ends ends("udp:");
  // This Jetty has one buffer, and no operation takes the message in it, so further messages wait
  // at their sender.
  asio::Jetty busy = make(ends.context, ends.pair.there, {.receives = 1});
  const RemoteJetty waits = import(ends.pair.here, busy.jetty());
  spawn(ends.context, [&]() -> awaitable<void> {
    for (int sent = 0; sent < 4; ++sent) {
      const auto [error, done] = co_await ends.jetty.async_send(
          ends.bytes(), waits, {.timeout = 50ms, .keep = ends.buffer}, tuple);
      // The first message takes the buffer; the others time out and remain outstanding.
      CHECK(error == (sent == 0 ? error_code() : make_error_code(Status::timed_out)));
      CHECK(ends.buffer.use_count() == 1 + sent);
    }
    ends.jetty.cancel();
    CHECK(ends.buffer.use_count() == 1);
  });
  CHECK(run(ends.context));
  CHECK(ends.buffer.use_count() == 1);
}

TEST_CASE("a bytewise copy of a Keep owns nothing") {
  const auto owner = std::make_shared<int>(7);
  using asio::Keep;
  {
    Keep original = owner;
    CHECK(owner.use_count() == 2);
    // Copies the bytes, as gcc 12 does in coroutines.
    alignas(Keep) std::byte place[sizeof(Keep)];
    std::memcpy(place, static_cast<const void*>(&original), sizeof place);
    Keep& copy = *reinterpret_cast<Keep*>(place);
    {
      const Keep from_copy(copy);
      const Keep from_move(std::move(copy));
      const std::shared_ptr<const void> shared = std::move(copy);
      CHECK(owner.use_count() == 5);
    }
    copy.~Keep();
    CHECK(owner.use_count() == 2);
    Keep moved(std::move(original));
    CHECK(owner.use_count() == 2);
    original = moved;
    CHECK(owner.use_count() == 3);
    moved = {};
    original = Keep(owner);
    CHECK(owner.use_count() == 2);
    CHECK(static_cast<std::shared_ptr<const void>>(original) == owner);
  }
  CHECK(owner.use_count() == 1);
}

}  // namespace
}  // namespace urma::test
