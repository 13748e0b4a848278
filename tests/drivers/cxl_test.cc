// SPDX-License-Identifier: Apache-2.0
// Devices in a window of shared memory: their slots and rings, how resources of dead processes are
// recovered, and a window that is cut off while it is used.

#include <signal.h>

#include <filesystem>

#include "tests/drivers/window_ports.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
namespace cxl = drivers::cxl;
using drivers::PacketPort;

size_t descriptor_count() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// ---- slots

TEST_CASE("if all slots of a window are taken, open fails until a device leaves") {
  const WindowFile window("crowd");
  std::vector<std::unique_ptr<PacketPort>> ports;
  ports.push_back(PortPair::open(window.device()));
  while (ports.size() < cxl::slot_count) ports.push_back(open_port_at(window));
  check_refused(window.device(""), Status::no_resources, "no free slot");
  CHECK(reach(*ports.front(), *ports.back()));
  ports.erase(ports.begin() + 100);
  ports.push_back(open_port_at(window));
  CHECK(ports.back()->facts().self.address.bytes[15] == std::byte{101});
  check_refused(window.device(""), Status::no_resources, "no free slot");
}

TEST_CASE("slots and descriptors are released when devices leave or die") {
  const WindowFile window("loop");
  const auto keeper = PortPair::open(window.device("?size=4M"));
  const size_t descriptors = descriptor_count();
  for (int round = 0; round < 300; ++round) {
    const auto port = open_port_at(window);
    REQUIRE(port->facts().self.address.bytes[15] == std::byte{2});
    REQUIRE(reach(*port, *keeper));
    look({keeper.get()});
  }
  CHECK(descriptor_count() == descriptors);
  for (int round = 0; round < 30; ++round) {
    Bystander doomed([&] {
      auto port = open_port_at(window);
      send_to(*port, keeper->facts().self);
      return port;
    });
    REQUIRE(doomed.ready());
    doomed.kill();
    const auto next = open_port_at(window);
    look({keeper.get()});
    REQUIRE(next->facts().self.address.bytes[15] == std::byte{2});
    REQUIRE(reach(*next, *keeper));
    REQUIRE(reach(*keeper, *next));
  }
}

TEST_CASE("a port that is abandoned leaves the same state as a killed process") {
  const WindowFile window("abandoned");
  const auto keeper = PortPair::open(window.device("?size=4M"));
  for (int round = 0; round < 30; ++round) {
    auto doomed = open_port_at(window);
    REQUIRE(reach(*doomed, *keeper));
    REQUIRE(reach(*keeper, *doomed));
    const Endpoint there = doomed->facts().self;
    const Packet last = send_to(*doomed, keeper->facts().self, 7);
    doomed->abandon();
    // The sender died without ringing. Its frame lies in the ring; a receiver that looks finds it,
    // and finds that the sender is dead.
    RxFrame got;
    REQUIRE(keeper->receive({&got, 1}, read_clock()) == 1);
    CHECK(got.bytes == last.size());
    keeper->release({&got, 1});
    CHECK(state_of(*keeper, there).gone);
    const auto next = open_port_at(window);
    REQUIRE(next->facts().self == there);
    doomed.reset();
    look({keeper.get()});
    REQUIRE(reach(*next, *keeper));
    REQUIRE(reach(*keeper, *next));
  }
}

TEST_CASE("a window of dead processes can be used again, with all that they held") {
  const WindowFile window("graves");
  const auto die = [&] {
    Bystander dead([&] {
      auto ports = std::make_unique<PortPair>(pair_at(window));
      reach(*ports->a, *ports->b);
      return ports;
    });
    REQUIRE(dead.ready());
  };
  for (int round = 0; round < 5; ++round) die();
  PortPair ports = pair_at(window);
  CHECK(ports.a->facts().self.address.bytes[15] == std::byte{1});
  CHECK(ports.b->facts().self.address.bytes[15] == std::byte{2});
  CHECK(reach(*ports.a, *ports.b));
}

TEST_CASE("a child of fork neither keeps its parent's slot nor releases it") {
  const WindowFile window("fork");
  PortPair ports = pair_at(window);
  REQUIRE(reach(*ports.a, *ports.b));
  CHECK(in_child([&] {
          ports.a.reset();
          ports.b.reset();
          return 0;
        }) == 0);
  look({ports.a.get(), ports.b.get()});
  CHECK(state_of(*ports.a, ports.b->facts().self).gone == false);
  CHECK(reach(*ports.a, *ports.b));
  const auto third = open_port_at(window);
  CHECK(third->facts().self.address.bytes[15] == std::byte{3});
  // The parent dies, and its child continues to run.
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  pid_t child = -1;
  {
    Bystander parent([&] {
      auto port = open_port_at(window);
      const pid_t heir = fork();
      if (heir == 0) {
        for (;;) pause();
      }
      [[maybe_unused]] const ssize_t told = write(pipes[1], &heir, sizeof heir);
      usleep(20'000);  // a child that has not run yet still has all descriptors of its parent
      return port;
    });
    REQUIRE(read(pipes[0], &child, sizeof child) == sizeof child);
  }
  for (const int end : pipes) close(end);
  CHECK(open_port_at(window)->facts().self.address.bytes[15] == std::byte{4});
  kill(child, SIGKILL);
}

// ---- rings

TEST_CASE("a pair without rings is refused; other pairs work on, and it gets the next free rings") {
  const WindowFile window("few");
  PortPair first = pair_at(window);  // 1 MiB has room for two rings
  const auto third = open_port_at(window);
  REQUIRE(reach(*first.a, *first.b));
  CHECK_FALSE(reach(*first.a, *third));
  CHECK_FALSE(reach(*third, *first.b));
  CHECK(third->counters().send_failures > 0);
  CHECK(reach(*first.b, *first.a));
  first.a.reset();
  // The remaining device releases the rings when it looks.
  look({first.b.get()});
  CHECK(reach(*third, *first.b));
  CHECK(reach(*first.b, *third));
}

// Returns whether a thread that sleeps at its bell was woken in time. Before it sleeps, the thread
// looks for packets and finds none.
template <class Function>
bool woken(PacketPort& sleeper, Function&& by) {
  Bell& bell = *sleeper.bell();
  RxFrame frame;
  bell.drowse();
  if (sleeper.receive({&frame, 1}, read_clock()) != 0) return false;
  std::thread other(by);
  const Time deadline = read_clock() + 60s;
  bell.rest(deadline);
  const bool in_time = read_clock() < deadline;
  other.join();
  bell.awake();
  return in_time;
}

TEST_CASE(
    "rings that a sleeping device shared with a dead one are given to others that need them") {
  const WindowFile window("sleeper");
  const auto sleeper = PortPair::open(window.device());
  const auto third = open_port_at(window);
  {
    Bystander doomed([&] {
      auto port = open_port_at(window);
      send_to(*port, sleeper->facts().self);
      return port;
    });
    REQUIRE(doomed.ready());
    look({sleeper.get()});
  }
  // No device has noticed the death. The sleeping device is rung only because another device needs
  // the ring that it holds.
  CHECK(woken(*sleeper, [&] { CHECK_FALSE(reach(*third, *third)); }));
  look({sleeper.get()});
  CHECK(reach(*third, *sleeper));
}

TEST_CASE("a sleeping device is rung when a partner leaves") {
  const WindowFile window("leave");
  PortPair ports = pair_at(window);
  REQUIRE(reach(*ports.a, *ports.b));
  CHECK(woken(*ports.b, [&] { ports.a.reset(); }));
}

TEST_CASE("rings can be reused any number of times, whichever device leaves or dies") {
  const WindowFile window("round");
  const auto keeper = PortPair::open(window.device());
  for (int round = 0; round < 500; ++round) {
    auto other = open_port_at(window);
    REQUIRE(reach(*other, *keeper));
    REQUIRE(reach(*keeper, *other, 2));
    if (round % 3 == 0) reach(*other, *keeper);
    other.reset();
    look({keeper.get()});
  }
}

TEST_CASE("rings of devices that left before any other device looked are not lost") {
  const WindowFile window("unseen");
  const auto keeper = PortPair::open(window.device());
  for (int round = 0; round < 10; ++round) {
    PortPair visit(window.device(""), window.device(""));
    send_packet(visit, *visit.a, keeper->facts().self, packet_of(50, 1));
    visit.a.reset();
    look({keeper.get()});
    REQUIRE(reach(*visit.b, *keeper));
    visit.b.reset();
    look({keeper.get()});
  }
}

TEST_CASE("packets that were sent before their sender left are received") {
  const WindowFile window("legacy");
  PortPair ports = pair_at(window);
  for (unsigned i = 0; i < 20; ++i) {
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(1000, i)));
  }
  ports.a.reset();
  const auto later = open_port_at(window);
  unsigned count = 0;
  RxFrame frame;
  for (int looks = 0; looks < 100; ++looks) {
    if (ports.b->receive({&frame, 1}, read_clock()) == 0) continue;
    const Packet expected = packet_of(1000, count++);
    CHECK(std::equal(expected.begin(), expected.end(), frame.data));
    ports.b->release({&frame, 1});
  }
  CHECK(count == 20);
  CHECK(reach(*later, *ports.b));
}

// Receives until no further message comes. Returns how many of the messages have this seed.
unsigned count_of(PacketPort& at, unsigned seed) {
  const Packet wanted = packet_of(100, seed);
  unsigned count = 0;
  RxFrame frame;
  for (int looks = 0; looks < 50; ++looks) {
    if (at.receive({&frame, 1}, read_clock()) == 0) continue;
    count += frame.bytes == wanted.size() && std::equal(wanted.begin(), wanted.end(), frame.data);
    at.release({&frame, 1});
  }
  return count;
}

TEST_CASE(
    "unread messages of an incarnation are not taken for messages of the next one in its slot") {
  constexpr unsigned earlier = 1;
  constexpr unsigned later = 2;
  // The ring of the later incarnation lies behind that of the earlier one, or in front of it.
  for (const bool in_front : {false, true}) {
    INFO("in front: " << in_front);
    const WindowFile window("lives");
    const auto reader = PortPair::open(window.device("?size=8M"));
    auto first = open_port_at(window);
    {
      PortPair others(window.device(""), window.device(""));
      if (in_front) send_to(*others.a, others.b->facts().self);
      for (int i = 0; i < 10; ++i) send_to(*first, reader->facts().self, earlier);
      const Endpoint place = first->facts().self;
      first.reset();
      others.a.reset();
      others.b.reset();
      first = open_port_at(window);
      REQUIRE(first->facts().self == place);
    }
    send_to(*first, reader->facts().self, later);
    std::array<RxFrame, 1> frame;
    REQUIRE(reader->receive(frame, read_clock()) == 1);
    const Packet wanted = packet_of(100, later);
    CHECK(std::equal(wanted.begin(), wanted.end(), frame[0].data));
    reader->release(frame);
    CHECK(count_of(*reader, earlier) == 0);
    send_to(*first, reader->facts().self, later);
    CHECK(count_of(*reader, later) == 1);
  }
}

TEST_CASE("a later incarnation waits while messages of the earlier one are still being read") {
  const WindowFile window("kept");
  PortPair ports = pair_at(window);
  send_to(*ports.a, ports.b->facts().self, 1);
  RxFrame kept;
  REQUIRE(ports.b->receive({&kept, 1}, read_clock()) == 1);
  ports.a.reset();
  ports.a = open_port_at(window);
  // The window has rings for one pair. Those of the dead device are free when both ends have
  // released them.
  look({ports.b.get()});
  const Packet first = packet_of(100, 1);
  CHECK(std::equal(first.begin(), first.end(), kept.data));
  ports.b->release({&kept, 1});
  look({ports.b.get()});
  CHECK(reach(*ports.a, *ports.b, 2));
}

TEST_CASE("a partner that never releases its rings holds only a few rings of one slot") {
  const WindowFile window("greedy");
  const auto asleep = PortPair::open(window.device("?size=16M"));  // this device never looks
  const auto third = open_port_at(window);
  uint64_t refused = 0;
  for (int life = 0; life < 30; ++life) {
    const auto restless = open_port_at(window);
    send_to(*restless, asleep->facts().self);
    refused += restless->counters().send_failures;
  }
  CHECK(refused >= 20);
  CHECK(reach(*third, *third));
}

TEST_CASE("a ring with an invalid mark is counted, and is not read any further") {
  const WindowFile window("broken");
  PortPair ports = pair_at(window);
  REQUIRE(reach(*ports.a, *ports.b));
  Intruder intruder(window);
  for (uint32_t ring = 0; ring < intruder.rings(); ++ring) {
    for (auto& line : intruder.ring(ring).lines) line.mark = cxl::goes_on_at_the_beginning - 1;
  }
  look({ports.b.get()});
  look({ports.b.get()});
  CHECK(ports.b->counters().malformed == 1);
  CHECK_FALSE(reach(*ports.a, *ports.b));
}

TEST_CASE("a window of another kernel is refused, and an incomplete slot record has no owner") {
  const WindowFile window("kernel");
  {
    PortPair ports = pair_at(window);
    Intruder intruder(window);
    intruder.record(0).serial = 5 | cxl::changing;
    REQUIRE(reach(*ports.a, *ports.b));
    CHECK(intruder.record(0).serial == 6);
  }
  Intruder(window).header().boot = 1;
  check_refused(window.device(""), Status::unsupported, "another kernel");
}

// ---- a file that is cut off while it is used

TEST_CASE("a window that is cut off while it is used is lost, and its processes survive") {
  for (const uint64_t left : {uint64_t{0}, uint64_t{4096}, uint64_t{100'000}, uint64_t{700'000}}) {
    INFO("bytes left " << left);
    const WindowFile window("cut");
    CHECK(in_child([&] {
            PortPair ports = pair_at(window);
            if (!reach(*ports.a, *ports.b) || !reach(*ports.b, *ports.a)) return 1;
            RxFrame kept;
            send_packet(ports, *ports.a, ports.b->facts().self, packet_of(60'000, 1));
            if (ports.b->receive({&kept, 1}, read_clock()) != 1) return 2;
            window.cut(left);
            // Reads all bytes, whatever they are now.
            unsigned sum = 0;
            for (uint32_t i = 0; i < kept.bytes; ++i) sum += static_cast<unsigned>(kept.data[i]);
            ports.b->release({&kept, 1});
            for (int round = 0; round < 1000; ++round) {
              send_packet(ports, *ports.a, ports.b->facts().self, packet_of(60'000, 2));
              look({ports.a.get(), ports.b.get()});
            }
            if (left < 1000 && !state_of(*ports.a, ports.b->facts().self).gone) return 3;
            ports.a.reset();
            return sum == 12345 ? 4 : 0;
          }) == 0);
  }
}

TEST_CASE("faults outside the window are passed to the previous handler") {
  const WindowFile window("chain");
  const WindowFile elsewhere("chain-other");
  const auto fault = [&] {
    elsewhere.write("x");
    elsewhere.cut(4096);
    Intruder mapping(elsewhere);
    elsewhere.cut(0);
    return std::to_integer<int>(*static_cast<volatile std::byte*>(mapping.all().data()));
  };
  CHECK(in_child([&] {
          signal(SIGBUS, [](int) { _exit(42); });
          const auto port = PortPair::open(window.device());
          return fault();
        }) == 42);
  CHECK(in_child([&] {
          signal(SIGBUS, SIG_DFL);
          const auto port = PortPair::open(window.device());
          return fault();
        }) == -1);
  CHECK(in_child([&] {
          signal(SIGBUS, SIG_DFL);
          const auto port = PortPair::open(window.device());
          raise(SIGBUS);
          return 0;
        }) == -1);
}

}  // namespace
}  // namespace urma::test
