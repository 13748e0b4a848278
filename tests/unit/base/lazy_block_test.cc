// SPDX-License-Identifier: Apache-2.0
#include "base/lazy_block.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/prng.h"
#include "base/shuffle.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

bool all_zero(const std::byte* begin, size_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST_CASE("blocks are disjoint, begin at a cache line, and are zero when their memory is reused") {
  struct Held {
    std::unique_ptr<LazyBlock> block;
    size_t bytes;
  };
  std::vector<Held> held;
  Prng prng(7);
  const size_t sizes[] = {1, 64, 200, 4000, 9000, 70'000, 20 << 20};
  for (int i = 0; i < 2000; ++i) {
    if (held.size() > 40 || (!held.empty() && prng.below(2) == 0)) {
      std::swap(held[prng.below(static_cast<uint32_t>(held.size()))], held.back());
      held.pop_back();
      continue;
    }
    const size_t bytes = sizes[prng.below(prng.below(50) == 0 ? 7 : 6)];
    held.push_back({std::make_unique<LazyBlock>(bytes), bytes});
    LazyBlock& made = *held.back().block;
    REQUIRE(reinterpret_cast<uintptr_t>(made.data()) % 64 == 0);
    for (const Held& other : held) {
      if (other.block.get() == &made) continue;
      const std::byte* const from = other.block->data();
      REQUIRE((from + other.bytes <= made.data() || made.data() + bytes <= from));
    }
    if (bytes < (1 << 20)) REQUIRE(all_zero(made.data(), bytes));
    REQUIRE(all_zero(made.data() + bytes - 1, 1));
    if (prng.below(3) == 0) continue;
    made.touch();
    if (bytes < (1 << 20)) std::memset(made.data(), 0xa5, bytes);
    made.data()[bytes - 1] = std::byte{1};
  }
}

TEST_CASE("a child of fork makes blocks of its own, and does not touch its parent's") {
  auto parents = std::make_unique<LazyBlock>(1000);
  parents->touch();
  parents->data()[0] = std::byte{1};
  const pid_t child = fork();
  if (child == 0) {
    const LazyBlock own(1000);
    const bool apart = own.data() != parents->data() && own.data()[0] == std::byte{0};
    parents.reset();
    _exit(apart ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(parents->data()[0] == std::byte{1});
}

TEST_CASE("a shuffle names each number once, in another order for another key", "[numbers]") {
  const Shuffle shuffle(1, 2);
  const Shuffle other(1, 3);
  std::vector<bool> seen(Shuffle::numbers);
  uint32_t agree = 0;
  for (uint32_t i = 0; i < Shuffle::numbers; ++i) {
    const uint32_t number = shuffle(i);
    REQUIRE(number < Shuffle::numbers);
    REQUIRE_FALSE(seen[number]);
    seen[number] = true;
    agree += number == other(i);
  }
  CHECK(agree < 16);
}

}  // namespace
}  // namespace urma::test
