// SPDX-License-Identifier: Apache-2.0
// The shortest complete program: one device owns memory, and another one writes to it.
#include <cstdio>
#include <string_view>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() {
  auto there = urma::open().value();
  auto memory = there.allocate(4096).value();

  auto here = urma::open().value();  // usually in another process, which got the descriptor
  auto target = here.import(memory.descriptor()).value();
  auto jetty = here.jetty().value();

  const std::string_view text = "hello, memory";
  if (jetty.post(urma::write(std::as_bytes(std::span(text)), target.segment)) != 1) {
    return std::puts("the work was not taken"), 1;
  }
  for (const auto& done : jetty.wait(5s)) {
    if (!done.ok()) return std::printf("%s\n", urma::name(done.status).data()), 1;
    return std::printf("%s\n", reinterpret_cast<const char*>(memory.bytes().data())), 0;
  }
  return 1;
}
