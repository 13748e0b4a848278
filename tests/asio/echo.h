// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tests/asio/helpers.h"

namespace urma::test {

#if defined(BOOST_ASIO_HAS_CO_AWAIT)
// Two coroutines on one context: a server that returns messages, and a client that sends each one,
// takes it back, and writes it to memory of the server and reads it there.
inline void echo_and_access(std::string_view driver, int rounds) {
  Pair pair(driver);
  io_context context;
  asio::Jetty server = make(context, pair.there, {.receives = 4});
  asio::Jetty client = make(context, pair.here, {.receives = 4});
  Segment memory = pair.there.allocate(4096).value();
  int done = 0;
  spawn(context, [&]() -> awaitable<void> {
    const RemoteJetty back = import(pair.there, client.jetty());
    for (int round = 0; round < rounds; ++round) {
      const asio::Arrival message = co_await server.async_receive();
      co_await server.async_send(message.bytes(), back);
    }
  });
  spawn(context, [&]() -> awaitable<void> {
    const RemoteJetty to = import(pair.here, server.jetty());
    const RemoteSegment segment = import(pair.here, memory);
    for (int round = 0; round < rounds; ++round) {
      const std::string text = "round " + std::to_string(round);
      const Completion sent = co_await client.async_send(bytes_of(text), to, {.timeout = 10s});
      CHECK((sent.ok() && sent.bytes == text.size()));
      const asio::Arrival echo = co_await client.async_receive(10s);
      CHECK(text_of(echo) == text);
      CHECK(echo.completion().from == to.peer);
      co_await client.async_write(bytes_of(text), segment, 100);
      std::string read(text.size(), ' ');
      co_await client.async_read(std::as_writable_bytes(std::span(read)), segment, 100);
      CHECK(read == text);
      ++done;
    }
  });
  CHECK(run(context));
  CHECK(done == rounds);
}
#endif

}  // namespace urma::test
