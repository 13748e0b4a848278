// Finds memory by its name, writes to it, and tells its owner with an immediate.
#include <cstdio>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main() {
  auto here = urma::open().value();
  auto inbox = here.import("urma://localhost/inbox", 10s).value();
  auto jetty = here.jetty().value();

  const char text[] = "hello, memory";
  const auto work = urma::write(std::as_bytes(std::span(text)), inbox.segment, 4096)
                        .to(inbox.jetty)
                        .immediate(42);
  if (jetty.post(work) != 1) return std::puts("not taken: no vacant berth, or device closed"), 1;
  for (const auto& done : jetty.wait(10s)) {
    if (!done.ok()) return std::puts(urma::describe(done.status).meaning.data()), 1;
    return std::puts("written"), 0;
  }
  return std::puts("still not completed after 10 s"), 1;
}
