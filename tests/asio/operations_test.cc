// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <map>
#include <thread>

#include "tests/asio/echo.h"

namespace urma::test {
namespace {

TEST_CASE("coroutines echo messages, write and read memory") {
  for (const std::string_view driver : media) {
    INFO(driver);
    echo_and_access(driver, 100);
  }
}

TEST_CASE("every kind of completion token is completed once") {
  Pair pair("udp:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here);
  Segment memory = pair.there.allocate(64).value();
  const RemoteSegment segment = import(pair.here, memory);
  const auto bytes = bytes_like(8, 1);
  int called = 0;
  const Work work = write(bytes, segment).tag(77);

  bool within = true;
  jetty.async_post(work, [&](error_code error, const Completion& done) {
    CHECK_FALSE(within);
    called += !error && done.tag == 77 && done.operation == urma::Operation::write;
  });
  within = false;
  const auto strand = net::make_strand(context);
  jetty.async_post(work, net::bind_executor(strand, [&](error_code, const Completion&) {
                     called += strand.running_in_this_thread();
                   }));
  Allocations allocations;
  const Counting<void*> counting(&allocations);
  jetty.async_post(work, net::bind_allocator(counting, [&](error_code, const Completion&) {
                     called += allocations.live == 0;
                   }));
  // A handler that can only be moved.
  jetty.async_write(
      bytes, segment, 0,
      [one = std::make_unique<int>(1), &called](error_code, const Completion&) { called += *one; });
  auto later = jetty.async_write(bytes, segment, 8);
  std::move(later)([&](error_code error, const Completion&) { called += !error; });
  spawn(context, [&]() -> awaitable<void> {
    const auto [error, done] = co_await jetty.async_post(work, tuple);
    called += !error && done.ok();
    // The target refuses this work: the error is thrown, or passed to the handler.
    const Work outside = write(bytes, segment, 60);
    try {
      co_await jetty.async_post(outside, net::use_awaitable);
    } catch (const boost::system::system_error& e) {
      called += e.code() == Status::remote_access;
    }
    const auto [refused, how] = co_await jetty.async_post(outside, tuple);
    called +=
        refused == boost::system::errc::permission_denied && how.status == Status::remote_access;
  });
  auto future = jetty.async_post(work, net::use_future);
  CHECK(run(context));
  CHECK(future.get().ok());
  CHECK(called == 8);
  CHECK((allocations.live == 0 && allocations.ever > 0));
}

TEST_CASE("a Jetty without a pending wait does not keep its context running") {
  Pair pair("cxl:");
  io_context context;
  asio::Jetty jetty = make(context, pair.here, {.receives = 2});
  CHECK(run(context));
  bool told = false;
  jetty.async_receive(1ms, [&](error_code error, const asio::Arrival&) {
    told = error == boost::system::errc::timed_out;
  });
  CHECK(run(context));
  CHECK(told);
}

TEST_CASE("messages and immediates that no operation takes wait, and slow down their senders") {
  constexpr uint64_t count = 500;
  for (const std::string_view driver : media) {
    Pair pair(driver);
    io_context context;
    asio::Jetty receiver = make(context, pair.there, {.receives = 4, .message_bytes = 64});
    asio::Jetty sender = make(context, pair.here, {.berths = 3});
    Segment memory = pair.there.allocate(8 * count).value();
    const RemoteJetty to = import(pair.here, receiver.jetty());
    const RemoteSegment segment = import(pair.here, memory);
    std::vector<uint64_t> order;
    std::vector<uint64_t> values(count);
    for (uint64_t i = 0; i < count; ++i) {
      values[i] = i;
      const Buffer halves[] = {{&values[i], 4}, {reinterpret_cast<char*>(&values[i]) + 4, 4}};
      // The array of buffers is destroyed before most of the works have a berth.
      const Work work = i % 2 == 0 ? send(halves, to).tag(i)
                                   : write(halves, segment, 8 * i).to(to).immediate(i).tag(i);
      sender.async_post(work, [&](error_code error, const Completion& done) {
        CHECK_FALSE(error);
        order.push_back(done.tag);
      });
    }
    context.run_for(20ms);
    CHECK(order.size() < count);
    uint64_t taken = 0;
    std::vector<bool> seen(count);
    spawn(context, [&]() -> awaitable<void> {
      for (; taken < count; ++taken) {
        const asio::Arrival one = co_await receiver.async_receive();
        uint64_t value = one.completion().immediate;
        if (!one.completion().with_immediate) {
          REQUIRE(one.bytes().size() == 8);
          std::memcpy(&value, one.bytes().data(), 8);
        } else {
          uint64_t written = 0;
          std::memcpy(&written, memory.bytes().data() + 8 * value, 8);
          CHECK(written == value);
          CHECK(one.bytes().empty());
        }
        REQUIRE(value < count);
        CHECK_FALSE(seen[value]);
        seen[value] = true;
      }
    });
    CHECK(run(context));
    CHECK(taken == count);
    CHECK(order.size() == count);
  }
}

TEST_CASE("arrivals that are kept slow down their senders until they are destroyed") {
  Pair pair("cxl:");
  io_context context;
  asio::Jetty receiver = make(context, pair.there, {.receives = 2});
  asio::Jetty sender = make(context, pair.here);
  const RemoteJetty to = import(pair.here, receiver.jetty());
  std::vector<asio::Arrival> kept;
  int sent = 0;
  for (int i = 0; i < 3; ++i) {
    sender.async_send(bytes_of("text"), to,
                      [&](error_code error, const Completion&) { sent += !error; });
    receiver.async_receive([&](error_code, asio::Arrival one) { kept.push_back(std::move(one)); });
  }
  CHECK(run_until(context, [&] { return kept.size() == 2 && sent == 2; }));
  context.run_for(10ms);
  CHECK(kept.size() == 2);
  kept.clear();
  CHECK(run(context));
  CHECK(sent == 3);
  REQUIRE(kept.size() == 1);
  CHECK(text_of(kept[0]) == "text");
}

TEST_CASE("a send to a receiver that is not ready times out") {
  for (const std::string_view driver : media) {
    Pair pair(driver);
    io_context context;
    urma::Jetty deaf =
        pair.there.jetty({.receives = 4}).value();  // this Jetty has posted no buffer
    asio::Jetty jetty = make(context, pair.here, {.receiver_timeout = 100ms});
    const RemoteJetty to = import(pair.here, deaf);
    auto text = std::make_shared<std::string>("kept");
    int told = 0;
    // `keep` holds the work's memory, so the operation ends at its time-out. The work may execute
    // later, from memory that still exists.
    jetty.async_post(send(bytes_of(*text), to), {.timeout = 10ms, .keep = text},
                     [&](error_code error, const Completion& done) {
                       CHECK(error == Status::timed_out);
                       CHECK(done.status == Status::unknown);
                       CHECK(text.use_count() == 2);
                       ++told;
                     });
    CHECK(run(context));
    CHECK(told == 1);
    // The work's memory is borrowed, so the operation ends when the work does.
    jetty.async_post(send(bytes_of("lent"), to), {.timeout = 10ms},
                     [&](error_code error, const Completion& done) {
                       CHECK(error == Status::receiver_not_ready);
                       CHECK(error == boost::system::errc::timed_out);
                       CHECK(done.status == Status::receiver_not_ready);
                       ++told;
                     });
    CHECK(run(context));
    CHECK(told == 2);
    // The memory of the first message is released too, which happens when the next completion
    // comes.
    for (int i = 0; i < 100 && text.use_count() > 1; ++i) {
      jetty.async_post(send(bytes_of("lent"), to), net::detached);
      CHECK(run(context));
    }
    CHECK(text.use_count() == 1);
  }
}

TEST_CASE("a work without a berth is cancelled and has not executed") {
  Pair pair("cxl:");
  io_context context;
  urma::Jetty deaf = pair.there.jetty({.receives = 4}).value();
  asio::Jetty jetty = make(context, pair.here, {.berths = 1});
  Segment memory = pair.there.allocate(64).value();
  const RemoteJetty to = import(pair.here, deaf);
  const auto bytes = bytes_like(8, 3);
  std::vector<std::pair<error_code, Status>> ends(3);
  std::vector<bool> ended(3);
  const auto into = [&](size_t at) {
    return [&, at](error_code error, const Completion& done) {
      ends[at] = {error, done.status};
      ended[at] = true;
    };
  };
  net::cancellation_signal stop[2];
  jetty.async_post(send(bytes, to), net::bind_cancellation_slot(stop[0].slot(), into(0)));
  const Work second = write(bytes, import(pair.here, memory));
  jetty.async_post(second, net::bind_cancellation_slot(stop[1].slot(), into(1)));
  jetty.async_post(second, {.timeout = 5ms}, into(2));
  stop[0].emit(net::cancellation_type::terminal);  // without effect: its memory is lent
  stop[1].emit(net::cancellation_type::total);
  CHECK(run_until(context, [&] { return ended[1] && ended[2]; }));
  CHECK_FALSE(ended[0]);
  CHECK(ends[1] == std::pair(make_error_code(Status::flushed), Status::flushed));
  CHECK(ends[2] == std::pair(make_error_code(Status::timed_out), Status::flushed));
  CHECK(memory.bytes()[1] == std::byte{});

  jetty.cancel();
  CHECK(run(context));
  CHECK(ends[0].first == boost::system::errc::operation_canceled);
  CHECK(ends[0].second != Status::ok);
  // The coroutine continues, and the cancelled work does not complete again.
  jetty.async_post(second, into(0));
  stop[0].emit(net::cancellation_type::terminal);
  stop[1].emit(net::cancellation_type::terminal);
  CHECK(run(context));
  CHECK(ends[0].second == Status::ok);
  CHECK(memory.bytes()[1] == bytes[1]);
}

TEST_CASE("a work with kept memory can be cancelled, but may have executed") {
  Pair pair("udp:");
  io_context context;
  urma::Jetty deaf = pair.there.jetty({.receives = 4}).value();
  asio::Jetty jetty = make(context, pair.here);
  auto text = std::make_shared<std::string>("kept");
  net::cancellation_signal stop;
  std::optional<Status> end;
  jetty.async_post(send(bytes_of(*text), import(pair.here, deaf)), {.keep = text},
                   net::bind_cancellation_slot(stop.slot(), [&](error_code error, Completion done) {
                     CHECK(error == Status::flushed);
                     end = done.status;
                   }));
  stop.emit(net::cancellation_type::total);
  context.run_for(20ms);
  CHECK_FALSE(end);
  stop.emit(net::cancellation_type::partial);
  CHECK(run(context));
  CHECK(end == Status::unknown);
  CHECK(text.use_count() == 2);
  // The message is sent from memory that still exists.
  std::string arrived(16, ' ');
  REQUIRE(deaf.receive(std::as_writable_bytes(std::span(arrived))));
  for (const Completion& done : deaf.wait(10s)) CHECK(arrived.substr(0, done.bytes) == "kept");
}

TEST_CASE("of two operations that race, the loser is cancelled and loses no arrival") {
  using namespace net::experimental::awaitable_operators;
  Pair pair("cxl:");
  io_context context;
  asio::Jetty receiver = make(context, pair.there, {.receives = 2});
  asio::Jetty sender = make(context, pair.here);
  const RemoteJetty to = import(pair.here, receiver.jetty());
  spawn(context, [&]() -> awaitable<void> {
    net::steady_timer timer(context, 5ms);
    const auto first = co_await (receiver.async_receive(net::use_awaitable) ||
                                 timer.async_wait(net::use_awaitable));
    CHECK(first.index() == 1);
    co_await sender.async_send(bytes_of("late"), to);
    timer.expires_after(30s);
    const auto second = co_await (receiver.async_receive(net::use_awaitable) ||
                                  timer.async_wait(net::use_awaitable));
    REQUIRE(second.index() == 0);
    CHECK(text_of(std::get<0>(second)) == "late");
  });
  CHECK(run(context));
}

TEST_CASE("four threads can run one context with many Jetties") {
  constexpr int jetties = 64;
  constexpr int rounds = 20;
  for (const std::string_view driver : media) {
    Pair pair(driver);
    io_context context;
    std::vector<asio::Jetty> servers;
    std::vector<asio::Jetty> clients;
    for (int i = 0; i < jetties; ++i) {
      servers.push_back(make(context, pair.there, {.berths = 4, .receives = 4}));
      clients.push_back(make(context, pair.here, {.berths = 4, .receives = 4}));
    }
    std::atomic<int> done{0};
    const auto serve = [&](asio::Jetty& jetty, RemoteJetty back) -> awaitable<void> {
      for (int round = 0; round < rounds; ++round) {
        const asio::Arrival message = co_await jetty.async_receive();
        co_await jetty.async_send(message.bytes(), back);
      }
    };
    const auto ask = [&](asio::Jetty& jetty, RemoteJetty to, int who) -> awaitable<void> {
      for (int round = 0; round < rounds; ++round) {
        const std::string text = std::to_string(who) + "." + std::to_string(round);
        co_await jetty.async_send(bytes_of(text), to);
        const asio::Arrival echo = co_await jetty.async_receive();
        done += text_of(echo) == text;
      }
    };
    for (size_t i = 0; i < jetties; ++i) {
      spawn(context, serve(servers[i], import(pair.there, clients[i].jetty())));
      spawn(context, ask(clients[i], import(pair.here, servers[i].jetty()), static_cast<int>(i)));
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { context.run_for(60s); });
    for (std::thread& thread : threads) thread.join();
    CHECK(context.stopped());
    CHECK(done == jetties * rounds);
  }
}

TEST_CASE("several threads can use one Jetty") {
  constexpr int threads = 4;
  constexpr int each = 500;
  Pair pair("cxl:");
  io_context context;
  asio::Jetty receiver = make(context, pair.there, {.receives = 8, .message_bytes = 64});
  asio::Jetty sender = make(context, pair.here, {.berths = 8});
  const RemoteJetty to = import(pair.here, receiver.jetty());
  std::atomic<int> sent{0};
  std::atomic<int> received{0};
  auto busy = net::make_work_guard(context);
  std::vector<std::thread> pool;
  for (int i = 0; i < 2; ++i) pool.emplace_back([&] { context.run_for(60s); });
  std::vector<std::thread> users;
  for (int i = 0; i < threads; ++i) {
    users.emplace_back([&] {
      for (int n = 0; n < each; ++n) {
        sender.async_send(bytes_of("text"), to,
                          [&](error_code error, const Completion&) { sent += !error; });
        receiver.async_receive([&](error_code error, const asio::Arrival& one) {
          received += !error && text_of(one) == "text";
        });
      }
    });
  }
  for (std::thread& user : users) user.join();
  busy.reset();
  for (std::thread& thread : pool) thread.join();
  CHECK(sent == threads * each);
  CHECK(received == threads * each);
}

TEST_CASE("statuses are error codes with causes and cures") {
  for (const StatusInfo& info : all_statuses()) {
    const error_code code = info.status;
    CHECK(code.category() == asio::category());
    CHECK(code.message().find(info.cure) != std::string::npos);
    CHECK(code == info.status);
    CHECK(static_cast<bool>(code) == (info.status != Status::ok));
  }
  CHECK(std::string_view(asio::category().name()) == "urma");
  CHECK(error_code(Status::flushed) == boost::system::errc::operation_canceled);
  CHECK(error_code(Status::peer_restarted) == boost::system::errc::connection_reset);
  CHECK(error_code(Status::unknown) != boost::system::errc::operation_canceled);
}

}  // namespace
}  // namespace urma::test
