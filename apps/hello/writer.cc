// SPDX-License-Identifier: Apache-2.0
// Finds memory by its name, writes to it, and notifies its owner with an immediate.
#include <cstdio>
#include <stdexcept>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() try {
  auto here = urma::open().value();
  auto inbox = here.import("urma://localhost/inbox", 10s).value();
  auto jetty = here.jetty().value();

  const char text[] = "hello, memory";
  const auto work = urma::write(std::as_bytes(std::span(text)), inbox.segment, 4096)
                        .to(inbox.jetty)
                        .immediate(42);
  if (jetty.post(work) != 1)
    throw std::runtime_error("no berth is vacant. Fix: poll, then post again");
  const auto done = jetty.wait(10s);
  if (done.empty()) throw std::runtime_error("no completion in 10 s. Fix: start hello_owner");
  if (!done[0].ok()) throw std::runtime_error(error(done[0].status, "writing").message);
  std::puts("written");
} catch (const std::exception& why) {
  return std::fprintf(stderr, "hello_writer: %s\n", why.what()), 1;
}
