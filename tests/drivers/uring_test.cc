// SPDX-License-Identifier: Apache-2.0
// Tests of UDP ports that use io_uring, beside udp_test.cc and the conformance suite, which run on
// such ports, too.

#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "drivers/udp/batch_io.h"
#include "tests/catch.h"
#include "tests/drivers/io_ways.h"
#include "tests/drivers/ports.h"
#include "tests/refused_call.h"
#include "tests/unit/child.h"

namespace urma::test {
namespace {

bool has_uring() {
  if (io_ways().size() > 1) return true;
  WARN("skipped: this build, or this machine, has no io_uring");
  return false;
}

const Setting& io_of(const drivers::PacketPort& port) {
  return *std::ranges::find(port.facts().settings, std::string_view("io"), &Setting::name);
}

// Sends packets by one call, each of another size, so that each is a message of its own. Returns
// those that the port accepts.
std::vector<Packet> send_messages(PortPair& ports, drivers::PacketPort& from, const Endpoint& to,
                                  unsigned count) {
  std::vector<Packet> sent;
  std::vector<TxFrame*> frames(count);
  REQUIRE(from.lend(frames) == count);
  for (unsigned i = 0; i < count; ++i) {
    sent.push_back(packet_of(600 + 10 * i, i));
    const std::span<std::byte> memory = ports.memory.keep(from, sent.back());
    frames[i]->head_bytes = frames[i]->tail_bytes = 0;
    frames[i]->piece_count = 1;
    frames[i]->pieces[0] = {memory.data(), static_cast<uint32_t>(memory.size())};
    frames[i]->to = to;
  }
  REQUIRE(from.send(frames, ports.now()) == count);
  return sent;
}

bool passes_messages(PortPair& ports, unsigned count) {
  for (const auto& [from, at] :
       {std::pair(ports.a.get(), ports.b.get()), {ports.b.get(), ports.a.get()}}) {
    const auto sent = send_messages(ports, *from, at->facts().self, count);
    if (receive_packets(ports, *at, sent.size()) != sent) return false;
  }
  return true;
}

// Returns how many received messages the second port can hold, each in a buffer.
size_t held_at_once(PortPair& ports) {
  constexpr size_t count = drivers::udp::Buffers::count;
  for (size_t sent = 0; sent < 2 * count; sent += 64) {
    send_messages(ports, *ports.a, ports.b->facts().self, 64);
  }
  std::array<RxFrame, 2 * count> frames;
  size_t held = 0;
  for (int looks = 0; looks < 100; ++looks) {
    held += ports.b->receive(std::span(frames).subspan(held), ports.now());
  }
  ports.b->release(std::span(frames).first(held));
  return held;
}

TEST_CASE("a port says which way of I/O it uses, and why") {
  for (const auto& [text, origin] : {std::pair("udp:", Origin::driver),
                                     {"udp:?io=auto", Origin::driver},
                                     {"udp:?io=mmsg", Origin::device_string}}) {
    INFO(text);
    const auto port = PortPair::open(text);
    CHECK(io_of(*port).value == "mmsg");
    CHECK(io_of(*port).origin == origin);
    CHECK(port->facts().description.find("io_uring") == std::string::npos);
  }
  if (!has_uring()) return;
  const auto port = PortPair::open("udp:?io=uring");
  CHECK(io_of(*port).value == "uring");
  CHECK(io_of(*port).origin == Origin::device_string);
  CHECK(port->facts().description.find(", io_uring") != std::string::npos);
}

// Sandboxes, the sysctl kernel.io_uring_disabled and old kernels refuse it in these ways.
TEST_CASE("if the kernel refuses io_uring at open, the port uses mmsg, and says why") {
  if (!has_uring()) return;
  struct Refusal {
    unsigned call;
    int why;
    const char* says;
  };
  const Refusal refusals[] = {
      {SYS_io_uring_setup, EPERM, "io_uring_setup: Operation not permitted (a sandbox, or"},
      {SYS_io_uring_setup, ENOSYS, "io_uring_setup: Function not implemented"},
      {SYS_io_uring_setup, EINVAL, "the kernel is older than 5.19"},
      {SYS_io_uring_register, EINVAL, "registering a ring of buffers: Invalid argument"},
      {SYS_io_uring_enter, EPERM, "io_uring_enter: Operation not permitted (a sandbox, or"},
  };
  for (const Refusal& one : refusals) {
    INFO(one.says);
    CHECK(survives([&] {
      if (!refuse_call(one.call, one.why)) return;  // the kernel has no filters
      PortPair ports("udp:?io=uring", "udp:?io=uring");
      const Setting& io = io_of(*ports.a);
      const bool told = io.value == "mmsg" && io.origin == Origin::system &&
                        io.source.find(one.says) != std::string::npos &&
                        ports.a->facts().description.find(", no io_uring") != std::string::npos;
      if (!told || !passes_messages(ports, 40)) _exit(1);
    }));
  }
}

// A program may open its devices first and then enter a sandbox.
TEST_CASE("if the kernel refuses io_uring later, the port continues without it and loses nothing") {
  if (!has_uring()) return;
  for (const bool sends_first : {true, false}) {
    INFO("sends_first " << sends_first);
    CHECK(survives([&] {
      PortPair ports("udp:?io=uring", "udp:?io=uring");
      if (!passes_messages(ports, 40)) _exit(1);
      auto before = send_messages(ports, *ports.a, ports.b->facts().self, 30);
      if (!refuse_call(SYS_io_uring_enter, EPERM)) return;
      if (sends_first) {
        const auto more = send_messages(ports, *ports.b, ports.a->facts().self, 30);
        if (receive_packets(ports, *ports.a, more.size()) != more) _exit(2);
      }
      if (receive_packets(ports, *ports.b, before.size()) != before) _exit(3);
      for (int i = 0; i < 5; ++i) {
        if (!passes_messages(ports, 40)) _exit(4);
      }
      if (held_at_once(ports) != drivers::udp::Buffers::count) _exit(7);
      std::vector<TxFrame*> frames(512);
      if (ports.a->lend(frames) != frames.size()) _exit(5);
      if (ports.a->counters().send_failures + ports.b->counters().send_failures != 0) _exit(6);
    }));
  }
}

TEST_CASE("any thread runs a ring, also after the one that opened it or used it last has ended") {
  if (!has_uring()) return;
  std::unique_ptr<PortPair> ports;
  const auto on_a_thread = [](auto&& function) { std::thread(function).join(); };
  on_a_thread([&] { ports = std::make_unique<PortPair>("udp:?io=uring", "udp:?io=uring"); });
  for (int i = 0; i < 3; ++i) {
    bool passed = false;
    on_a_thread([&] { passed = passes_messages(*ports, 40); });
    CHECK(passed);
    CHECK(passes_messages(*ports, 40));
  }
  on_a_thread([&] { ports.reset(); });
}

// A request that still waited would keep the socket, and its address, beyond the port.
TEST_CASE("an address is free as soon as a port with a ring is closed, whatever is queued there") {
  if (!has_uring()) return;
  for (unsigned i = 0; i < 50; ++i) {
    PortPair ports("udp:", "udp:127.0.0.205:5013?io=uring");
    const auto sent = send_messages(ports, *ports.a, ports.b->facts().self, 40);
    if (i % 2 == 1) CHECK(receive_packets(ports, *ports.b, 5).size() == 5);
  }
}

TEST_CASE("more messages than a call receives, and than there are buffers, arrive in order") {
  for (const std::string& way : io_ways()) {
    INFO("way " << way);
    PortPair ports("udp:" + way, "udp:" + way);
    std::vector<Packet> all;
    for (unsigned i = 0; i < 4; ++i) {
      const auto sent = send_messages(ports, *ports.a, ports.b->facts().self, 60);
      all.insert(all.end(), sent.begin(), sent.end());
    }
    CHECK(receive_packets(ports, *ports.b, all.size()) == all);
    CHECK(ports.b->counters().calls_received < 200);
    CHECK(ports.a->counters().calls_sent == 4);
    CHECK(held_at_once(ports) == drivers::udp::Buffers::count);
  }
}

TEST_CASE("a message that the kernel refuses is lost, and those before and after it arrive once") {
  for (const std::string& way : io_ways()) {
    INFO("way " << way);
    PortPair ports("udp:" + way, "udp:" + way);
    const Packet large(65'530, std::byte{1});  // longer than a UDP datagram can be
    std::vector<TxFrame*> frames(30);
    REQUIRE(ports.a->lend(frames) == frames.size());
    std::vector<Packet> sent;
    for (unsigned i = 0; i < frames.size(); ++i) sent.push_back(packet_of(700 + 10 * i, i));
    for (unsigned i = 0; i < frames.size(); ++i) {
      const Packet& packet = i % 10 == 5 ? large : sent[i];
      frames[i]->head_bytes = frames[i]->tail_bytes = 0;
      frames[i]->piece_count = 1;
      frames[i]->pieces[0] = {packet.data(), static_cast<uint32_t>(packet.size())};
      frames[i]->to = ports.b->facts().self;
    }
    REQUIRE(ports.a->send(frames, ports.now()) == frames.size());
    CHECK(ports.a->counters().frames_sent == frames.size());
    CHECK(ports.a->settled() == frames.size());
    CHECK(ports.a->counters().send_failures == 3);
    CHECK(ports.a->counters().latest_failure == EMSGSIZE);
    for (const int lost : {25, 15, 5}) sent.erase(sent.begin() + lost);
    CHECK(receive_packets(ports, *ports.b, sent.size() + 1) == sent);
    CHECK(!readable(*ports.a, 0));
  }
}

}  // namespace
}  // namespace urma::test
