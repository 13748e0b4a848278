// SPDX-License-Identifier: Apache-2.0
// share=segment: each segment is a file of its own, and a peer that shows its token gets the
// descriptor. Any process that can open the window may ask, may keep a descriptor that it got, and
// may send invalid requests.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "base/prng.h"
#include "drivers/cxl/own_files.h"
#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"
#include "tests/no_address_space.h"

namespace urma::test {
namespace {

using drivers::cxl::FileRequest;

constexpr size_t given_bytes = 300'000;

// A descriptor that the owner has handed over, and its mapping.
class Given {
 public:
  explicit Given(int descriptor) : descriptor_(descriptor) {}
  Given(Given&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Given& operator=(Given&&) = delete;
  ~Given() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  explicit operator bool() const { return descriptor_ >= 0; }
  int number() const { return descriptor_; }
  // Returns null if the mapping is refused. The mapping stays until the process ends.
  std::byte* map(int how) const { return map_of(descriptor_, how); }
  static std::byte* map_of(int descriptor, int how) {
    void* const at = mmap(nullptr, given_bytes, how, MAP_SHARED, descriptor, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }

 private:
  int descriptor_;
};

// Counts the mapped segment files of this process, which is both owner and user.
size_t mapped_files() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("memfd:urma-segment") != std::string::npos ? 1 : 0;
  }
  return count;
}

struct Handing {
  Handing(std::string_view of_user = "segment", const SegmentOptions& options = {})
      : user(Side::open(window.device("?size=32M&share=" + std::string(of_user)),
                        {.threads = Threads::inlined})),
        segment(owner.device.allocate(given_bytes, options).value()),
        there(user.device.import(segment.descriptor()).value().segment) {}

  uint32_t number() const {
    return static_cast<uint32_t>((there.address & ~drivers::cxl::in_the_window) >>
                                 drivers::cxl::offset_bits);
  }
  FileRequest request() {
    return {.word = FileRequest::first_word,
            .segment = number(),
            .file = anybody.segment(number()).file,
            .token_id = urma::number(there.token_id),
            .token = urma::number(there.token),
            .slot = 1};
  }
  // Sends the bytes to the owner's socket. Returns less than zero if no socket listens there.
  int say(const void* data, size_t size) {
    const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = window.path() + ".0";
    std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
    if (connect(to, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
      close(to);
      return -1;
    }
    if (size > 0) (void)send(to, data, size, MSG_NOSIGNAL);
    anybody.slot(0).record.notifications.fetch_add(1);
    return to;
  }
  Given ask(const FileRequest& what) {
    const int to = say(&what, sizeof what);
    REQUIRE(to >= 0);
    REQUIRE(owner.device.stats().ok());  // returns after a pass of the owner
    char byte = 0;
    iovec piece{&byte, 1};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_LEN(sizeof(int));  // room for one descriptor and not for another
    int descriptor = -1;
    const ssize_t count = recvmsg(to, &message, 0);
    close(to);
    if (count == 1 && CMSG_FIRSTHDR(&message) != nullptr) {
      std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    }
    return Given(descriptor);
  }
  // Returns how often this event was raised since the last call.
  uint32_t told_of(EventKind kind) {
    std::this_thread::sleep_for(3ms);  // events are merged for a millisecond
    REQUIRE(owner.device.stats().ok());
    const size_t count = owner.device.events(std::span(events).subspan(events_known));
    uint32_t sum = 0;
    for (Event& event : std::span(events).first(events_known += count)) {
      if (event.kind == kind) sum += std::exchange(event.count, 0);
    }
    return sum;
  }
  Status run(const Work& work) { return run_one(user.jetty, work).status; }
  uint64_t copied() { return user.device.stats().value().copied; }
  // Returns the memory, once the owner's thread has executed what packets have brought.
  std::span<std::byte> landed(size_t offset, size_t size) {
    REQUIRE(owner.device.stats().ok());
    return segment.bytes().subspan(offset, size);
  }
  // Repeats the work. Returns whether, within the limit, it was executed as a copy. Until then it
  // is sent as packets, and succeeds.
  bool becomes_copies(const Work& work, Duration limit = 2s) {
    for (const Time begun = read_clock(); read_clock() - begun < limit;) {
      const uint64_t before = copied();
      REQUIRE(run(work) == Status::ok);
      if (copied() > before) return true;
    }
    return false;
  }

  WindowFile window{"handing"};
  Side owner = Side::open(window.device("?size=32M&share=segment"), {.threads = Threads::served});
  Side user;
  Segment segment;
  RemoteSegment there;
  Intruder anybody{window};
  std::array<Event, 64> events;
  size_t events_known = 0;
};

TEST_CASE(
    "handed over: works go by packets until the user has the memory, and are copies afterwards") {
  Handing handing;
  const auto data = bytes_like(200'000, 5);
  std::vector<std::byte> back(data.size());
  REQUIRE(handing.becomes_copies(write(data, handing.there, 40)));
  CHECK(std::ranges::equal(handing.landed(40, data.size()), data));
  const uint64_t before = handing.copied();
  CHECK(handing.run(read(back, handing.there, 40)) == Status::ok);
  CHECK(handing.copied() > before);
  CHECK(back == data);
  // No record contains a token.
  CHECK(handing.anybody.segment(handing.number()).token == 0);
  CHECK(handing.anybody.segment(handing.number()).older_token == 0);
  // The window contains none of the data.
  const std::span all = handing.anybody.all();
  CHECK(std::search(all.begin() + static_cast<ptrdiff_t>(handing.anybody.parts().memory_at),
                    all.end(), data.begin(), data.begin() + 64) == all.end());
}

TEST_CASE("handed over: after rotate the user asks with the new token, and works stay copies") {
  Handing handing;
  const auto data = bytes_like(1000, 5);
  REQUIRE(handing.becomes_copies(write(data, handing.there)));
  const RemoteSegment old = handing.there;
  handing.there.token = handing.segment.rotate().value();
  CHECK(handing.becomes_copies(write(data, handing.there)));
  CHECK(handing.becomes_copies(write(data, old)));
  CHECK(handing.becomes_copies(write(data, handing.there)));
  REQUIRE(handing.segment.retire().ok());
  const uint64_t before = handing.copied();
  CHECK(handing.run(write(data, old)) == Status::remote_access);
  CHECK(handing.copied() == before);
  CHECK(handing.becomes_copies(write(data, handing.there)));
  CHECK(handing.run(write(data, old)) == Status::remote_access);
}

TEST_CASE("handed over: a segment without the right to read is not handed over") {
  for (const Rights rights : {Rights::write, Rights::write | Rights::atomic}) {
    Handing handing("segment", {.rights = rights});
    CHECK(handing.anybody.segment(handing.number()).file == 0);
    FileRequest request = handing.request();
    for (request.file = 0; request.file < 4; ++request.file) CHECK_FALSE(handing.ask(request));
    CHECK(handing.run(write(bytes_like(100, 1), handing.there)) == Status::ok);
    CHECK(handing.copied() == 0);
  }
}

TEST_CASE("handed over: allocate succeeds in a process that a timer interrupts") {
  for (const char* share : {"segment", "window"}) {
    WindowFile window("timer");
    Side owner = Side::open(window.device("?size=512M&share=" + std::string(share)),
                            {.threads = Threads::inlined});
    struct sigaction action {};
    struct sigaction old {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &old);
    const itimerval often{{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, nullptr);
    const Segment segment = owner.device.allocate(128 << 20).value();
    const itimerval never_again{};
    setitimer(ITIMER_REAL, &never_again, nullptr);
    sigaction(SIGALRM, &old, nullptr);
    CHECK(segment.mapped());
  }
}

TEST_CASE(
    "handed over: a segment may be larger than all segments in the window's memory together") {
  Handing handing;
  Segment large = handing.owner.device.allocate(64 << 20).value();
  REQUIRE(large.mapped());
  const RemoteSegment there = handing.user.device.import(large.descriptor()).value().segment;
  CHECK(handing.becomes_copies(write(bytes_like(100, 1), there, (64 << 20) - 100)));
}

TEST_CASE("handed over: a peer that keeps the descriptor has no access after unregister") {
  for (const bool revoke : {false, true}) {
    Handing handing;
    const Given given = handing.ask(handing.request());
    REQUIRE(given);
    volatile std::byte* const kept = given.map(PROT_READ | PROT_WRITE);
    REQUIRE(kept != nullptr);
    kept[5] = std::byte{3};
    REQUIRE(handing.segment.bytes()[5] == std::byte{3});
    REQUIRE((revoke ? handing.segment.revoke() : handing.segment.unregister()).ok());
    CHECK(handing.segment.bytes()[5] == std::byte{3});
    kept[5] = std::byte{9};
    CHECK(handing.segment.bytes()[5] == std::byte{3});
    handing.segment.bytes()[6] = std::byte{8};
    CHECK(kept[6] == std::byte{0});
    CHECK_FALSE(handing.ask(handing.request()));
    Segment next = handing.owner.device.allocate(given_bytes).value();
    std::ranges::fill(next.bytes(), std::byte{8});
    CHECK(kept[6] == std::byte{0});
  }
}

TEST_CASE("handed over: unregister revokes the memory even if the device has been closed") {
  Handing handing;
  const Given given = handing.ask(handing.request());
  REQUIRE(given);
  volatile std::byte* const kept = given.map(PROT_READ | PROT_WRITE);
  REQUIRE(kept != nullptr);
  handing.owner.device.close();
  kept[5] = std::byte{3};
  CHECK(handing.segment.bytes()[5] == std::byte{3});
  REQUIRE(handing.segment.unregister().status() == Status::closed);  // and the memory is revoked
  kept[5] = std::byte{9};
  CHECK(handing.segment.bytes()[5] == std::byte{3});
}

TEST_CASE(
    "handed over: pages that cannot be replaced are listed until they are, and the error says "
    "why") {
  if (!NoAddressSpace::possible) return;
  Handing handing;
  const Given given = handing.ask(handing.request());
  REQUIRE(given);
  CHECK(handing.owner.device.quarantined().value().empty());
  {
    const NoAddressSpace none;
    const auto done = handing.segment.unregister();
    REQUIRE(done.status() == Status::not_fenced);
    CHECK(done.error().message.find("this memory was handed to peers") != std::string::npos);
  }
  const auto listed = handing.owner.device.quarantined().value();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].address == handing.there.address);
  CHECK(listed[0].bytes == given_bytes);
  CHECK(listed[0].held_by == handing.user.device.endpoint());
  std::byte* const kept = given.map(PROT_READ | PROT_WRITE);
  REQUIRE(kept != nullptr);
  kept[5] = std::byte{3};
  CHECK(handing.segment.bytes()[5] == std::byte{3});
  REQUIRE(handing.segment.unregister().ok());
  CHECK(handing.owner.device.quarantined().value().empty());
  kept[5] = std::byte{9};
  CHECK(handing.segment.bytes()[5] == std::byte{3});
}

TEST_CASE("handed over: a read-only descriptor cannot be made writable, however it is opened") {
  Handing handing("segment", {.rights = Rights::read});
  std::ranges::fill(handing.segment.bytes(), std::byte{4});
  const Given given = handing.ask(handing.request());
  REQUIRE(given);
  CHECK(given.map(PROT_READ | PROT_WRITE) == nullptr);
  std::byte* const at = given.map(PROT_READ);
  REQUIRE(at != nullptr);
  CHECK(at[7] == std::byte{4});
  CHECK(mprotect(at, 4096, PROT_READ | PROT_WRITE) != 0);
  CHECK(pwrite(given.number(), "x", 1, 0) < 0);
  CHECK(ftruncate(given.number(), 0) != 0);
  CHECK(fallocate(given.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0);
  const std::string again = "/proc/self/fd/" + std::to_string(given.number());
  if (const Given other(::open(again.c_str(), O_RDWR | O_CLOEXEC)); other) {
    CHECK(other.map(PROT_READ | PROT_WRITE) == nullptr);
    CHECK(pwrite(other.number(), "x", 1, 0) < 0);
  }
  handing.segment.bytes()[7] = std::byte{5};
  CHECK(at[7] == std::byte{5});
  std::vector<std::byte> back(100);
  CHECK(handing.becomes_copies(read(back, handing.there)));
}

TEST_CASE(
    "handed over: requests without the token are refused, and a peer that guesses often is "
    "ignored") {
  Handing handing;
  for (uint32_t i = 0; i < 16; ++i) {
    FileRequest wrong = handing.request();
    (i % 2 == 0 ? wrong.token : wrong.token_id) ^= 1u << i;
    REQUIRE_FALSE(handing.ask(wrong));
  }
  CHECK(handing.owner.device.stats().value().refused == 16);
  CHECK(handing.ask(handing.request()));
  FileRequest wrong = handing.request();
  wrong.token ^= 1;
  REQUIRE_FALSE(handing.ask(wrong));
  CHECK_FALSE(handing.ask(handing.request()));
  // Works of that peer do not need the socket.
  CHECK(handing.run(write(bytes_like(100, 1), handing.there)) == Status::ok);
  std::this_thread::sleep_for(150ms);
  CHECK(handing.ask(handing.request()));
}

TEST_CASE("handed over: a token that has been valid counts as late, not as a guess") {
  Handing handing;
  const FileRequest old = handing.request();
  REQUIRE(handing.segment.rotate().ok());
  REQUIRE(handing.segment.retire().ok());
  for (int i = 0; i < 100; ++i) REQUIRE_FALSE(handing.ask(old));
  CHECK(handing.owner.device.stats().value().refused == 100);
  CHECK(handing.owner.device.stats().value().ignored == 0);
  CHECK(handing.told_of(EventKind::guessing) == 0);
  handing.there = handing.user.device.import(handing.segment.descriptor()).value().segment;
  CHECK(handing.ask(handing.request()));
}

TEST_CASE("handed over: after a request with a late token the user asks again immediately") {
  Handing handing;
  const auto data = bytes_like(1000, 5);
  for (int round = 0; round < 20; ++round) {
    const RemoteSegment old = handing.there;
    REQUIRE(handing.segment.rotate().ok());
    REQUIRE(handing.segment.retire().ok());
    CHECK(handing.run(write(data, old)) == Status::remote_access);
    handing.there = handing.user.device.import(handing.segment.descriptor()).value().segment;
    CHECK(handing.becomes_copies(write(data, handing.there), 200ms));
  }
}

TEST_CASE("handed over: an event reports guesses at the owner's socket to the owner") {
  Handing handing;
  for (uint32_t i = 0; i < 16; ++i) {
    FileRequest wrong = handing.request();
    wrong.token ^= 1u << i;
    REQUIRE_FALSE(handing.ask(wrong));
  }
  CHECK(handing.told_of(EventKind::bad_tokens) == 16);
  CHECK(handing.told_of(EventKind::guessing) == 0);
  FileRequest wrong = handing.request();
  wrong.token ^= 1;
  REQUIRE_FALSE(handing.ask(wrong));
  CHECK(handing.told_of(EventKind::bad_tokens) == 1);
  CHECK(handing.told_of(EventKind::guessing) == 1);
}

TEST_CASE("handed over: a process that guesses does not lock out other processes") {
  Handing handing;
  const auto data = bytes_like(1000, 5);
  const Bystander guesser([&] {
    FileRequest wrong = handing.request();
    for (uint32_t i = 0; i < 40; ++i) {
      wrong.token ^= 1u << (i % 31);
      const int to = handing.say(&wrong, sizeof wrong);
      char byte = 0;
      pollfd answered{.fd = to, .events = POLLIN, .revents = 0};
      poll(&answered, 1, 100);
      [[maybe_unused]] const ssize_t bytes_read = recv(to, &byte, 1, MSG_DONTWAIT);
      close(to);
      Bell(handing.anybody.slot(0).bell.word).ring();
    }
    return 0;
  });
  REQUIRE(guesser.ready());
  const Statistics stats = handing.owner.device.stats().value();
  CHECK(stats.refused >= 17);
  CHECK(stats.ignored > 0);
  CHECK(handing.becomes_copies(write(data, handing.there)));
  CHECK(handing.owner.device.stats().value().refused == stats.refused);
}

TEST_CASE("handed over: invalid requests at the socket are counted, and have no other effect") {
  Handing handing;
  Prng prng(7);
  const auto malformed = [&] { return handing.owner.device.stats().value().dropped_malformed; };
  const uint64_t before = malformed();
  std::vector<std::byte> some(4096);
  for (int i = 0; i < 2000; ++i) {
    FileRequest request = handing.request();
    request.token ^= 1;
    std::memcpy(some.data(), &request, sizeof request);
    const size_t size = prng.chance(0.5) ? sizeof request : prng.below(some.size());
    // The invalid requests never contain the token together with its TokenID.
    for (size_t at = 0; at < size; at += prng.between(1, 12)) {
      some[at] = static_cast<std::byte>(prng.below(256));
    }
    const int to = handing.say(some.data(), size);
    REQUIRE(to >= 0);
    if (prng.chance(0.3)) (void)send(to, some.data(), 100, MSG_NOSIGNAL);
    const bool at_once = prng.chance(0.5);
    if (at_once) close(to);
    if (!at_once || i % 50 == 49) REQUIRE(handing.owner.device.stats().ok());
    if (!at_once) close(to);
  }
  CHECK(malformed() > before);
  CHECK(handing.becomes_copies(write(bytes_like(100, 1), handing.there)));
}

TEST_CASE("handed over: after unregister the user unmaps the memory") {
  Handing handing;
  const auto data = bytes_like(1000, 5);
  const size_t before = mapped_files();
  std::vector<Segment> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(handing.owner.device.allocate(1 << 20).value());
    const RemoteSegment there = handing.user.device.import(all.back().descriptor()).value().segment;
    REQUIRE(handing.becomes_copies(write(data, there)));
  }
  REQUIRE(handing.becomes_copies(write(data, handing.there)));
  CHECK(mapped_files() > before + 20);
  all.clear();
  // A user that makes calls, or that can be woken, is notified.
  for (int i = 0; i < 1000 && mapped_files() > before + 1; ++i) {
    REQUIRE(handing.run(write(data, handing.there)) == Status::ok);
    std::this_thread::sleep_for(1ms);
  }
  CHECK(mapped_files() <= before + 1);
}

TEST_CASE(
    "handed over: peers whose windows have different options use packets, in both directions") {
  Handing handing("window");
  const auto data = bytes_like(50'000, 9);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(handing.run(write(data, handing.there)) == Status::ok);
    std::this_thread::sleep_for(1ms);
  }
  CHECK(handing.copied() == 0);
  CHECK(std::ranges::equal(handing.landed(0, data.size()), data));
  Segment other = handing.user.device.allocate(given_bytes).value();
  REQUIRE(other.mapped());
  const RemoteSegment back = handing.owner.device.import(other.descriptor()).value().segment;
  REQUIRE(handing.owner.jetty.post(write(data, back)) == 1);
  CHECK(collect(handing.owner.jetty, 1, 0ms).size() <= 1);
  for (int i = 0; i < 2000 && handing.owner.jetty.vacant_berths() < 64; ++i) {
    collect(handing.user.jetty, 1, 1ms);
    collect(handing.owner.jetty, 1, 1ms);
  }
  CHECK(std::ranges::equal(other.bytes().first(data.size()), data));
  CHECK(handing.owner.device.stats().value().copied == 0);
}

// If a record says that its segment has no file, the window's memory with that number belongs to
// another segment.
TEST_CASE("handed over: a segment that has no file is not taken for memory of the window") {
  for (const Rights rights : {Rights::write, Rights::write | Rights::atomic}) {
    Handing handing("window", {.rights = rights, .policy = TokenPolicy::none});
    Segment beside = handing.user.device.allocate(given_bytes).value();
    REQUIRE(beside.mapped());
    const auto data = bytes_like(200'000, 5);
    CHECK(handing.run(write(data, handing.there, 40)) == Status::ok);
    CHECK(handing.copied() == 0);
    CHECK(std::ranges::equal(handing.landed(40, data.size()), data));
    CHECK(std::ranges::count(beside.bytes(), std::byte{0}) == given_bytes);
  }
}

TEST_CASE("handed over: a slot whose socket name is already taken is skipped") {
  WindowFile window("taken");
  const std::string name = window.path() + ".0";
  const std::string victim = window.path() + ".victim";
  close(::open(victim.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  REQUIRE(symlink(victim.c_str(), name.c_str()) == 0);
  {
    const Side owner = Side::open(window.device("?size=32M&share=segment"));
    const Side user = Side::open(window.device("?size=32M&share=segment"));
    CHECK(access((window.path() + ".1").c_str(), F_OK) == 0);
    CHECK(access((window.path() + ".2").c_str(), F_OK) == 0);
    struct stat about {};
    REQUIRE(lstat(name.c_str(), &about) == 0);
    CHECK(S_ISLNK(about.st_mode));
  }
  CHECK(access((window.path() + ".1").c_str(), F_OK) != 0);
  unlink(name.c_str());
  unlink(victim.c_str());
}

TEST_CASE("handed over: no file remains beside the window after its devices are closed") {
  std::string socket;
  {
    Handing handing;
    socket = handing.window.path() + ".0";
    CHECK(access(socket.c_str(), F_OK) == 0);
  }
  CHECK(access(socket.c_str(), F_OK) != 0);
}

}  // namespace
}  // namespace urma::test
