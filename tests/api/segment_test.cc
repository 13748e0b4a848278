// SPDX-License-Identifier: Apache-2.0
// Tokens and what they protect, both for packets and for copies in a window.

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"
#include "tests/no_address_space.h"

namespace urma::test {
namespace {

constexpr size_t granule_bytes = drivers::cxl::least_granule_bytes;
constexpr std::byte untouched{0xcd};

struct Way {
  bool mapped;
  std::string_view share;
};
// Packets, copies in the window, and copies in segments that were handed over.
constexpr Way all_ways[] = {{false, "window"}, {true, "window"}, {true, "segment"}};

// An owner and a user of its segment, which lies in the window's memory or in the owner's own.
struct Ends : UserAndOwner {
  explicit Ends(bool mapped, std::string_view share = "window")
      : UserAndOwner("cxl:", "?size=32M&share=" + std::string(share)), is_mapped(mapped) {}

  bool is_mapped;
  std::vector<std::unique_ptr<std::byte[]>> memory{};

  Segment segment(size_t bytes, const SegmentOptions& options = {}) {
    if (is_mapped) return owner.device.allocate(bytes, options).value();
    memory.push_back(std::make_unique<std::byte[]>(bytes));
    return owner.device.register_memory({memory.back().get(), bytes}, options).value();
  }
  Status write_to(const RemoteSegment& segment, std::byte value, size_t bytes = 100) {
    const std::vector<std::byte> data(bytes, value);
    return run(write(data, segment));
  }
  Status read_from(const RemoteSegment& segment) {
    std::vector<std::byte> data(100);
    return run(read(data, segment));
  }
};

TEST_CASE("both tokens are valid after rotate, and only the second one after retire") {
  for (const auto [mapped, share] : all_ways) {
    INFO("mapped " << mapped << " share " << share);
    Ends ends(mapped, share);
    Segment segment = ends.segment(4096);
    const RemoteSegment first = ends.import(segment);
    const TokenValue value = segment.rotate().value();
    const RemoteSegment second = ends.import(segment);
    CHECK(second.token == value);
    CHECK(segment.local().token == value);
    CHECK(second.token_id == first.token_id);
    CHECK(first.token != second.token);
    const uint64_t copied = ends.user.device.stats().value().copied;
    for (const RemoteSegment& one : {first, second}) {
      CHECK(ends.write_to(one, std::byte{1}) == Status::ok);
      CHECK(ends.read_from(one) == Status::ok);
    }
    CHECK((ends.user.device.stats().value().copied > copied) == mapped);
    CHECK(segment.rotate().status() == Status::invalid_argument);
    REQUIRE(segment.retire().ok());
    CHECK(ends.write_to(first, std::byte{2}) == Status::remote_access);
    CHECK(ends.read_from(first) == Status::remote_access);
    CHECK(segment.bytes()[0] == std::byte{1});
    CHECK(ends.write_to(second, std::byte{3}) == Status::ok);
    CHECK(segment.bytes()[0] == std::byte{3});
    REQUIRE(segment.rotate().ok());
    REQUIRE(segment.unregister().ok());
    CHECK(ends.write_to(second, std::byte{4}) == Status::remote_access);
    CHECK(segment.rotate().status() == Status::invalid_argument);
    CHECK(segment.retire().ok());
    CHECK(segment.bytes()[0] == std::byte{3});
  }
}

// A peer that has either of two valid tokens is never refused. After `retire`, a peer that kept the
// old one is always refused.
TEST_CASE("tokens are rotated under full load") {
  for (const auto [mapped, share] : all_ways) {
    INFO("mapped " << mapped << " share " << share);
    Ends ends(mapped, share);
    Segment segment = ends.segment(256 << 10);
    std::mutex mutex;
    RemoteSegment current = ends.import(segment);
    std::atomic<uint64_t> current_number{1};
    std::atomic<uint64_t> used_number{0};
    std::atomic<bool> wanted{false};  // mutexes are not fair
    std::atomic<bool> over{false};
    uint64_t works = 0;
    uint64_t refused = 0;
    std::thread user([&] {
      const std::vector<std::byte> data(200'000, std::byte{1});
      while (!over) {
        while (wanted) std::this_thread::yield();
        const std::lock_guard lock(mutex);
        const uint64_t number = current_number;
        for (const size_t bytes : {8, 4096, 200'000}) {
          refused += ends.run(write(std::span(data).first(bytes), current)) != Status::ok;
          ++works;
        }
        used_number = number;
      }
    });
    uint64_t wrong = 0;
    for (uint64_t round = 2; round < 150; ++round) {
      const RemoteSegment old = current;
      wrong += !segment.rotate().ok();
      while (used_number < round - 1) std::this_thread::yield();
      wanted = true;
      {
        const std::lock_guard lock(mutex);
        current.token = segment.local().token;
        current_number = round;
        wanted = false;
      }
      while (used_number < round) std::this_thread::yield();
      // If the user is preempted in the middle of a copy, it holds the segment.
      Result<void> retired = segment.retire();
      for (int i = 0; i < 500 && retired.status() == Status::not_fenced; ++i) {
        retired = segment.retire();
      }
      wrong += !retired.ok();
      wanted = true;
      const std::lock_guard lock(mutex);
      wrong += ends.write_to(old, std::byte{9}) != Status::remote_access;
      wanted = false;
    }
    over = true;
    user.join();
    CHECK(works > 500);
    CHECK(refused == 0);
    CHECK(wrong == 0);
    CHECK(segment.bytes()[0] == std::byte{1});
  }
}

TEST_CASE("segments that share a TokenID are unregistered alone or revoked together") {
  for (const auto [mapped, share] : all_ways) {
    INFO("mapped " << mapped << " share " << share);
    Ends ends(mapped, share);
    std::vector<Segment> all;
    all.push_back(ends.segment(4096));
    for (const Rights rights : {Rights::write, Rights::read, Rights::read | Rights::write}) {
      all.push_back(ends.segment(4096, {.rights = rights, .with = &all[0]}));
    }
    std::vector<RemoteSegment> there;
    for (const Segment& segment : all) there.push_back(ends.import(segment));
    for (RemoteSegment& one : there) {
      CHECK(one.token_id == there[0].token_id);
      CHECK(one.token == there[0].token);
      one.rights = Rights::read | Rights::write;
    }
    CHECK(ends.write_to(there[1], std::byte{1}) == Status::ok);
    CHECK(ends.read_from(there[1]) == Status::remote_access);
    CHECK(ends.write_to(there[2], std::byte{1}) == Status::remote_access);
    CHECK(ends.read_from(there[2]) == Status::ok);
    REQUIRE(all[3].rotate().ok());
    CHECK(all[0].local().token == all[3].local().token);
    CHECK(ends.write_to(ends.import(all[0]), std::byte{2}) == Status::ok);
    REQUIRE(all[1].unregister().ok());
    CHECK(ends.write_to(there[1], std::byte{3}) == Status::remote_access);
    CHECK(ends.write_to(there[0], std::byte{3}) == Status::ok);
    REQUIRE(all[0].revoke().ok());
    for (const RemoteSegment& one : there) {
      CHECK(ends.write_to(one, std::byte{4}) == Status::remote_access);
      CHECK(ends.read_from(one) == Status::remote_access);
    }
    CHECK(all[0].bytes()[0] == std::byte{3});
    for (Segment& segment : all) CHECK(segment.unregister().ok());
    CHECK(ends.owner.device.stats().value().segments == 1);
  }
}

TEST_CASE("memory that cannot be registered is refused with the reason") {
  Ends ends(true);
  Device& device = ends.owner.device;
  std::vector<std::byte> memory(8192);
  const Segment first = device.register_memory(std::span(memory).first(4096)).value();
  const auto refused = [&](std::span<std::byte> bytes, const SegmentOptions& options) {
    const auto made = device.register_memory(bytes, options);
    return made ? Status::ok : made.status();
  };
  const std::span all(memory);
  CHECK(refused(all.subspan(4095, 1), {.with = &first}) == Status::invalid_argument);
  CHECK(refused(all, {.with = &first}) == Status::invalid_argument);
  CHECK(refused(all.subspan(4096), {.with = &first}) == Status::ok);
  CHECK(refused(all, {.with = &ends.user.segment}) == Status::invalid_argument);
  CHECK(refused(all, {.policy = TokenPolicy::signature}) == Status::unsupported);
  CHECK(refused(all, {.policy = TokenPolicy::encryption}) == Status::unsupported);
  CHECK(refused({}, {}) == Status::invalid_argument);
  CHECK(device.allocate(4096, {.policy = TokenPolicy::encryption}).status() == Status::unsupported);
  Segment gone = device.allocate(4096).value();
  REQUIRE(gone.unregister().ok());
  CHECK(refused(all, {.with = &gone}) == Status::invalid_argument);
}

TEST_CASE("a segment without token check accepts any token, within its bounds and rights") {
  for (const auto [mapped, share] : all_ways) {
    INFO("mapped " << mapped << " share " << share);
    Ends ends(mapped, share);
    Segment segment = ends.segment(4096, {.rights = Rights::write, .policy = TokenPolicy::none});
    RemoteSegment there = ends.import(segment);
    there.rights = Rights::read | Rights::write;
    there.token = TokenValue(number(there.token) ^ 0x1234);
    CHECK(ends.write_to(there, std::byte{1}) == Status::ok);
    CHECK(segment.bytes()[0] == std::byte{1});
    CHECK(ends.read_from(there) == Status::remote_access);
    there.bytes += 4096;
    CHECK(ends.write_to(there, std::byte{2}, 4097) == Status::remote_access);
    CHECK(segment.rotate().status() == Status::invalid_argument);
    REQUIRE(segment.unregister().ok());
    CHECK(ends.write_to(there, std::byte{3}) == Status::remote_access);
  }
}

// The test follows the advice in the errors of `rotate`.
TEST_CASE("rotate says why there is no new token, and its advice gives one") {
  for (const auto [mapped, share] : all_ways) {
    INFO("mapped " << mapped << " share " << share);
    Ends ends(mapped, share);
    const auto why = [](Segment& segment) {
      const auto refused = segment.rotate();
      CHECK(refused.status() == Status::invalid_argument);
      return refused.error().message;
    };
    Segment two = ends.segment(4096);
    REQUIRE(two.rotate().ok());
    CHECK(why(two).ends_with("Fix: retire the old token first (Segment::retire)"));
    REQUIRE(two.retire().ok());
    CHECK(two.rotate().ok());

    Segment none = ends.segment(4096, {.rights = Rights::write, .policy = TokenPolicy::none});
    CHECK(why(none).ends_with("Fix: register the memory again with TokenPolicy::plain_text"));
    Segment plain = ends.segment(4096, {.policy = TokenPolicy::plain_text});
    CHECK(plain.rotate().ok());

    for (const bool all : {false, true}) {
      Segment gone = ends.segment(4096);
      REQUIRE((all ? gone.revoke() : gone.unregister()).ok());
      CHECK(why(gone).ends_with("Fix: register the memory again, which draws a new token"));
      CHECK(why(gone).find("retire") == std::string::npos);
      CHECK(ends.segment(4096).rotate().ok());
    }
  }
}

// ---- S6

// A segment with a page of the owner's own memory on both sides, which must not change.
struct Fenced {
  static constexpr size_t page = 4096;
  explicit Fenced(Ends& ends, Rights rights, size_t size) : bytes(size) {
    if (ends.is_mapped) {
      segment.emplace(ends.owner.device.allocate(size, rights).value());
      // Checks only the bytes behind the segment in its granule. The memory in front belongs to
      // others.
      const size_t unit = ends.medium.text().ends_with("segment") ? page : granule_bytes;
      all = {segment->bytes().data(), (size + unit - 1) / unit * unit};
      front = 0;
    } else {
      own.resize(size + 2 * page);
      all = own;
      front = page;
      segment.emplace(ends.owner.device.register_memory(all.subspan(page, size), rights).value());
    }
    std::ranges::fill(all, untouched);
    there = ends.import(*segment);
    there.rights = Rights::read | Rights::write;
  }
  bool as_it_was() const {
    return std::ranges::all_of(all, [](std::byte byte) { return byte == untouched; });
  }

  size_t bytes;
  std::vector<std::byte> own{};
  std::span<std::byte> all{};
  size_t front = 0;
  std::optional<Segment> segment{};
  RemoteSegment there{};
};

// Hides from the initiator a mistake that it could find by itself: the initiator takes the segment
// for a larger one.
TEST_CASE("bounds and rights hold at every edge, for every operation, with packets and copies") {
  for (const auto [mapped, share] : all_ways) {
    Ends ends(mapped, share);
    const std::string way = std::string(mapped ? "mapped " : "packets ") + std::string(share);
    const RemoteJetty told = ends.user.device.import(ends.owner.line()).value().jetty;
    Segment words = ends.segment(4096);
    const RemoteSegment where = ends.import(words);
    for (const size_t size : {size_t{1}, size_t{4096}, size_t{65'000}}) {
      for (const Rights rights :
           {Rights::local_only, Rights::read, Rights::write, Rights::read | Rights::write}) {
        Fenced fenced(ends, rights, size);
        const auto base = fenced.there.address;
        const std::vector<std::byte> data(size + 2, std::byte{1});
        std::vector<std::byte> back(size + 2);
        const auto each = [&](uint64_t address, size_t bytes, bool inside) {
          INFO(way << " size " << size << " rights " << number(rights) << " from "
                   << static_cast<int64_t>(address - base) << " bytes " << bytes);
          RemoteSegment forged = fenced.there;
          forged.address = address;
          forged.bytes = bytes;
          const auto from = std::span(data).first(bytes);
          const bool may_write = inside && (bytes == 0 || has(rights, Rights::write));
          const bool may_read = inside && (bytes == 0 || has(rights, Rights::read));
          for (const Work& work : {write(from, forged), write(from, forged).to(told).immediate(5),
                                   write(from, forged).notify(where, 0, 5)}) {
            const Status status = ends.run(work);
            CHECK(status == (may_write ? Status::ok : Status::remote_access));
            CHECK(fenced.as_it_was() == (!may_write || bytes == 0));
            std::ranges::fill(fenced.all, untouched);
          }
          CHECK(ends.run(read(std::span(back).first(bytes), forged)) ==
                (may_read ? Status::ok : Status::remote_access));
          collect(ends.owner.jetty, 1, 0ms);
        };
        each(base, size, true);
        each(base + size - 1, 1, true);
        each(base, 0, true);
        each(base + size + 1, 0, true);  // touches nothing, and is not checked (UB 6.2)
        each(base - 1, 1, false);
        each(base - 1, size, false);
        each(base - 1, size + 2, false);
        each(base, size + 1, false);
        each(base + 1, size, false);
        each(base + size, 1, false);
        each(base + size - 1, 2, false);
        each(UINT64_MAX, 1, false);
        each(0, 1, false);
      }
    }
    // The target of a notification is checked like that of a write.
    for (const uint64_t at : {uint64_t{4096}, uint64_t{4088} + 4096, uint64_t{0} - 8}) {
      Work work = write(std::span<const std::byte>(), where).notify(where, 0, 5);
      work.notify_address = where.address + at;
      CHECK(ends.run(work) == Status::remote_access);
    }
  }
}

// ---- mapped memory with a hold on it

// Simulates a process that was stopped in the middle of a copy: its slot says that it holds the
// segment.
struct Held {
  Held() {
    std::ranges::fill(segment.bytes(), std::byte{7});
    REQUIRE(ends.write_to(ends.import(segment), std::byte{7}) == Status::ok);
    REQUIRE(stopped.slot(2).record.generation.load() % 2 == 1);
    hold() = number() + 1;
  }
  std::atomic<uint32_t>& hold() { return stopped.slot(2).hold.segment; }
  uint32_t number() const {
    return static_cast<uint32_t>((remote.address & ~drivers::cxl::in_the_window) >>
                                 drivers::cxl::offset_bits);
  }
  // Makes the stores that the stopped process makes when it continues.
  void write_late(std::byte value) {
    const drivers::cxl::Parts parts = stopped.parts();
    std::memset(&stopped.all()[parts.memory_at + number() * parts.granule_bytes],
                static_cast<int>(value), bytes);
  }
  bool all_are(std::byte value) const {
    return std::ranges::all_of(segment.bytes(), [&](std::byte byte) { return byte == value; });
  }

  static constexpr size_t bytes = 1 << 20;
  Ends ends{true};
  Side third = Side::open(ends.medium.window().device(""), {.threads = Threads::inlined});
  Intruder stopped{ends.medium.window()};
  Segment segment = ends.segment(bytes);
  RemoteSegment remote = segment.local();
};

TEST_CASE("late stores of a stopped process that holds revoked memory do not reach the owner") {
  Held held;
  Device& device = held.ends.owner.device;
  CHECK(device.quarantined().value().empty());
  REQUIRE(held.segment.unregister().ok());
  CHECK(held.all_are(std::byte{7}));
  held.write_late(std::byte{9});
  CHECK(held.all_are(std::byte{7}));
  std::ranges::fill(held.segment.bytes(), std::byte{8});
  const auto quarantined = held.ends.user.device.quarantined().value();
  REQUIRE(quarantined.size() == 1);
  CHECK(quarantined[0].address == held.remote.address);
  CHECK(quarantined[0].bytes == Held::bytes);
  CHECK(quarantined[0].held_by == held.third.device.endpoint());
  CHECK(held.segment.unregister().ok());
  CHECK(device.stats().value().not_fenced == 0);
  { const Segment gone = std::move(held.segment); }
  // The memory is not allocated again before the hold ends. Then it belongs to the window again.
  held.segment = held.ends.segment(Held::bytes);
  CHECK(held.segment.local().address != held.remote.address);
  held.hold() = 0;
  CHECK(device.quarantined().value().empty());
  Segment next = held.ends.segment(Held::bytes);
  REQUIRE(next.local().address == held.remote.address);
  CHECK(next.bytes()[0] == std::byte{0});
  CHECK(held.ends.write_to(held.ends.import(next), std::byte{5}) == Status::ok);
  CHECK(next.bytes()[0] == std::byte{5});
}

TEST_CASE("segments that share a TokenID are revoked together even if one of them is held") {
  Held held;
  Segment other = held.ends.segment(Held::bytes, {.with = &held.segment});
  Segment own_memory = [&] {
    held.ends.is_mapped = false;
    return held.ends.segment(4096, {.with = &held.segment});
  }();
  const RemoteSegment there = held.ends.import(other);
  const RemoteSegment unmapped = held.ends.import(own_memory);
  REQUIRE(held.ends.write_to(unmapped, std::byte{1}) == Status::ok);
  REQUIRE(other.revoke().ok());
  held.write_late(std::byte{9});
  CHECK(held.all_are(std::byte{7}));
  for (const RemoteSegment& one : {there, unmapped, held.remote}) {
    CHECK(held.ends.write_to(one, std::byte{9}) == Status::remote_access);
  }
  CHECK(held.segment.unregister().ok());
}

TEST_CASE("revoking a segment that was unregistered alone leaves the others of its TokenID valid") {
  Held held;
  Segment other = held.ends.segment(Held::bytes, {.with = &held.segment});
  const RemoteSegment there = held.ends.import(other);
  REQUIRE(held.segment.unregister().ok());
  REQUIRE(held.segment.revoke().ok());
  CHECK(held.ends.write_to(there, std::byte{9}) == Status::ok);
  CHECK(other.unregister().ok());
}

TEST_CASE("if pages cannot be replaced, the error says that revoked memory may still change") {
  if (!NoAddressSpace::possible) return;
  Held held;
  Device& device = held.ends.owner.device;
  {
    const NoAddressSpace none;
    const auto revoked = held.segment.revoke();
    REQUIRE(revoked.status() == Status::not_fenced);
    CHECK(revoked.error().message.find("Fix: ") != std::string::npos);
    CHECK(held.segment.unregister().status() == Status::not_fenced);
  }
  CHECK(device.stats().value().not_fenced == 2);
  CHECK(device.quarantined().value().size() == 1);
  held.hold() = 0;
  CHECK(held.segment.unregister().ok());
  CHECK(device.quarantined().value().empty());
}

TEST_CASE("a token is not reported as retired while a peer may still copy with it") {
  Held held;
  REQUIRE(held.segment.rotate().ok());
  const RemoteSegment second = held.ends.import(held.segment);
  CHECK(held.segment.retire().status() == Status::not_fenced);
  CHECK(held.ends.write_to(held.remote, std::byte{9}) == Status::remote_access);
  CHECK(held.ends.write_to(second, std::byte{8}) == Status::ok);
  held.hold() = 0;
  CHECK(held.segment.retire().ok());
  const uint64_t copied = held.ends.user.device.stats().value().copied;
  CHECK(held.ends.write_to(second, std::byte{8}) == Status::ok);
  CHECK(held.ends.user.device.stats().value().copied == copied + 1);
}

TEST_CASE("revoke returns not_fenced each time it is repeated, until the pages can be replaced") {
  if (!NoAddressSpace::possible) return;
  Held held;
  Segment other = held.ends.segment(Held::bytes, {.with = &held.segment});
  {
    const NoAddressSpace none;
    CHECK(other.revoke().status() == Status::not_fenced);
    CHECK(other.revoke().status() == Status::not_fenced);
    CHECK(other.unregister().ok());
    CHECK(held.segment.unregister().status() == Status::not_fenced);
  }
  CHECK(other.revoke().ok());
  const std::byte before = held.segment.bytes()[0];
  held.write_late(std::byte{9});
  CHECK(held.segment.bytes()[0] == before);
}

}  // namespace
}  // namespace urma::test
