// SPDX-License-Identifier: Apache-2.0
// A process at one end of a device. driver_peer DEVICE ROLE:
//
//   serve           publishes a segment and a Jetty under "memory", for any process
//   rest            waits, owning nothing
//   write ADDRESS   writes numbers into that segment and reads them back, and finds it again
//                   whenever its owner has gone
//
// Prints a line for each state: "ready", "reached N" after each N-th 100 works that were right in a
// row, and never ends by itself. Exits with 1 if bytes are wrong, or if a work did not complete.

#include <cstdio>
#include <cstring>
#include <string>

#include "urma/urma.hpp"

using namespace std::chrono_literals;

namespace {

constexpr size_t bytes = 64 * 1024;

[[noreturn]] void fail(const char* what) {
  std::printf("failed: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

void say(const std::string& what) {
  std::puts(what.c_str());
  std::fflush(stdout);
}

void serve(urma::Device& device) {
  auto memory = device.allocate(bytes).value();
  auto jetty = device.jetty({.receives = 64}).value();
  device.publish("memory", memory, jetty, urma::everyone()).value();
  say("ready");
  for (;;) static_cast<void>(jetty.wait(1s));
}

void rest(urma::Device& device) {
  auto jetty = device.jetty({.receives = 64}).value();
  say("ready");
  for (;;) static_cast<void>(jetty.wait(1s));
}

// Returns whether the work was executed. Every work completes, whatever became of the peer.
bool complete(urma::Jetty& jetty, const urma::Work& work) {
  if (jetty.post(work) != 1) fail("no berth");
  const auto done = jetty.wait(30s);
  if (done.size() != 1) fail("a work did not complete");
  return done[0].ok();
}

void write(urma::Device& device, const std::string& address) {
  auto jetty = device.jetty().value();
  auto scratch = device.allocate(bytes).value();
  const std::span<std::byte> mine = scratch.bytes();
  const size_t half = bytes / 2;
  say("ready");
  for (unsigned round = 0, reached = 0;;) {
    const auto target = device.import("urma://" + address + "/memory", 5s);
    for (unsigned right = 0; target.ok();) {
      const size_t size = 1 + ++round * 7919 % half;
      std::memset(mine.data(), static_cast<int>(round), size);
      if (!complete(jetty, urma::write(mine.first(size), target->segment, 0))) break;
      std::memset(mine.data() + half, 0, size);
      if (!complete(jetty, urma::read(mine.subspan(half, size), target->segment, 0))) break;
      if (std::memcmp(mine.data(), mine.data() + half, size) != 0) fail("wrong bytes");
      if (++right % 100 == 0) say("reached " + std::to_string(++reached));
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  auto device = urma::open(words[1], {.operation_timeout = 500ms});
  if (!device) {
    std::printf("failed: %s\n", device.error().message.c_str());
    return 1;
  }
  if (std::strcmp(words[2], "serve") == 0) serve(*device);
  if (std::strcmp(words[2], "rest") == 0) rest(*device);
  if (count == 4) write(*device, words[3]);
  return 2;
}
