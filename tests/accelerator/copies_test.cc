// SPDX-License-Identifier: Apache-2.0
// The parts that copy memory of GPUs, one by one.

#include "base/accelerator_copies.h"

#include <deque>

#include "base/accelerator_memory.h"
#include "base/prng.h"
#include "jetty/staging.h"
#include "tests/accelerator/gpu.h"
#include "tests/bytes.h"

namespace urma::test {
namespace {

using jetty::Staging;

// Memory of a GPU that is registered.
struct Registered : GpuBytes {
  explicit Registered(size_t bytes, int gpu = 0) : GpuBytes(bytes, gpu) {
    REQUIRE(AcceleratorMemory::add(span(), number()));
  }
  ~Registered() { AcceleratorMemory::remove(span()); }
  std::byte* at(size_t offset) const { return span().data() + offset; }
};

TEST_CASE("copies to a GPU arrive, in any order and of any size, when they are finished") {
  Registered memory(1 << 20);
  AcceleratorCopies copies;
  REQUIRE(copies.open(memory.number()));
  Prng prng(7);
  std::vector<std::byte> model(1 << 20);
  for (int round = 0; round < 200; ++round) {
    size_t next = 0;
    for (uint64_t i = prng.below(30); i > 0; --i) {
      const size_t bytes = 1 + prng.below(AcceleratorCopies::most_bytes);
      // Half of them continue the one before.
      const size_t offset = prng.below(2) == 0 && next + bytes <= model.size()
                                ? next
                                : prng.below(model.size() - bytes);
      next = offset + bytes;
      auto data = bytes_like(bytes, static_cast<unsigned>(prng.below(256)));
      std::ranges::copy(data, model.begin() + static_cast<ptrdiff_t>(offset));
      REQUIRE(copies.begin(memory.at(offset), data.data(), bytes, prng.below(3)));
      std::ranges::fill(data, std::byte{0});  // the caller may use it again
    }
    REQUIRE(copies.finish(0));
    REQUIRE(memory.get(0, model.size()) == model);
  }
}

TEST_CASE("more is copied to a GPU than can wait for it, and in more parts") {
  Registered memory(1 << 20);
  AcceleratorCopies copies;
  REQUIRE(copies.open(memory.number()));
  const auto data = bytes_like(AcceleratorCopies::most_bytes, 2);
  for (size_t i = 0; i < 200; ++i) {
    REQUIRE(copies.begin(memory.at(i % 8 * data.size()), data.data(), data.size(), 1));
  }
  // None continues the one before.
  for (size_t i = 3000; i-- > 0;) REQUIRE(copies.begin(memory.at(600'000 + 2 * i), &data[i], 1, 1));
  REQUIRE(copies.finish(1));
  for (size_t i = 0; i < 8; ++i) CHECK(memory.get(i * data.size(), data.size()) == data);
  const auto spread = memory.get(600'000, 6000);
  size_t wrong = 0;
  for (size_t i = 0; i < 3000; ++i) wrong += spread[2 * i] != data[i];
  CHECK(wrong == 0);
}

// The owner that is told is the one whose copy was refused, even if another one's copy showed it.
TEST_CASE("a refused copy fails its owner, and no other") {
  Registered memory(1 << 20);
  Registered gone(1 << 20);
  AcceleratorCopies copies;
  REQUIRE(copies.open(0));
  const auto data = bytes_like(1000, 1);
  REQUIRE(copies.begin(memory.at(0), data.data(), 100, 1));
  gone.release();
  REQUIRE(copies.begin(gone.at(0), data.data(), 100, 2));  // is not yet given to the driver
  REQUIRE(copies.begin(memory.at(500), data.data(), 100, 3));
  CHECK(copies.finish(3));
  CHECK(copies.finish(1));
  CHECK_FALSE(copies.finish(2));
  CHECK(copies.finish(2));
  REQUIRE(copies.begin(gone.at(0), data.data(), 100, 4));
  copies.settle();
  CHECK_FALSE(copies.begin(gone.at(100), data.data(), 100, 4));
  CHECK(memory.get(500, 100) == std::vector(data.begin(), data.begin() + 100));
}

TEST_CASE("data of a GPU is staged once for the packets that follow, and kept until they settle") {
  Registered memory(1 << 20);
  const auto data = bytes_like(1 << 20, 3);
  memory.set(data);
  GuardedCopy guard;
  Staging staging(guard);
  REQUIRE(staging.prepare(memory.span()));
  constexpr uint32_t packet = 8192;
  const auto is = [&](const std::byte* copy, size_t offset) {
    return same({copy, packet}, std::span(data).subspan(offset, packet));
  };
  staging.begin_fill(1);
  const std::byte* const first = staging.copy(memory.at(0), packet, (1 << 20) - packet);
  const std::byte* const second = staging.copy(memory.at(packet), packet, (1 << 20) - 2 * packet);
  REQUIRE(first != nullptr);
  CHECK(second == first + packet);
  CHECK(is(first, 0));
  CHECK(is(second, packet));
  // Another place, and the same one again, are copied anew.
  memory.fill(std::byte{9});
  const std::byte* const elsewhere = staging.copy(memory.at(5 * packet), packet, packet);
  CHECK(all_are({elsewhere, packet}, std::byte{9}));
  CHECK(all_are({staging.copy(memory.at(0), packet, 0), packet}, std::byte{9}));
  // Another fill does not use data that was read ahead.
  memory.fill(std::byte{8});
  staging.end_fill();
  staging.begin_fill(2);
  CHECK(all_are({staging.copy(memory.at(6 * packet), packet, 0), packet}, std::byte{8}));
  CHECK(is(first, 0));
  // A packet that is sent at once gets a copy of its own, which it gives back.
  CHECK(staging.copy(memory.at(0), packet, (1 << 20) - packet) != nullptr);
  staging.end_fill();
  memory.fill(std::byte{7});
  CHECK(all_are({staging.copy(memory.at(packet), packet, 0), packet}, std::byte{7}));
  staging.give_back_last();
  CHECK(is(first, 0));
  staging.settled(2);
  CHECK(staging.room_for(1000));
  staging.begin_fill(3);
  CHECK(staging.copy(memory.at(0), packet, 0) == first);
}

TEST_CASE("reading ahead leaves room for frames") {
  Registered memory(1 << 20);
  GuardedCopy guard;
  Staging staging(guard);
  REQUIRE(staging.prepare(memory.span()));
  staging.begin_fill(1);
  uint32_t made = 0;
  while (staging.copy(memory.at(0), 1000, (1 << 20) - 1000) != nullptr) ++made;
  CHECK(made > 600);
  staging.settled(1);
  CHECK(staging.room_for(1000));
}

}  // namespace
}  // namespace urma::test
