// Owns memory, publishes it, and waits until a peer has written to it.
#include <cstdio>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() {
  auto here = urma::open().value();
  auto inbox = here.allocate(1 << 20).value();
  auto jetty = here.jetty({.receives = 64}).value();
  here.publish("inbox", inbox, jetty).value();

  for (const auto& arrival : jetty.wait(10s)) {
    if (!arrival.ok()) return std::puts(urma::name(arrival.status).data()), 1;
    if (arrival.immediate != 42) return std::puts("an immediate other than 42 arrived"), 1;
    return std::puts(reinterpret_cast<const char*>(inbox.bytes().data()) + 4096), 0;
  }
  return std::puts("nothing arrived within 10 s"), 1;
}
