// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "tests/asio/helpers.h"
#include "tests/runtime_directory.h"

namespace urma::test {
namespace {

using asio::async_import;

// A device that publishes memory, at an address that others can ask over the network.
Side publisher() { return Side::open("udp:127.0.0.231", {.threads = Threads::served}); }

// The ways to find a name of that device: in the directory, and over the network.
std::vector<std::string> ways(const Side& owner) {
  return {"urma://localhost/", "urma://" + to_string(owner.device.endpoint()) + "/"};
}

TEST_CASE("a coroutine imports a name, a descriptor, and a name that is published later") {
  RuntimeDirectory directory;
  Side owner = publisher();
  Side user = Side::open("udp:");
  owner.device.publish("there", owner.segment, owner.jetty, everyone()).value();
  io_context context;
  const auto executor = context.get_executor();
  int done = 0;
  for (const std::string& way : ways(owner)) {
    spawn(context, [&, way]() -> awaitable<void> {
      const Imported one = co_await async_import(executor, user.device, way + "there");
      CHECK(one.segment.bytes == owner.segment.bytes().size());
      CHECK(one.jetty);
      CHECK(one.warning.empty());
      const Imported line = co_await async_import(executor, user.device, owner.line(), {});
      CHECK(line.jetty.id == one.jetty.id);
      const auto [error, late] =
          co_await async_import(executor, user.device, way + "late", {.limit = patience}, tuple);
      CHECK_FALSE(error);
      CHECK(late.segment.bytes == one.segment.bytes);
      ++done;
    });
  }
  context.run_for(150ms);
  CHECK(done == 0);
  owner.device.publish("late", owner.segment, everyone()).value();
  CHECK(run(context));
  CHECK(done == 2);
}

TEST_CASE("an import fails with the error of Device::import, and its message") {
  RuntimeDirectory directory;
  Side owner = publisher();
  Side user = Side::open("udp:");
  io_context context;
  std::vector<std::string> all{"urma://localhost", "urma1 at=nowhere", "urma://127.0.0.232:9/x"};
  for (const std::string& way : ways(owner)) all.push_back(way + "none");
  for (const std::string& what : all) {
    // On a busy machine an owner may take longer to say that it has no such name.
    for (Duration limit = 30ms;; limit *= 2) {
      const auto blocking = user.device.import(what, limit);
      error_code error;
      std::string message;
      async_import(context.get_executor(), user.device, what, {.limit = limit},
                   [&](error_code why, const Imported& one) {
                     error = why;
                     message = one.warning;
                   });
      CHECK_FALSE(error);  // no handler runs within the call that starts its operation
      CHECK(run(context));
      if (error != blocking.status() && limit < 2s) continue;
      CHECK(error == blocking.status());
      CHECK(message.substr(message.find(": ")) ==
            blocking.error().message.substr(blocking.error().message.find(": ")));
      break;
    }
  }
  bool threw = false;
  spawn(context, [&]() -> awaitable<void> {
    try {
      co_await async_import(context.get_executor(), user.device, "urma://localhost/none",
                            {.limit = 0ms});
    } catch (const boost::system::system_error& why) {
      threw = why.code() == Status::not_found;
    }
  });
  CHECK(run(context));
  CHECK(threw);
}

TEST_CASE("an import ends early by cancellation of any kind, and by the operator ||") {
  using namespace boost::asio::experimental::awaitable_operators;
  using boost::system::errc::operation_canceled;
  RuntimeDirectory directory;
  Side owner = publisher();
  Side user = Side::open("udp:");
  for (const std::string& way : ways(owner)) {
    for (const auto kind : {net::cancellation_type::total, net::cancellation_type::terminal}) {
      io_context context;
      net::cancellation_signal signal;
      error_code error;
      async_import(context.get_executor(), user.device, way + "none", {.limit = 1h},
                   net::bind_cancellation_slot(
                       signal.slot(), [&](error_code why, const Imported&) { error = why; }));
      context.run_for(30ms);
      CHECK_FALSE(error);
      signal.emit(kind);
      CHECK(run(context));
      CHECK(error == operation_canceled);
      signal.emit(kind);
    }
    io_context context;
    size_t first = 2;
    spawn(context, [&]() -> awaitable<void> {
      net::steady_timer timer(context, 20ms);
      const auto ended = co_await (async_import(context.get_executor(), user.device, way + "none",
                                                {.limit = 1h}, net::use_awaitable) ||
                                   timer.async_wait(net::use_awaitable));
      first = ended.index();
    });
    CHECK(run(context));
    CHECK(first == 1);
  }
}

TEST_CASE("an import goes on when its publisher dies, and finds the one that starts later") {
  RuntimeDirectory directory;
  Side user = Side::open("udp:");
  std::optional<Side> owner = publisher();
  io_context context;
  std::optional<Imported> found;
  for (const std::string& way : ways(*owner)) {
    found.reset();
    async_import(context.get_executor(), user.device, way + "x", {.limit = patience},
                 [&](error_code error, const Imported& one) {
                   CHECK_FALSE(error);
                   found = one;
                 });
    context.restart();
    context.run_for(50ms);
    owner.reset();
    context.run_for(50ms);
    CHECK_FALSE(found);
    owner = publisher();
    owner->device.publish("x", owner->segment, everyone()).value();
    CHECK(run(context));
    REQUIRE(found);
    const auto bytes = bytes_like(64, 1);
    CHECK(run_one(user.jetty, write(bytes, found->segment)).ok());
    owner->device.unpublish("x").value();
  }
}

TEST_CASE("an import ends as closed with its device, also if that is destroyed") {
  RuntimeDirectory directory;
  for (const bool destroyed : {false, true}) {
    std::optional<Device> device = urma::open("udp:").value();
    io_context context;
    std::vector<error_code> ends;
    const auto note = [&](error_code why, const Imported&) { ends.push_back(why); };
    for (const char* what : {"urma://localhost/none", "urma://127.0.0.233:4792/none"}) {
      async_import(context.get_executor(), *device, what, {.limit = 1h}, note);
    }
    context.run_for(20ms);
    destroyed ? device.reset() : device->close();
    CHECK(run(context));
    CHECK(ends == std::vector<error_code>(2, make_error_code(Status::closed)));
    if (destroyed) continue;
    async_import(context.get_executor(), *device, "urma://localhost/none", note);
    CHECK(run(context));
    CHECK(ends.size() == 3);
    CHECK(ends.back() == Status::closed);
  }
}

TEST_CASE("a destroyed context destroys a coroutine that waits for an import") {
  RuntimeDirectory directory;
  Device device = urma::open("udp:").value();
  const auto witness = std::make_shared<int>(0);
  for (const char* what : {"urma://localhost/none", "urma://127.0.0.234:4792/none"}) {
    {
      io_context context;
      spawn(context, [&, witness]() -> awaitable<void> {
        co_await async_import(context.get_executor(), device, what, {.limit = 1h},
                              net::use_awaitable);
      });
      async_import(context.get_executor(), device, what, {.limit = 1h},
                   [witness](error_code, const Imported&) {});
      context.run_for(20ms);
      CHECK(witness.use_count() == 3);
    }
    CHECK(witness.use_count() == 1);
  }
  CHECK(device.stats().ok());
}

TEST_CASE("many threads run a context with many imports, of which some are cancelled") {
  RuntimeDirectory directory;
  Side owner = publisher();
  Side user = Side::open("udp:");
  std::vector<std::string> all = ways(owner);
  net::thread_pool pool(3);
  std::atomic<int> found = 0;
  std::atomic<int> cancelled = 0;
  struct One {
    explicit One(net::thread_pool& of) : strand(net::make_strand(of)) {}
    net::strand<net::thread_pool::executor_type> strand;
    net::cancellation_signal signal;
  };
  std::deque<One> imports;
  for (int i = 0; i < 24; ++i) {
    One& one = imports.emplace_back(pool);
    const std::string what = all[static_cast<size_t>(i % 2)] + "late";
    net::post(one.strand, [&, what] {
      async_import(pool.get_executor(), user.device, what, {.limit = patience},
                   net::bind_cancellation_slot(
                       one.signal.slot(),
                       net::bind_executor(one.strand, [&](error_code error, const Imported&) {
                         error ? ++cancelled : ++found;
                       })));
    });
  }
  for (size_t i = 0; i < imports.size(); i += 3) {
    net::post(imports[i].strand,
              [&one = imports[i]] { one.signal.emit(net::cancellation_type::total); });
  }
  std::this_thread::sleep_for(20ms);
  owner.device.publish("late", owner.segment, everyone()).value();
  for (size_t i = 1; i < imports.size(); i += 3) {
    net::post(imports[i].strand,
              [&one = imports[i]] { one.signal.emit(net::cancellation_type::terminal); });
  }
  pool.join();
  CHECK(found + cancelled == 24);
  CHECK(cancelled >= 8);
  CHECK(found >= 8);
}

TEST_CASE("an import of a simulated device, whose time would stand still, is refused") {
  Device device = urma::open("sim:asio-imports").value();
  io_context context;
  error_code error;
  async_import(context.get_executor(), device, "urma://[fd00::9]/x",
               [&](error_code why, const Imported&) { error = why; });
  CHECK(run(context));
  CHECK(error == Status::unsupported);
}

}  // namespace
}  // namespace urma::test
