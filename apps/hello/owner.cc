// SPDX-License-Identifier: Apache-2.0
// Owns memory, publishes it under a name, and waits until a peer has written to it.
#include <cstdio>
#include <stdexcept>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() try {
  auto here = urma::open().value();
  auto inbox = here.allocate(1 << 20).value();
  auto jetty = here.jetty({.receives = 64}).value();
  here.publish("inbox", inbox, jetty).value();

  const auto arrived = jetty.wait(10s);
  if (arrived.empty())
    throw std::runtime_error("nothing arrived. Fix: start hello_writer within 10 s");
  if (!arrived[0].ok()) throw std::runtime_error(error(arrived[0].status, "receiving").message);
  if (arrived[0].immediate != 42)
    throw std::runtime_error("another immediate arrived. Fix: start hello_writer");
  std::puts(reinterpret_cast<const char*>(inbox.bytes().data()) + 4096);
} catch (const std::exception& why) {
  return std::fprintf(stderr, "hello_owner: %s\n", why.what()), 1;
}
