// Finds memory by its name, writes to it, and tells its owner with an immediate.
#include <cstdio>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() {
  auto here = urma::open().value();
  auto inbox = here.import("urma://localhost/inbox", 10s).value();
  auto jetty = here.jetty().value();

  const char text[] = "hello, memory";
  jetty.post(urma::write(std::as_bytes(std::span(text)), inbox.segment, 4096)
                 .to(inbox.jetty)
                 .immediate(42)
                 .tag(7));
  for (const auto& done : jetty.wait(10s)) {
    if (!done.ok() || done.tag != 7) break;
    return std::printf("written\n") > 0 ? 0 : 1;
  }
  return 1;
}
