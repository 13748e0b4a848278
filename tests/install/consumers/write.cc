// SPDX-License-Identifier: Apache-2.0
// Uses two devices in one process: one owns memory, the other one writes to it and notifies. Run
// as: write DEVICE. Returns 0 if every byte is where it belongs.
#include <cstdio>
#include <cstring>
#include <urma/urma.hpp>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto owner = urma::open(argv[1]).value();
  auto writer = urma::open(argv[1]).value();
  auto inbox = owner.allocate(1 << 20).value();
  auto arrivals = owner.jetty({.receives = 1}).value();
  auto memory = writer.import(inbox.descriptor()).value().segment;
  auto target = writer.import(arrivals.descriptor()).value().jetty;
  auto jetty = writer.jetty().value();

  std::vector<std::byte> bytes(100'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 % 251);
  if (jetty.post(urma::write(bytes, memory, 4096).to(target).immediate(42)) != 1) return 1;
  for (const auto& done : jetty.wait(10s)) {
    if (!done.ok()) return std::printf("%s\n", urma::name(done.status).data()), 1;
  }
  for (const auto& arrival : arrivals.wait(10s)) {
    const bool same = std::memcmp(inbox.bytes().data() + 4096, bytes.data(), bytes.size()) == 0;
    if (arrival.ok() && arrival.immediate == 42 && same) return std::puts("written") < 0;
  }
  return std::puts("not written"), 1;
}
