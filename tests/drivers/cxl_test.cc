// Windows of shared memory: which ones cannot be opened, which devices are in them, and how the
// resources of dead devices are recovered.

#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/drivers/ports.h"
#include "tests/drivers/window_file.h"
#include "tests/private_mount.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
namespace cxl = drivers::cxl;
using drivers::PacketPort;

constexpr off_t window_lock = off_t{1} << 60;

size_t descriptor_count() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

void check_refused(const std::string& device, Status status, std::string_view says) {
  INFO(device);
  const auto port = try_open_port(device);
  REQUIRE_FALSE(port.ok());
  INFO(port.error().message);
  CHECK(port.status() == status);
  CHECK(port.error().message.find(says) != std::string::npos);
  const size_t fix = port.error().message.find("Fix: ");
  CHECK(fix != std::string::npos);
  CHECK(port.error().message.find("Fix: ", fix + 1) == std::string::npos);
}

std::unique_ptr<PacketPort> open_port_at(const WindowFile& window) {
  return PortPair::open(window.device(""));
}

// Two ports in the same window.
PortPair pair_at(const WindowFile& window) {
  return PortPair(window.device("?size=1M"), window.device(""));
}

Packet send_to(PacketPort& from, const Endpoint& to, unsigned seed = 1) {
  TxFrame* frame = nullptr;
  if (from.lend({&frame, 1}) == 0) return {};
  Packet packet = packet_of(100, seed);
  std::copy(packet.begin(), packet.end(), frame->head);
  frame->head_bytes = static_cast<uint16_t>(packet.size());
  frame->piece_count = frame->tail_bytes = 0;
  frame->to = to;
  from.send({&frame, 1}, read_clock());
  return packet;
}

// Returns whether a packet arrives.
bool reach(PacketPort& from, PacketPort& at, unsigned seed = 1) {
  const Packet packet = send_to(from, at.facts().self, seed);
  RxFrame got;
  for (int looks = 0; looks < 10; ++looks) {
    if (at.receive({&got, 1}, read_clock()) == 0) continue;
    const bool same =
        got.bytes == packet.size() && std::equal(packet.begin(), packet.end(), got.data);
    at.release({&got, 1});
    if (same) return true;
  }
  return false;
}

// Lets the ports do their regular work.
void look(std::initializer_list<PacketPort*> ports) {
  for (PacketPort* port : ports) port->receive({}, read_clock());
  for (PacketPort* port : ports) {
    RxFrame got;
    while (port->receive({&got, 1}, read_clock()) == 1) port->release({&got, 1});
  }
}

// ---- windows that cannot be opened

TEST_CASE("the error for a window that cannot be opened says why, and what to do") {
  const WindowFile window("bad");
  check_refused("cxl:here", Status::invalid_argument, "whole path");
  check_refused(window.device("?size=1000"), Status::invalid_argument, "size");
  check_refused(window.device("?colour=red"), Status::invalid_argument, "no such option");
  check_refused("cxl:/dev/shm", Status::io_error, "directory");
  check_refused("cxl:/dev/shm/no/such/folder", Status::io_error, "No such file");
  check_refused("cxl:/dev/null", Status::invalid_argument, "size=1G");
  check_refused("cxl:/dev/null?size=1M", Status::io_error, "cannot be mapped");
  CHECK(mkfifo(window.path().c_str(), 0600) == 0);
  check_refused(window.device(""), Status::invalid_argument, "neither a file nor a device");
  unlink(window.path().c_str());
  CHECK(symlink("/dev/shm/elsewhere", window.path().c_str()) == 0);
  check_refused(window.device(""), Status::io_error, "symbolic link");
}

TEST_CASE("a file that is not a window is left unchanged") {
  const WindowFile window("else");
  Prng prng(1);
  std::string noise(2 << 20, ' ');
  for (char& byte : noise) byte = static_cast<char>(prng.next());
  for (const std::string& text :
       {noise, std::string("a line of text\n"), std::string(2 << 20, 'x')}) {
    window.write(text);
    check_refused(window.device(""), Status::invalid_argument, "something else");
    CHECK(window.bytes() == text.size());
    Intruder intruder(window);
    CHECK(std::memcmp(intruder.all().data(), text.data(), text.size()) == 0);
  }
}

TEST_CASE("a window of another version or size, or that is cut off, is refused with a cure") {
  const WindowFile window("other");
  REQUIRE(try_open_port(window.device("?size=4M")).ok());
  check_refused(window.device("?size=8M"), Status::invalid_argument, "has 4M, not 8M");
  window.cut(2 << 20);
  check_refused(window.device(""), Status::invalid_argument, "cut off");
  window.cut(4096);
  check_refused(window.device(""), Status::invalid_argument, "cut off");
  window.cut(4 << 20);
  {
    const auto living = try_open_port(window.device(""));
    REQUIRE(living.ok());
    const uint32_t later = cxl::version + 1;
    Intruder(window).header().version = later;
    check_refused(window.device(""), Status::version_mismatch, "layout " + std::to_string(later));
  }
  // A window whose devices have all left is taken over.
  CHECK(try_open_port(window.device("")).ok());
  CHECK(Intruder(window).header().version == cxl::version);
  const auto living = try_open_port(window.device(""));
  Intruder(window).header().rings = 1;
  check_refused(window.device(""), Status::invalid_argument, "written over");
}

TEST_CASE("a window that a dead process has left incomplete is created again") {
  const WindowFile window("half");
  window.write("");
  window.cut(1 << 20);
  {
    PortPair ports = pair_at(window);
    CHECK(reach(*ports.a, *ports.b));
  }
  Intruder(window).header().magic = 0;
  std::ranges::fill(Intruder(window).all().subspan(cxl::places_at, 8192), std::byte{0xff});
  PortPair ports = pair_at(window);
  CHECK(reach(*ports.a, *ports.b));
  CHECK(ports.a->facts().self.address.bytes[15] == std::byte{1});
}

TEST_CASE("another user's window is refused until its owner allows it") {
  if (geteuid() != 0) {
    WARN("skipped: only root can act as another user");
    return;
  }
  const auto as = [](uid_t user, const std::string& device) {
    return in_child([&] {
      if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) return 100;
      const auto port = try_open_port(device);
      if (port.ok()) return 0;
      const bool clear = port.status() == Status::permission_denied &&
                         port.error().message.find("Fix: ") != std::string::npos &&
                         port.error().message.find("another user") != std::string::npos;
      return clear ? 1 : 2;
    });
  };
  const WindowFile window("foreign");
  CHECK(as(12345, window.device()) == 0);
  CHECK(as(54321, window.device("")) == 1);
  chmod(window.path().c_str(), 0666);
  CHECK(as(54321, window.device("")) == 0);
  // The default window is never another user's, even if it is open to all: its name could be taken
  // in advance. Several copies of this test may run at once, so each acts as a user of its own.
  const uid_t user = 1'000'000 + static_cast<uid_t>(getpid());
  const std::string taken = "/dev/shm/urma-" + std::to_string(user);
  const int file = open(taken.c_str(), O_CREAT | O_EXCL | O_RDWR, 0666);
  REQUIRE(file >= 0);
  close(file);
  chmod(taken.c_str(), 0666);
  CHECK(as(user, "cxl:") == 1);
  unlink(taken.c_str());
}

// Calls `function` in a child with a separate file system mounted at this folder, and checks that
// it returns 0. Skipped if the file system cannot be mounted.
template <class Function>
void on_file_system(const char* kind, const char* options, Function&& function) {
  const std::string folder = "/tmp/urma-test-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  constexpr int cannot = 77;
  const int result =
      in_child([&] { return mount_here(folder, kind, options) ? function(folder) : cannot; });
  std::filesystem::remove(folder);
  if (result == cannot) {
    WARN("skipped: no file system can be mounted here");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("a full file system makes open fail, and later refuses a connection: it never faults") {
  on_file_system("tmpfs", "size=2M", [](const std::string& folder) {
    const std::string path = "cxl:" + folder + "/w";
    const auto port = try_open_port(path + "?size=4M");
    if (port.ok() || port.status() != Status::no_resources) return 1;
    if (port.error().message.find("the file system " + folder +
                                  " (tmpfs, 2M) has 2M free, and 4M") == std::string::npos)
      return 2;
    // No remains of the failed attempt are in the way.
    if (!try_open_port(path + "?size=1M").ok()) return 3;
    unlink((folder + "/w").c_str());
    // An open window takes little memory at first, and the rest when it is used.
    const auto a = try_open_port(path);
    const auto b = try_open_port(path);
    const auto c = try_open_port(path);
    if (!a.ok() || !b.ok() || !c.ok()) return 4;
    if (!reach(**a, **b) || !reach(**b, **a)) return 5;
    if (reach(**a, **c) || reach(**c, **b)) return 6;
    if (!reach(**a, **b)) return 7;
    // No page is left for other files.
    const WindowFile other("unused");
    const std::string rest = folder + "/rest";
    const int file = open(rest.c_str(), O_CREAT | O_RDWR, 0600);
    while (fallocate(file, 0, lseek(file, 0, SEEK_END), 4096) == 0) {
    }
    const auto none = try_open_port("cxl:" + folder + "/second");
    if (none.ok() || none.status() != Status::no_resources) return 8;
    return try_open_port(path).ok() ? 0 : 9;
  });
}

bool says(const drivers::PacketPort& port, std::string_view what) {
  return port.facts().description.find(what) != std::string::npos;
}
// Returns whether memory that was written and returned is zeros for its next owner.
bool begins_with_zeros(drivers::PacketPort& port) {
  constexpr size_t bytes = 100'000;
  for (int turn = 0; turn < 2; ++turn) {
    drivers::SegmentMemory& memory = *port.memory();
    drivers::SegmentMemory::Lease lease;
    using Taken = drivers::SegmentMemory::Taken;
    if (memory.take(bytes, lease) != Taken::taken || !memory.prepare(lease)) return false;
    const std::span all(lease.base, bytes);
    if (std::ranges::any_of(all, [](std::byte byte) { return byte != std::byte{}; })) return false;
    std::ranges::fill(all, std::byte{1});
    memory.revoke(lease);
    memory.give_back(lease);
  }
  return true;
}

TEST_CASE("a hold for atomics succeeds only if processors execute the atomics of the segment") {
  const WindowFile window;
  const auto owner = try_open_port(window.device("?size=64M"));
  const auto other = try_open_port(window.device(""));
  REQUIRE(owner.ok());
  REQUIRE(other.ok());
  REQUIRE(reach(**other, **owner));
  drivers::SegmentMemory& memory = *(*owner)->memory();
  drivers::SegmentMemory::Lease lease;
  REQUIRE(memory.take(64, lease) == drivers::SegmentMemory::Taken::taken);
  REQUIRE(memory.prepare(lease));
  Ways& ways = *(*other)->ways();
  const uint32_t way = ways.way_to((*owner)->facts().self);
  for (const AtomicDomain domain :
       {AtomicDomain::processor, AtomicDomain::engine, AtomicDomain::device}) {
    memory.grant(lease, {.id = TokenId(1),
                         .token = TokenValue(2),
                         .rights = Rights::read | Rights::atomic,
                         .atomics = domain});
    const auto may = [&](Rights wanted) {
      const bool held = ways.hold(way, {.address = lease.address,
                                        .bytes = 8,
                                        .id = TokenId(1),
                                        .token = TokenValue(2),
                                        .wanted = wanted}) != nullptr;
      ways.let_go();
      return held;
    };
    CHECK(may(Rights::read));
    CHECK_FALSE(may(Rights::write));
    CHECK(may(Rights::atomic) == (domain == AtomicDomain::processor));
    memory.revoke(lease);
  }
  memory.give_back(lease);
}

TEST_CASE("a window can be opened with the options of its creator, whatever its page size") {
  const WindowFile window;
  const auto maker = try_open_port(window.device("?size=1500000"));
  CHECK(maker.ok());
  CHECK(try_open_port(window.device("?size=1500000")).ok());
  CHECK_FALSE(try_open_port(window.device("?size=2500000")).ok());
}

TEST_CASE("huge pages are used if the system has any, and the port's settings say so") {
  const WindowFile small;
  CHECK(says(**try_open_port(small.device("?size=64M")), "pages"));
  on_file_system("tmpfs", "huge=always", [](const std::string& folder) {
    const auto port = try_open_port("cxl:" + folder + "/w?size=64M");
    if (!port.ok() || !says(**port, "huge pages where")) return 1;
    std::ifstream system("/proc/meminfo");
    for (std::string line; std::getline(system, line);) {
      if (line.starts_with("ShmemHugePages:") && line.find(" 0 kB") != line.npos) return 3;
    }
    return begins_with_zeros(**port) ? 0 : 2;
  });
  on_file_system("hugetlbfs", "pagesize=2M", [](const std::string& folder) {
    const auto port = try_open_port("cxl:" + folder + "/w?size=16M");
    if (!port.ok()) {
      // The pool of the system has no such pages: the error must say what is missing.
      return port.error().message.find("huge") != std::string::npos ? 0 : 1;
    }
    if (!says(**port, "pages of 2M")) return 2;
    const auto other = try_open_port("cxl:" + folder + "/w");
    if (!other.ok() || !reach(**port, **other)) return 3;
    return begins_with_zeros(**port) ? 0 : 4;
  });
}

TEST_CASE(
    "a file system that cannot allocate in advance, like a BAR's resource file, is accepted") {
  on_file_system("ramfs", nullptr, [](const std::string& folder) {
    const auto a = try_open_port("cxl:" + folder + "/w?size=4M");
    const auto b = try_open_port("cxl:" + folder + "/w");
    if (!a.ok() || !b.ok()) return 1;
    return reach(**a, **b) && reach(**b, **a) ? 0 : 2;
  });
}

TEST_CASE("opening a window that a stopped process has locked fails within a moment") {
  const WindowFile window("locked");
  PortPair ports = pair_at(window);
  Bystander stopped([&] {
    const int file = open(window.path().c_str(), O_RDWR);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = window_lock;
    lock.l_len = 1;
    return fcntl(file, F_OFD_SETLK, &lock);
  });
  REQUIRE(stopped.ready());
  stopped.stop();
  // The lock is held until the process continues, so the error came without waiting for the lock.
  check_refused(window.device(""), Status::io_error, "/proc/locks");
  CHECK_FALSE(
      reach(*ports.a, *ports.b));  // a new pair needs rings, and allocating rings needs the lock
  stopped.kill();
  CHECK(reach(*ports.a, *ports.b));
  CHECK(try_open_port(window.device("")).ok());
}

// ---- slots

TEST_CASE("if all slots of a window are taken, open fails until a device leaves") {
  const WindowFile window("crowd");
  std::vector<std::unique_ptr<PacketPort>> ports;
  ports.push_back(PortPair::open(window.device()));
  while (ports.size() < cxl::places) ports.push_back(open_port_at(window));
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
  // The parent dies while its child lives on.
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

// Returns whether a thread that sleeps at its bell was woken in time. It has looked before, and
// found nothing.
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

// Receives until nothing comes. Returns how many of the messages have this seed.
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
