// SPDX-License-Identifier: Apache-2.0
// The parts of a window, each alone, on a plain file: which slots, rings and granules belong to
// which opening.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/file_system.h"
#include "drivers/cxl/arrivals.h"
#include "drivers/cxl/granules.h"
#include "drivers/cxl/opener.h"
#include "drivers/cxl/rings.h"
#include "drivers/cxl/slots.h"
#include "drivers/cxl/window_lock.h"
#include "tests/catch.h"
#include "tests/refused_call.h"
#include "tests/unit/mentions.h"

namespace urma::drivers::cxl {
namespace {

using namespace std::chrono_literals;
using test::mentions;
using Taken = SegmentMemory::Taken;

// A plain file, removed with it.
struct PlainFile {
  ~PlainFile() { unlink(path.c_str()); }
  std::unique_ptr<Mapping> open(uint64_t bytes) const {
    const WindowSettings settings{.path = path, .bytes = bytes};
    return Opener(settings).open().value();
  }
  std::string path = "/tmp/urma-test-" + std::to_string(getpid()) + "-window";
};

// One opening of the window, as a process has it.
struct Opening {
  explicit Opening(const PlainFile& file, uint64_t bytes = 8 << 20)
      : mapping(file.open(bytes)),
        slots(*mapping, nullptr),
        rings(mapping->file(), mapping->words(), slots) {}
  std::unique_ptr<Mapping> mapping;
  Slots slots;
  Rings rings;
};

TEST_CASE("a window is created once, found by others, and refused with another size or content") {
  const PlainFile file;
  const auto first = file.open(1 << 20);
  const auto second = file.open(0);
  CHECK(first->id() == second->id());
  CHECK(second->bytes() == 1 << 20);
  CHECK(first->words().parts().rings == second->words().parts().rings);
  const WindowSettings larger{.path = file.path, .bytes = 2 << 20};
  const auto refused = Opener(larger).open();
  REQUIRE_FALSE(refused);
  CHECK(mentions(refused.error().message, "exists and has 1M, not 2M"));
  first->words().header().magic.store(1);
  const WindowSettings same{.path = file.path};
  CHECK(Opener(same).open().status() == Status::invalid_argument);
}

TEST_CASE("a window that has all its memory is joined without taking the memory again") {
  const PlainFile file{"/dev/shm/urma-test-" + std::to_string(getpid()) + "-taken"};
  const auto first = file.open(8 << 20);
  bool refused = false;
  bool joined = false;
  std::thread([&] {
    refused = test::refuse_call(SYS_fallocate);
    const WindowSettings same{.path = file.path, .bytes = 8 << 20};
    joined = Opener(same).open().ok();
  }).join();
  if (!refused) {
    WARN("skipped: the kernel has no filters of system calls");
    return;
  }
  CHECK(joined);
  // Memory that is missing is taken.
  REQUIRE(first->file().give_back_memory(4 << 20, page_bytes));
  CHECK(allocated_bytes(first->file().descriptor()) == (8 << 20) - page_bytes);
  file.open(8 << 20);
  CHECK(allocated_bytes(first->file().descriptor()) == 8 << 20);
}

// A file of two open files, whose locks exclude each other.
class LockedFile {
 public:
  LockedFile() {
    REQUIRE(waiter_ >= 0);
    REQUIRE(lock_->held());
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    lock_.reset();
    close(waiter_);
    close(holder_);
  }

  void take(int page) { change(0, page); }
  void give_back(int page) { change(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page); }
  void unlock() { lock_.reset(); }
  bool locks_within(Duration at_most) const { return WindowLock(waiter_, at_most).held(); }

 private:
  void change(int how, int page) const {
    const auto bytes = static_cast<off_t>(page_bytes);
    [[maybe_unused]] const int done = fallocate(holder_, how, page * bytes, bytes);
  }

  int holder_ = memfd_create("window", MFD_CLOEXEC);
  int waiter_ = open(("/proc/self/fd/" + std::to_string(holder_)).c_str(), O_RDWR | O_CLOEXEC);
  std::optional<WindowLock> lock_{std::in_place, holder_};
};

TEST_CASE("a process waits for the lock while its holder takes or gives back memory") {
  constexpr int pages = 14;
  for (const bool gives_back : {false, true}) {
    LockedFile file;
    for (int page = 0; gives_back && page < pages; ++page) file.take(page);
    std::thread holder([&] {
      for (int page = 0; page < pages; ++page) {
        std::this_thread::sleep_for(50ms);
        gives_back ? file.give_back(page) : file.take(page);
      }
      file.unlock();
    });
    CHECK(file.locks_within(500ms));
    holder.join();
  }
}

TEST_CASE("a process stops waiting for the lock while the same memory is taken and given back") {
  LockedFile file;
  std::atomic<bool> over = false;
  std::thread user([&] {
    for (int turn = 0; turn < 1000 && !over; ++turn) {
      std::this_thread::sleep_for(10ms);
      turn % 2 == 0 ? file.take(0) : file.give_back(0);
    }
    file.unlock();
  });
  CHECK_FALSE(file.locks_within(100ms));
  over = true;
  user.join();
}

TEST_CASE("a mapping reads what another one stores, and released pages read as zeros") {
  const PlainFile file;
  const auto first = file.open(8 << 20);
  const auto second = file.open(0);
  std::atomic<uint32_t>& word = first->words().slot(3).record.notifications;
  first->words().store(word, 7u);
  CHECK(second->words().seen(second->words().slot(3).record.notifications) == 7);
  std::byte* const memory = first->words().memory_of(0);
  memory[5] = std::byte{1};
  if (first->file().give_back_memory(first->words().offset_of(memory), page_bytes)) {
    CHECK(second->words().memory_of(0)[5] == std::byte{});
  }
  CHECK(first->file().here());
  first->file().abandon();
  CHECK_FALSE(first->file().here());
}

TEST_CASE("a slot belongs to one opening until it leaves or its process dies") {
  const PlainFile file;
  Opening first(file);
  Opening second(file);
  CHECK_FALSE(first.slots.owned());
  const uint32_t slot = first.slots.join().value();
  CHECK(first.slots.owned());
  CHECK(second.slots.join().value() == slot + 1);
  CHECK(second.slots.inhabited(slot));
  CHECK_FALSE(second.slots.inhabited(slot + 2));
  CHECK(first.slots.endpoint_of(slot) == second.slots.endpoint_of(slot));
  CHECK_FALSE(first.slots.endpoint_of(slot) == first.slots.endpoint_of(slot + 1));

  // The opening dies: its lock is released and its record stays until the other one looks.
  const uint32_t generation = second.mapping->words().generation(slot);
  const uint64_t changes = second.mapping->words().changes().count;
  first.mapping->file().abandon();
  CHECK_FALSE(first.slots.owned());
  CHECK_FALSE(second.slots.inhabited(slot));
  CHECK(second.mapping->words().generation(slot) == generation + 1);
  CHECK(second.mapping->words().changes().count > changes);
  second.slots.leave();
  CHECK(second.slots.own() == Slots::none);
}

TEST_CASE("a pair has two rings of its own, which are free when both ends have released them") {
  const PlainFile file;
  Opening first(file, 1 << 20);  // two rings
  Opening second(file, 0);
  Opening third(file, 0);
  const uint32_t a = first.slots.join().value();
  const uint32_t b = second.slots.join().value();
  const uint32_t c = third.slots.join().value();
  using Claim = Rings::Claim;
  CHECK(first.rings.claim_pair(a, c + 1) == Claim::nobody_there);
  REQUIRE(first.rings.claim_pair(a, b) == Claim::made);
  CHECK(second.rings.claim_pair(b, a) == Claim::made);  // the same two rings
  const RingOwner owner = owner_of(third.mapping->words(), 0);
  CHECK(owner.from == a);
  CHECK(owner.to == b);
  CHECK(owner_of(third.mapping->words(), 1).to == a);
  CHECK(third.rings.claim_pair(c, a) == Claim::no_ring);
  {
    const WindowLock lock(second.mapping->file().descriptor());
    CHECK(third.rings.claim_pair(c, a) == Claim::not_now);
  }
  // One end leaves. The other one has to release the rings, too.
  first.slots.leave();
  REQUIRE(first.slots.join().value() == a);
  CHECK(third.rings.claim_pair(c, a) == Claim::no_ring);
  for (const uint32_t ring : {0u, 1u}) {
    RingControl& control = second.mapping->words().ring(ring).control;
    const uint32_t serial = owner_of(second.mapping->words(), ring).serial;
    mark_let_go(second.mapping->words(), ring, serial + 1,
                control.receiver.let_go);  // of another owner
    mark_let_go(second.mapping->words(), ring, serial,
                ring == 0 ? control.receiver.let_go : control.sender.let_go);
  }
  CHECK(third.rings.claim_pair(c, a) == Claim::made);
}

TEST_CASE("granules are taken in rows, and are free when returned and held by no device") {
  const PlainFile file;
  Opening first(file, 16 << 20);
  Opening second(file, 0);
  Granules granules(*first.mapping, first.slots, false);
  Granules others(*second.mapping, second.slots, false);
  uint32_t one = 0;
  CHECK(granules.take(1, one) == Taken::no_room);  // this device has no slot
  first.slots.join().value();
  const uint32_t copier = second.slots.join().value();
  const uint64_t granule = first.mapping->words().parts().granule_bytes;
  REQUIRE(granules.take(granule + 1, one) == Taken::taken);
  CHECK(granules.whole_bytes(granule + 1) == 2 * granule);
  uint32_t two = 0;
  REQUIRE(others.take(1, two) == Taken::taken);
  CHECK(two == one + 2);
  CHECK(others.take(granule * granules.count(), two) == Taken::no_room);

  REQUIRE(granules.zero(one, granule + 1));
  granules.at(one)[granule] = std::byte{1};
  REQUIRE(granules.zero(one, granule + 1));
  CHECK(granules.at(one)[granule] == std::byte{});

  // As long as a device holds the granule, it is not given to other segments.
  second.slots.own_hold()->segment.store(one + 1);
  CHECK(granules.holds(copier, one));
  granules.give_back(one);
  uint32_t next = 0;
  REQUIRE(others.take(1, next) == Taken::taken);
  CHECK(next != one);
  second.slots.own_hold()->segment.store(0);
  REQUIRE(others.take(2 * granule, next) == Taken::taken);
  CHECK(next == one);
}

TEST_CASE("arrivals read each ring in turn, and one incarnation of a sender after the other") {
  const PlainFile file;
  Opening first(file);
  Opening second(file, 0);
  const uint32_t to = first.slots.join().value();
  const uint32_t from = second.slots.join().value();
  REQUIRE(second.rings.claim_pair(from, to) == Rings::Claim::made);
  const RingOwner owner = owner_of(first.mapping->words(), 0);
  REQUIRE(owner.from == from);
  Arrivals arrivals(first.mapping->words(), first.slots);
  CHECK(arrivals.quiet());
  REQUIRE(arrivals.add(0, owner));
  REQUIRE(arrivals.add(0, owner));  // this ring is known already
  CHECK(arrivals.quiet());

  MarkedLines marked{};
  RingWriter writer(second.mapping->words().ring(0), marked);
  for (int i = 0; i < 2; ++i) {
    std::byte* const message = writer.begin(100);
    REQUIRE(message != nullptr);
    message[0] = std::byte(i + 1);
    writer.end();
  }
  CHECK_FALSE(arrivals.quiet());
  std::array<RxFrame, 4> frames;
  PortCounters counters;
  REQUIRE(arrivals.receive(frames, true, counters) == 2);
  CHECK(counters.frames_received == 2);
  CHECK(frames[1].data[0] == std::byte{2});
  CHECK(*frames[0].from == first.slots.endpoint_of(from));

  // The sender leaves and comes back. The packets that it left in the ring are still read.
  second.slots.leave();
  REQUIRE(second.slots.join().value() == from);
  arrivals.note_ended();
  REQUIRE(second.rings.claim_pair(from, to) == Rings::Claim::made);
  uint32_t ring = 0;
  while (owner_of(first.mapping->words(), ring).from != from ||
         owner_of(first.mapping->words(), ring).from_generation != second.slots.own_generation()) {
    REQUIRE(++ring < first.mapping->words().parts().rings);
  }
  CHECK_FALSE(arrivals.add(ring, owner_of(first.mapping->words(), ring)));
  CHECK_FALSE(writer.empty());
  arrivals.release(std::span(frames).first(2));
  CHECK(writer.empty());
  CHECK(arrivals.add(ring, owner_of(first.mapping->words(), ring)));
  arrivals.let_go_of_all();
  CHECK(arrivals.quiet());
  const uint32_t serial = owner_of(first.mapping->words(), ring).serial;
  CHECK(first.mapping->words().ring(ring).control.receiver.let_go == serial);
}

}  // namespace
}  // namespace urma::drivers::cxl
