// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/handed_over.h"

#include <array>
#include <memory>

#include "drivers/cxl/opener.h"
#include "tests/catch.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::cxl::Granules;
using drivers::cxl::HandedOver;
using drivers::cxl::HandOver;
using drivers::cxl::Mapping;
using drivers::cxl::Slots;

constexpr uint64_t segment_bytes = 4096;
constexpr TokenValue right_token{6};

std::unique_ptr<Mapping> open_window(const WindowFile& file) {
  const drivers::cxl::WindowSettings settings{.path = file.path(), .bytes = 16 << 20};
  return drivers::cxl::Opener(settings).open().value();
}

// A device in a window, with the parts that segments in files of their own need.
struct Handing {
  explicit Handing(const WindowFile& file) : mapping(open_window(file)) {
    REQUIRE(slots.join().ok());
    handed.watch();
  }
  Handing(const Handing&) = delete;
  Handing& operator=(const Handing&) = delete;
  ~Handing() { slots.leave(); }

  // Grants a segment, whose record other devices see.
  HandOver::There grant() {
    uint32_t segment = 0;
    REQUIRE(granules.take(segment_bytes, segment) == drivers::SegmentMemory::Taken::taken);
    REQUIRE(hand_over.own().reserve(segment, segment_bytes) != nullptr);
    REQUIRE(hand_over.own().make(segment));
    const uint32_t number =
        hand_over.own().grant(segment, {.id = TokenId(5),
                                        .token = right_token,
                                        .older = right_token,
                                        .rights = Rights::read | Rights::write});
    granules.record(segment).file.store(number);
    return {.segment = segment,
            .name = {.slot = slots.own(), .generation = slots.own_generation(), .file = number},
            .epoch = 1,
            .bytes = segment_bytes,
            .checked = true};
  }
  std::byte* find(const HandOver::There& there, TokenValue token = right_token,
                  uint64_t offset = 0) {
    return handed.find(
        there,
        {.address = 0, .bytes = 8, .id = TokenId(5), .token = token, .wanted = Rights::write},
        offset);
  }
  // Runs a pass. Returns whether the device was told anything.
  bool pass(Time now) {
    if (!handed.has_work(now)) return false;
    handed.handle_notifications();
    return true;
  }

  std::unique_ptr<Mapping> mapping;
  HandOver hand_over{drivers::cxl::Parts::of(16 << 20).granules, false};
  Slots slots{*mapping, &hand_over};
  Granules granules{*mapping, slots, true};
  std::array<std::atomic<bool>, 4096> moved{};
  HandedOver handed{hand_over, mapping->words(), slots, granules, moved.data()};
};

TEST_CASE("handed over: this device's own segments are found with their token, until they move") {
  const WindowFile file("own-segments");
  Handing device(file);
  const HandOver::There there = device.grant();
  std::byte* const base = device.hand_over.own().at(there.segment);
  CHECK(device.find(there) == base);
  CHECK(device.find(there, right_token, segment_bytes - 8) == base + segment_bytes - 8);
  CHECK(device.find(there, right_token, segment_bytes - 7) == nullptr);
  CHECK(device.find(there, right_token, UINT64_MAX) == nullptr);
  CHECK(device.find(there, TokenValue(7)) == nullptr);
  HandOver::There other = there;
  for (const uint32_t number : {0u, there.name.file + 1}) {
    other.name.file = number;
    CHECK(device.find(other) == nullptr);
  }
  device.moved[there.segment] = true;
  CHECK(device.find(there) == nullptr);
}

TEST_CASE(
    "handed over: an owner that is asked is told, and tells the device that its answer waits") {
  const WindowFile file("asked");
  Handing owner(file);
  Handing user(file);
  const HandOver::There there = owner.grant();
  Time now{1h};
  // The first pass looks, because a request may have come before it.
  CHECK(owner.pass(now));
  CHECK(user.pass(now));
  CHECK_FALSE(owner.pass(now));
  CHECK(user.find(there) == nullptr);  // asks
  CHECK(owner.pass(now));
  CHECK(user.pass(now));
  std::byte* const at = user.find(there);
  REQUIRE(at != nullptr);
  owner.hand_over.own().at(there.segment)[3] = std::byte{9};
  CHECK(at[3] == std::byte{9});
  CHECK_FALSE(owner.pass(now));

  // The segment is given back; its next file is another one.
  user.handed.forget_the_gone();
  CHECK(user.find(there) == at);
  owner.granules.give_back(there.segment);
  user.handed.forget_the_gone();
  CHECK(user.find(there) == nullptr);
}

TEST_CASE("handed over: segments of a device that has left are forgotten") {
  const WindowFile file("left-segments");
  Handing user(file);
  HandOver::There there{};
  {
    Handing owner(file);
    there = owner.grant();
    const Time now{1h};
    user.pass(now);
    owner.pass(now);
    user.find(there);
    owner.pass(now);
    user.pass(now);
    REQUIRE(user.find(there) != nullptr);
  }
  user.handed.forget_the_gone();
  CHECK(user.hand_over.find(there, number(right_token), false, 0, 8) == nullptr);
}

TEST_CASE("handed over: only slots of the window are told") {
  const WindowFile file("told-slots");
  Handing device(file);
  device.pass(Time(1h));
  device.handed.notify(drivers::cxl::slot_count);
  device.handed.notify(UINT32_MAX);
  CHECK_FALSE(device.pass(Time(1h)));
  device.handed.notify(device.slots.own());
  CHECK(device.pass(Time(1h)));
}

}  // namespace
}  // namespace urma::test
