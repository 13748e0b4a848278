// SPDX-License-Identifier: Apache-2.0
// Holding and revoking memory of a window, with two openings of one window.

#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "drivers/cxl/lanes.h"
#include "drivers/cxl/window.h"
#include "tests/catch.h"
#include "tests/drivers/window_file.h"
#include "tests/refused_call.h"
#include "wire/frame.h"

namespace urma::test {
namespace {

using drivers::cxl::Window;
using Lease = drivers::SegmentMemory::Lease;
using Grant = drivers::SegmentMemory::Grant;
using Taken = drivers::SegmentMemory::Taken;

constexpr Grant granted{.id = TokenId(5),
                        .token = TokenValue{0x11223344},
                        .older = TokenValue{0x55667788},
                        .rights = Rights::read | Rights::write};
constexpr uint64_t bytes = 100'000;

struct Two {
  Two() {
    own = owner_window->join().value();
    slot = copier_window->join().value();
    REQUIRE(owner.take(bytes, lease) == Taken::taken);
    REQUIRE(owner.prepare(lease));
    owner.grant(lease, granted);
  }
  static std::unique_ptr<Window> opened(const WindowFile& file) {
    return Window::open({.path = file.path(), .bytes = 16 << 20}).value();
  }
  uint32_t generation() const { return owner_window->mapping().words().generation(own); }
  std::byte* hold(const MemoryRange& range) {
    return copier.hold(own, generation(), range, prepared);
  }
  // Returns the same range in the copier's mapping.
  MemoryRange range(uint64_t offset, uint64_t size) const {
    return {.address = lease.address + offset,
            .bytes = static_cast<uint32_t>(size),
            .id = granted.id,
            .token = granted.token,
            .wanted = Rights::write};
  }
  bool may(const MemoryRange& range) {
    const bool held = hold(range) != nullptr;
    if (held) CHECK(copier.let_go());
    return held;
  }

  PreparedSegment prepared;
  WindowFile file{"memory"};
  std::unique_ptr<Window> owner_window = opened(file);
  std::unique_ptr<Window> copier_window = opened(file);
  drivers::cxl::Segments& owner = owner_window->segments();
  drivers::cxl::Holder& copier = copier_window->holder();
  uint32_t own = 0;
  uint32_t slot = 0;  // the slot of the copier
  Lease lease;
};

TEST_CASE("a hold succeeds within the rights and bounds of the record, and not beyond") {
  Two two;
  CHECK(two.may(two.range(0, bytes)));
  CHECK(two.may(two.range(bytes - 1, 1)));
  CHECK_FALSE(two.may(two.range(bytes, 1)));
  CHECK_FALSE(two.may(two.range(bytes - 1, 2)));
  CHECK_FALSE(two.may(two.range(0, bytes + 1)));
  CHECK_FALSE(two.may(two.range(1, bytes)));
  MemoryRange range = two.range(0, 8);
  range.token = granted.older;
  CHECK(two.may(range));
  for (unsigned bit = 0; bit < 32; ++bit) {
    range.token = TokenValue(number(granted.token) ^ 1u << bit);
    CHECK_FALSE(two.may(range));
  }
  range = two.range(0, 8);
  range.id = TokenId(6);
  CHECK_FALSE(two.may(range));
  range = two.range(0, 8);
  range.wanted = Rights::atomic;
  CHECK_FALSE(two.may(range));
  CHECK(two.copier.hold(two.own, two.generation() + 2, two.range(0, 8), two.prepared) == nullptr);
  CHECK(two.copier.hold(two.own + 1, two.generation(), two.range(0, 8), two.prepared) == nullptr);
  Grant open = granted;
  open.checked = false;
  two.owner.grant(two.lease, open);
  range.wanted = Rights::write;
  range.token = TokenValue{7};
  CHECK(two.may(range));
}

TEST_CASE("releasing a hold reports whether the segment was closed meanwhile") {
  Two two;
  REQUIRE(two.hold(two.range(0, 8)) != nullptr);
  CHECK(two.owner.held(two.lease));
  CHECK(two.copier.let_go());
  CHECK_FALSE(two.owner.held(two.lease));
  REQUIRE(two.hold(two.range(0, 8)) != nullptr);
  two.owner.revoke(two.lease);
  CHECK(two.owner.held(two.lease));
  CHECK_FALSE(two.copier.let_go());
  CHECK_FALSE(two.owner.held(two.lease));
  CHECK(two.hold(two.range(0, 8)) == nullptr);
  // A segment that was closed and opened again counts as closed.
  two.owner.grant(two.lease, granted);
  REQUIRE(two.hold(two.range(0, 8)) != nullptr);
  two.owner.revoke(two.lease);
  two.owner.grant(two.lease, granted);
  CHECK_FALSE(two.copier.let_go());
}

TEST_CASE("a segment that was held is prepared: further uses see what a hold would see") {
  Two two;
  CHECK(two.prepared.take(two.range(0, 8)) == nullptr);
  std::byte* const at = two.hold(two.range(100, 8));
  REQUIRE(at != nullptr);
  REQUIRE(two.copier.let_go());
  CHECK_FALSE(two.owner.held(two.lease));
  for (const uint64_t offset : {uint64_t{0}, uint64_t{100}, bytes - 8}) {
    CHECK(two.prepared.take(two.range(offset, 8)) == at - 100 + offset);
    CHECK(two.owner.held(two.lease));
    CHECK(two.prepared.lane.let_go());
    CHECK_FALSE(two.owner.held(two.lease));
  }
  CHECK(two.prepared.take(two.range(0, bytes)) != nullptr);
  two.prepared.lane.let_go();

  MemoryRange other = two.range(0, 8);
  other.wanted = Rights::atomic;
  MemoryRange forged = two.range(0, 8);
  forged.token = TokenValue{1};
  MemoryRange named = two.range(0, 8);
  named.id = TokenId(number(named.id) + 1);
  MemoryRange before = two.range(0, 8);
  before.address -= 8;
  for (const MemoryRange& refused :
       {other, forged, named, before, two.range(bytes - 7, 8), two.range(bytes, 1),
        two.range(0, bytes + 1), two.range(8, UINT32_MAX), two.range(UINT64_MAX - 4, 8)}) {
    CHECK(two.prepared.take(refused) == nullptr);
    CHECK_FALSE(two.owner.held(two.lease));
  }

  // A use that has begun learns that the segment was closed; the next one does not begin, even if
  // the segment is open again.
  REQUIRE(two.prepared.take(two.range(0, 8)) != nullptr);
  two.owner.revoke(two.lease);
  CHECK(two.owner.held(two.lease));
  CHECK_FALSE(two.prepared.lane.let_go());
  CHECK(two.prepared.take(two.range(0, 8)) == nullptr);
  two.owner.grant(two.lease, granted);
  CHECK(two.prepared.take(two.range(0, 8)) == nullptr);
  CHECK_FALSE(two.owner.held(two.lease));
  REQUIRE(two.hold(two.range(0, 8)) != nullptr);
  REQUIRE(two.copier.let_go());
  CHECK(two.prepared.take(two.range(0, 8)) == at - 100);
  two.prepared.lane.let_go();

  // Nor does one begin once one of the two devices is over. If it is the copier's, the hold may be
  // that of another device already, and is not touched.
  Intruder intruder(two.file);
  auto& own = intruder.slot(two.slot);
  ++own.record.generation;
  own.hold.segment = 7;
  CHECK(two.prepared.take(two.range(0, 8)) == nullptr);
  CHECK(own.hold.segment == 7);
  --own.record.generation;
  ++intruder.slot(two.own).record.generation;
  CHECK(two.prepared.take(two.range(0, 8)) == nullptr);
  CHECK(own.hold.segment == 0);
}

TEST_CASE("adding a second token does not affect the holder of the memory") {
  Two two;
  REQUIRE(two.hold(two.range(0, 8)) != nullptr);
  Grant rotated = granted;
  rotated.older = granted.token;
  rotated.token = TokenValue{0x01020304};
  two.owner.grant(two.lease, rotated);
  CHECK(two.copier.let_go());
  MemoryRange range = two.range(0, 8);
  CHECK(two.may(range));
  range.token = rotated.token;
  CHECK(two.may(range));
  range.token = granted.older;
  CHECK_FALSE(two.may(range));
}

TEST_CASE("revoked memory that is held is moved, and not reused before it is released") {
  Two two;
  std::memset(two.lease.base, 7, bytes);
  std::byte* const late = two.hold(two.range(0, 8));
  REQUIRE(late != nullptr);
  two.owner.revoke(two.lease);
  std::array<Quarantined, 4> listed;
  REQUIRE(two.owner.quarantined(listed) == 1);
  CHECK(listed[0].address == two.lease.address);
  CHECK(listed[0].bytes == bytes);
  REQUIRE(two.owner.move(two.lease));
  CHECK(two.owner.moved(two.lease));
  std::memset(late, 9, bytes);
  for (uint64_t i = 0; i < bytes; ++i) REQUIRE(two.lease.base[i] == std::byte{7});
  REQUIRE(two.owner.restore(two.lease));
  CHECK_FALSE(two.owner.moved(two.lease));
  CHECK(two.lease.base[0] == std::byte{9});
  two.owner.give_back(two.lease);
  Lease other;
  REQUIRE(two.owner.take(bytes, other) == Taken::taken);
  CHECK(other.number != two.lease.number);
  two.copier.let_go();
  CHECK(two.owner.quarantined(listed) == 0);
  REQUIRE(two.copier_window->segments().take(bytes, other) == Taken::taken);
  CHECK(other.number == two.lease.number);
}

// The copier stores its hold and then checks the epoch. The owner closes the epoch and then looks
// for holds. Without a fence on both sides, it can happen that neither sees the other. On the
// owner's side the test does the same as `revoke` and `held`, but without their system calls, which
// would give the copier time.
// `interrupts`: the owner can interrupt the copier; otherwise the window says that it cannot.
void race(bool interrupts) {
  Two two;
  two.owner_window->mapping().words().changes().fences = interrupts ? 0 : 1;
  constexpr int rounds = 100'000;
  Intruder owner(two.file);
  const drivers::cxl::Barriers barriers(two.owner_window->mapping().words());
  drivers::cxl::SegmentRecord& record = owner.segment(two.lease.number);
  std::atomic<uint64_t>& epoch = record.epoch;
  auto& hold = owner.slot(two.slot).hold.segment;
  const uint64_t open = epoch;
  // Both threads wait here for each other, and then a random time. The last to arrive continues
  // first.
  alignas(64) std::atomic<int> arrived{0};
  const auto meet = [&](int time, int a_while) {
    arrived.fetch_add(1);
    for (int looks = 0; arrived.load(std::memory_order_acquire) < 2 * time; ++looks) {
      if (looks > 10'000) std::this_thread::yield();  // the other one may wait for this processor
    }
    for (int i = 0; i < a_while; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  std::atomic<bool> got{false};
  const uint32_t generation = two.generation();
  const MemoryRange range = two.range(0, 8);
  std::thread copier([&] {
    for (int i = 0; i < rounds; ++i) {
      meet(2 * i + 1, i / 256 % 256);
      got.store(two.copier.hold(two.own, generation, range, two.prepared) != nullptr,
                std::memory_order_relaxed);
      meet(2 * i + 2, 0);
      two.copier.let_go();
    }
  });
  uint64_t neither = 0;
  uint64_t late = 0;
  for (int i = 0; i < rounds; ++i) {
    epoch.store(open, std::memory_order_release);
    meet(2 * i + 1, i % 256);
    drivers::cxl::close_to_all(record);
    if (interrupts) {
      if (!barriers.after_closing()) FAIL("the kernel refuses barriers");
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    const bool held = hold.load(std::memory_order_acquire) != 0;
    meet(2 * i + 2, 0);
    neither += got && !held;
    late += !got;
  }
  copier.join();
  CHECK(neither == 0);
  INFO("closes that the copier saw: " << late);
  CHECK((late > 0 && late < rounds));
}

TEST_CASE("either the copier sees that memory is closed, or its owner sees that it is held") {
  race(true);
  race(false);
}

TEST_CASE("a thread that has a lane holds memory until it lets it go") {
  Two two;
  const auto& slots = two.copier_window->slots();
  drivers::cxl::Lanes lanes(two.copier_window->mapping().words(), two.copier_window->slots(),
                            two.copier);
  MappedLane first, second;
  REQUIRE(lanes.open(two.own, two.generation(), two.range(0, bytes), first) == Laned::opened);
  REQUIRE(lanes.open(two.own, two.generation(), two.range(0, bytes), second) == Laned::opened);
  CHECK_FALSE(two.owner.held(two.lease));
  for (const MappedLane& lane : {first, second}) {
    REQUIRE(lane.take());
    CHECK(two.owner.held(two.lease));
    CHECK(lane.let_go());
    CHECK_FALSE(two.owner.held(two.lease));
  }
  REQUIRE(second.take());
  two.owner.revoke(two.lease);
  CHECK(two.owner.held(two.lease));
  CHECK_FALSE(first.take());
  first.let_go();
  CHECK(two.owner.held(two.lease));
  CHECK_FALSE(second.let_go());
  CHECK_FALSE(two.owner.held(two.lease));
  MappedLane third;
  CHECK(lanes.open(two.own, two.generation(), two.range(0, bytes), third) == Laned::refused);
  two.owner.grant(two.lease, granted);
  CHECK_FALSE(second.take());  // another epoch
  second.let_go();
  REQUIRE(lanes.open(two.own, two.generation(), two.range(0, bytes), third) == Laned::opened);
  REQUIRE(third.take());
  lanes.close(third);
  CHECK_FALSE(two.owner.held(two.lease));
  CHECK(slots.own_hold()->lanes == 3);
}

// The kernel lets this thread, and no other one of this process, ask for no barrier.
template <class Function>
void without_barriers(Function&& function) {
  std::thread([&] {
    if (refuse_call(SYS_membarrier)) function();
  }).join();
}

// A device with several engines has a slot for each, and the segment belongs to one of them.
TEST_CASE("a segment is held through each slot of its device, and through no other") {
  Two two;
  const auto join = [&](Window& window, auto first) {
    const uint32_t slot = window.join(first).value();
    return std::pair(slot, window.mapping().words().generation(slot));
  };
  const auto through = [&](const std::pair<uint32_t, uint32_t>& slot) {
    std::byte* const at = two.copier.hold(slot.first, slot.second, two.range(0, 64), two.prepared);
    if (at != nullptr) CHECK(two.copier.let_go());
    return at != nullptr;
  };
  using First = drivers::cxl::WindowSettings::First;
  const auto sibling = Two::opened(two.file);
  const auto stranger = Two::opened(two.file);
  const auto other_sibling = Two::opened(two.file);
  const First first{two.own, two.generation()};
  const auto second = join(*sibling, std::optional(first));
  CHECK(through(second));
  CHECK(through(join(*other_sibling, std::optional(first))));
  CHECK_FALSE(through(join(*stranger, std::optional<First>())));
  // A device that had the first slot before, in another generation, was another device.
  const auto earlier = Two::opened(two.file);
  CHECK_FALSE(through(join(*earlier, std::optional(First{two.own, two.generation() - 2}))));
  // The owner has left, and no device has noticed it yet.
  drivers::cxl::SlotRecord& owner = two.owner_window->mapping().words().slot(two.own).record;
  owner.generation = first.generation + 2;
  CHECK_FALSE(through(second));
  owner.generation = first.generation;
  CHECK(through(second));
  // Any process may write any owner.
  auto* const records = two.owner_window->mapping().words().segment_records();
  drivers::cxl::SegmentRecord& record = records[two.lease.number];
  for (const uint32_t wrong : {drivers::cxl::slot_count, UINT32_MAX}) {
    record.owner = wrong;
    CHECK_FALSE(through(second));
  }
  record.owner = two.own;
  stranger->slots().leave();
  earlier->slots().leave();
  other_sibling->slots().leave();
  sibling->slots().leave();
}

TEST_CASE("a device that cannot ask for barriers says so in the window until it leaves") {
  Two two;
  std::atomic<uint32_t>& fences = two.owner_window->mapping().words().changes().fences;
  REQUIRE(two.owner_window->slots().barriers().available());
  CHECK(fences == 0);
  without_barriers([&] {
    const auto third = Two::opened(two.file);
    REQUIRE(third->join());
    CHECK_FALSE(third->slots().barriers().available());
    CHECK(fences == 1);
    drivers::cxl::Segments& segments = third->segments();
    Lease lease;
    REQUIRE(segments.take(bytes, lease) == Taken::taken);
    segments.grant(lease, granted);
    MemoryRange range = two.range(0, 8);
    range.address = lease.address;
    const uint32_t slot = third->slots().own();
    REQUIRE(two.copier.hold(slot, third->slots().own_generation(), range, two.prepared) != nullptr);
    segments.revoke(lease);
    CHECK(segments.held(lease));
    two.copier.let_go();
    CHECK_FALSE(segments.held(lease));
    CHECK(third->holder().hold(two.own, two.generation(), two.range(0, 8), two.prepared) !=
          nullptr);
    third->holder().let_go();
    const auto fourth = Two::opened(two.file);
    REQUIRE(fourth->join());
    CHECK(fences == 2);
    third->slots().leave();
    CHECK(fences == 1);
    fourth->slots().leave();
  });
  CHECK(fences == 0);
}

// The device was opened before a sandbox closed.
TEST_CASE("while the kernel refuses barriers, segments that were closed count as held") {
  Two two;
  without_barriers([&] {
    two.owner.revoke(two.lease);
    CHECK(two.owner.held(two.lease));
    CHECK(two.owner.held(two.lease));
    two.owner.give_back(two.lease);
    Lease lease;
    REQUIRE(two.owner.take(bytes, lease) == Taken::taken);
    CHECK(lease.number != two.lease.number);  // its granules stay taken
  });
  CHECK_FALSE(two.owner.held(two.lease));
}

}  // namespace
}  // namespace urma::test
