// Owns memory, publishes it, and waits until somebody has written to it.
#include <cstdio>
#include <cstring>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() {
  auto here = urma::open().value();
  auto inbox = here.allocate(1 << 20).value();
  auto jetty = here.jetty({.receives = 64}).value();
  here.publish("inbox", inbox, jetty).value();

  for (const auto& arrival : jetty.wait(10s)) {
    const auto* text = reinterpret_cast<const char*>(inbox.bytes().data()) + 4096;
    if (!arrival.ok() || arrival.immediate != 42 || std::strcmp(text, "hello, memory") != 0) break;
    return std::printf("%s\n", text) > 0 ? 0 : 1;
  }
  return 1;
}
