// SPDX-License-Identifier: Apache-2.0
// Windows of shared memory: which of them can be opened, and what the errors of the others say.

#include <signal.h>

#include <filesystem>
#include <fstream>

#include "base/prng.h"
#include "tests/drivers/window_ports.h"
#include "tests/private_mount.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
namespace cxl = drivers::cxl;
using drivers::PacketPort;

constexpr off_t window_lock = off_t{1} << 60;

TEST_CASE("the error for a window that cannot be opened says why, and what to do") {
  const WindowFile window("bad");
  check_refused("cxl:here", Status::invalid_argument, "begins with /");
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
    check_refused(window.device(""), Status::invalid_argument, "is not a window");
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
  check_refused(window.device(""), Status::invalid_argument, "truncated");
  window.cut(4096);
  check_refused(window.device(""), Status::invalid_argument, "truncated");
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
  check_refused(window.device(""), Status::invalid_argument, "overwritten");
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
  std::ranges::fill(Intruder(window).all().subspan(cxl::slots_at, 8192), std::byte{0xff});
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
  // The default window is never a window of another user, even if that is open to all: another user
  // could take its name in advance. Several copies of this test may run at once, so each acts as a
  // user of its own.
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
    // This leaves no page for other files.
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
      PreparedSegment prepared;
      const bool held = ways.hold(way,
                                  {.address = lease.address,
                                   .bytes = 8,
                                   .id = TokenId(1),
                                   .token = TokenValue(2),
                                   .wanted = wanted},
                                  prepared) != nullptr;
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

}  // namespace
}  // namespace urma::test
