// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <boost/asio/use_future.hpp>
#include <csignal>
#include <thread>

#include "tests/asio/helpers.h"

namespace urma::test {
namespace {

TEST_CASE("a destroyed Jetty ends its operations and releases their memory") {
  for (const std::string_view driver : media) {
    Pair pair(driver);
    io_context context;
    urma::Jetty deaf = pair.there.jetty({.receives = 4}).value();
    const RemoteJetty to = import(pair.here, deaf);
    int cancelled = 0;
    {
      const auto text = std::make_unique<std::string>("lent");
      asio::Jetty jetty = make(context, pair.here, {.berths = 4, .receives = 4});
      for (int i = 0; i < 10; ++i) {
        jetty.async_send(bytes_of(*text), to, [&](error_code error, const Completion& done) {
          CHECK_FALSE(done.ok());
          cancelled += error == boost::system::errc::operation_canceled;
        });
      }
      jetty.async_receive([&](error_code error, const asio::Arrival& one) {
        CHECK(one.bytes().empty());
        cancelled += error == boost::system::errc::operation_canceled;
      });
      context.run_for(10ms);
      CHECK(cancelled == 0);
    }
    CHECK(run(context));
    CHECK(cancelled == 11);
  }
}

TEST_CASE("operations on a moved-from Jetty or Events end as closed") {
  Pair pair("udp:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here, {.receives = 2});
  asio::Events events = asio::Events::make(context.get_executor(), pair.here).value();
  const RemoteJetty to = import(pair.here, jetty.jetty());
  {
    const asio::Jetty moved_to = std::move(jetty);
    const asio::Events events_moved_to = std::move(events);
  }
  int closed = 0;
  const auto worked = [&](error_code error, const Completion& done) {
    closed += error == Status::closed && done.status == Status::closed;
  };
  const auto arrived = [&](error_code error, const asio::Arrival& one) {
    closed += error == Status::closed && one.completion().status == Status::closed;
  };
  const auto happened = [&](error_code error, const Event& event) {
    closed += error == Status::closed && event.kind == EventKind::closed;
  };
  const auto text = std::make_shared<std::string>("never sent");
  std::array<std::byte, 8> memory;
  jetty.async_post(urma::send(bytes_of(*text), to), worked);
  jetty.async_post(urma::send(bytes_of(*text), to), {.timeout = 1s, .keep = text}, worked);
  jetty.async_send(bytes_of(*text), to, worked);
  jetty.async_write(bytes_of(*text), RemoteSegment{}, 0, worked);
  jetty.async_read(memory, RemoteSegment{}, 0, worked);
  jetty.async_receive(arrived);
  jetty.async_receive(1s, arrived);
  events.async_wait_event(happened);
  events.async_wait_event(1s, happened);
  CHECK(closed == 0);  // handlers do not run within the calls that start the operations
  CHECK(run(context));
  CHECK(closed == 9);
  CHECK(text.use_count() == 1);
  jetty.cancel();
  CHECK(jetty.get_executor() == context.get_executor());
  CHECK(events.get_executor() == context.get_executor());
  CHECK(jetty.jetty().descriptor() == "");
  // The object may be assigned to.
  jetty = make(context, pair.here);
  CHECK(jetty.jetty().descriptor() != "");
}

TEST_CASE("a negative time-out is refused, and nothing is posted") {
  Pair pair("udp:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here, {.receives = 2});
  asio::Events events = asio::Events::make(context.get_executor(), pair.here).value();
  Segment memory = pair.there.allocate(64).value();
  const RemoteSegment there = import(pair.here, memory);
  const auto text = std::make_shared<std::string>("never written");
  int refused = 0;
  for (const Duration limit : {Duration(-1ns), Duration(-1s), Duration::min()}) {
    jetty.async_write(bytes_of(*text), there, 0, {.timeout = limit, .keep = text},
                      [&](error_code error, const Completion& done) {
                        refused += error == Status::bad_work && done.status == Status::bad_work;
                      });
    jetty.async_receive(limit, [&](error_code error, const asio::Arrival&) {
      refused += error == Status::invalid_argument;
    });
    events.async_wait_event(limit, [&](error_code error, const Event&) {
      refused += error == Status::invalid_argument;
    });
  }
  CHECK(run(context));
  CHECK(refused == 9);
  CHECK(text.use_count() == 1);
  CHECK(pair.here.stats().value().works == 0);
  // A time-out of zero is valid: the work is posted, and cancelled unless it ends immediately.
  bool ended = false;
  jetty.async_write(
      bytes_of(*text), there, 0, {.timeout = 0s},
      [&](error_code error, const Completion&) { ended = !error || error == Status::timed_out; });
  CHECK(run(context));
  CHECK(ended);
}

TEST_CASE("arrivals outlive their Jetty") {
  Pair pair("cxl:");
  asio::Arrival kept;
  {
    io_context context;
    asio::Jetty receiver = make(context, pair.there, {.receives = 2});
    asio::Jetty sender = make(context, pair.here);
    sender.async_send(bytes_of("text"), import(pair.here, receiver.jetty()), net::detached);
    receiver.async_receive([&](error_code, asio::Arrival one) { kept = std::move(one); });
    CHECK(run(context));
  }
  CHECK(text_of(kept) == "text");
}

// This is an echo without a copy: an arrival is kept until its answer has left, and then returned
// to the Jetty, which is running at that moment.
TEST_CASE("a work may keep an arrival of its own Jetty, however the work ends") {
  for (const bool cancelled : {false, true}) {
    Pair pair("cxl:");
    io_context context;
    urma::Jetty deaf = pair.there.jetty({.receives = 1}).value();
    const RemoteJetty nowhere = import(pair.here, deaf);
    asio::Jetty here = make(context, pair.here, {.berths = 1, .receives = 4});
    asio::Jetty there = make(context, pair.there, {.receives = 4});
    const RemoteJetty back = import(pair.here, there.jetty());
    int arrived = 0;
    int ended = 0;
    const auto count = [&](error_code, const Completion&) { ++ended; };
    for (int i = 0; i < 3; ++i) {
      there.async_send(bytes_of("ping"), import(pair.there, here.jetty()), net::detached);
      here.async_receive([&](error_code, asio::Arrival one) {
        ++arrived;
        const auto kept = std::make_shared<asio::Arrival>(std::move(one));
        here.async_send(kept->bytes(), cancelled ? nowhere : back, {.keep = kept}, count);
      });
      if (!cancelled) there.async_receive(net::detached);
    }
    CHECK(run_until(context, [&] { return arrived == 3; }));
    if (cancelled) {
      CHECK(ended == 0);
      here.cancel();
    }
    CHECK(run(context));
    CHECK(ended == 3);
  }
}

TEST_CASE("a second object for a device's events, and too many berths, are refused") {
  Pair pair("cxl:");
  io_context context;
  const auto first = asio::Events::make(context.get_executor(), pair.here);
  REQUIRE(first.ok());
  const auto second = asio::Events::make(context.get_executor(), pair.here);
  CHECK(second.status() == Status::no_resources);
  CHECK_FALSE(asio::Jetty::make(context.get_executor(), pair.here, {.berths = UINT32_MAX}).ok());
}

TEST_CASE("a destroyed context destroys coroutines that own their Jetties") {
  for (const std::string_view driver : media) {
    Pair pair(driver);
    urma::Jetty deaf = pair.there.jetty({.receives = 4}).value();
    const RemoteJetty to = import(pair.here, deaf);
    const auto witness = std::make_shared<int>(0);
    {
      io_context context;
      for (int i = 0; i < 3; ++i) {
        spawn(context, [](auto& where, auto& device, auto target, auto own) -> awaitable<void> {
          const std::string text = "lent";
          asio::Jetty jetty = make(where, device, {.receives = 2});
          if (*own == 0) co_await jetty.async_send(bytes_of(text), target);
          co_await jetty.async_receive(1h);
        }(context, pair.here, to, witness));
      }
      context.run_for(10ms);
      CHECK(witness.use_count() == 4);
    }
    CHECK(witness.use_count() == 1);
  }
}

TEST_CASE("a device that closes ends operations, and later ones end as closed") {
  for (const std::string_view driver : media) {
    Pair pair(driver);
    io_context context;
    urma::Jetty deaf = pair.there.jetty({.receives = 4}).value();
    const RemoteJetty to = import(pair.here, deaf);
    asio::Jetty jetty = make(context, pair.here, {.berths = 2, .receives = 2});
    std::vector<error_code> ends;
    const auto note = [&](error_code error, const auto&) { ends.push_back(error); };
    for (int i = 0; i < 4; ++i) jetty.async_send(bytes_of("lent"), to, note);
    jetty.async_receive([&](error_code error, const asio::Arrival& arrival) {
      ends.push_back(error);
      CHECK(error == arrival.completion().status);
    });
    context.run_for(5ms);
    std::thread closer([&] { pair.here.close(); });
    CHECK(run(context));
    closer.join();
    CHECK(ends.size() == 5);
    for (const error_code& error : ends) CHECK(error);
    jetty.async_send(bytes_of("late"), to, note);
    jetty.async_receive(note);
    CHECK(run(context));
    REQUIRE(ends.size() == 7);
    CHECK(ends[5] == Status::closed);
    CHECK(ends[6] == Status::closed);
    CHECK(asio::Jetty::make(context.get_executor(), pair.here).status() == Status::closed);
  }
}

TEST_CASE("a Jetty that cannot be waited for is refused") {
  io_context context;
  Device inlined = urma::open("udp:", {.threads = Threads::inlined}).value();
  const auto refused = asio::Jetty::make(context.get_executor(), inlined);
  CHECK(refused.status() == Status::unsupported);
  Device device = urma::open("udp:").value();
  CHECK(asio::Jetty::make(context.get_executor(), device, {.berths = 0}).status() ==
        Status::invalid_argument);
  asio::Jetty jetty = make(context, device);
  jetty.async_receive(
      [](error_code error, const asio::Arrival&) { CHECK(error == Status::unsupported); });
  CHECK(run(context));
}

#if !defined(__SANITIZE_THREAD__)  // the thread sanitizer starts no thread in a child
TEST_CASE("operations to a killed process end with an error") {
  for (const std::string_view driver : media) {
    const Medium medium(driver);
    int lines[2];
    REQUIRE(pipe(lines) == 0);
    const pid_t child = fork();
    if (child == 0) {
      io_context context;
      Device device = urma::open(medium.text()).value();
      asio::Jetty jetty = make(context, device, {.receives = 8});
      const std::string line = jetty.jetty().descriptor();
      if (::write(lines[1], line.data(), line.size()) < 0) _exit(1);
      for (;;) {
        jetty.async_receive([](error_code, const asio::Arrival&) {});
        run(context);
      }
    }
    std::string line(4096, 0);
    const ssize_t got = ::read(lines[0], line.data(), line.size());
    line.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    io_context context;
    Device device = urma::open(medium.text(), {.operation_timeout = 300ms}).value();
    asio::Jetty jetty = make(context, device);
    int sent = 0;
    error_code end;
    spawn(context, [&]() -> awaitable<void> {
      const RemoteJetty to = device.import(line).value().jetty;
      while (!end) {
        if (sent == 20) kill(child, SIGKILL);
        const auto [error, done] = co_await jetty.async_send(bytes_of("text"), to, tuple);
        end = error;
        sent += !error;
      }
    });
    CHECK(run(context));
    CHECK(sent >= 20);
    const bool told =
        end == Status::unknown || end == Status::peer_unreachable || end == Status::peer_restarted;
    INFO(end.message());
    CHECK(told);
    waitpid(child, nullptr, 0);
    for (const int one : lines) close(one);
  }
}
#endif

}  // namespace
}  // namespace urma::test
