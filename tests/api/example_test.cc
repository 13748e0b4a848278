// The programs of the README, as they stand there (tests/tidy holds them against each other).

#include <cassert>
#include <cstring>
#include <thread>

#include "tests/catch.h"
#include "urma/urma.hpp"

using namespace std::chrono_literals;

namespace {

// README: owner
bool owner() {
  auto here = urma::open("udp:").value();
  auto inbox = here.allocate(1 << 20).value();
  auto jetty = here.jetty({.receives = 64}).value();
  here.publish("readme", inbox, jetty).value();

  for (const auto& arrival : jetty.wait(10s)) {
    const char* text = reinterpret_cast<const char*>(inbox.bytes().data()) + 4096;
    return arrival.ok() && arrival.immediate == 42 && std::strcmp(text, "hello, memory") == 0;
  }
  return false;
}

// README: writer
bool writer() {
  auto here = urma::open("udp:").value();
  auto inbox = here.import("urma://localhost/readme").value();
  auto jetty = here.jetty().value();

  const char text[] = "hello, memory";
  jetty.post(urma::write(std::as_bytes(std::span(text)), inbox.segment, 4096)
                 .to(inbox.jetty)
                 .immediate(42)
                 .tag(7));
  for (const auto& done : jetty.wait(10s)) return done.ok() && done.tag == 7;
  return false;
}

}  // namespace

TEST_CASE("the README's two programs, started in either order") {
  for (const bool writer_first : {false, true}) {
    bool owned = false;
    bool written = false;
    std::thread first([&] { writer_first ? written = writer() : owned = owner(); });
    std::this_thread::sleep_for(20ms);
    writer_first ? owned = owner() : written = writer();
    first.join();
    CHECK(owned);
    CHECK(written);
  }
}
