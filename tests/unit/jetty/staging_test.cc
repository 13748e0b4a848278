// SPDX-License-Identifier: Apache-2.0
#include "jetty/staging.h"

#include <sys/mman.h>

#include <cstring>
#include <deque>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::Staging;

struct Reads {
  Reads() {
    REQUIRE(reads.prepare({}));
    REQUIRE(reads.prepare({}));
  }
  const std::byte* copy(uint64_t value) {
    std::byte word[sizeof value];
    std::memcpy(word, &value, sizeof value);
    return reads.copy(word, sizeof word);
  }

  GuardedCopy guard;
  Staging reads{guard};
};

uint64_t value_at(const std::byte* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Reads of any size settle late, in order, all or only some of them at a time.
TEST_CASE("a copy of guarded memory does not change until its frame has settled") {
  for (const uint64_t most_late : {1u, 3u, 30u}) {
    Reads reads;
    Prng prng(most_late);
    struct Copy {
      uint64_t fill;
      uint64_t value;
      const std::byte* at;
    };
    std::deque<Copy> read_still;
    uint64_t copies = 0;
    for (uint64_t fill = 1; fill < 600; ++fill) {
      reads.reads.begin_fill(fill);
      for (uint64_t i = prng.below(30); i > 0; --i) {
        const std::byte* const at = reads.copy(++copies);
        REQUIRE(at != nullptr);
        read_still.push_back({fill, copies, at});
      }
      const uint64_t settled = fill - std::min(fill, prng.below(most_late));
      for (const Copy& copy : read_still) REQUIRE(value_at(copy.at) == copy.value);
      reads.reads.settled(settled);
      while (!read_still.empty() && read_still.front().fill <= settled) read_still.pop_front();
    }
    CHECK(copies > 5000);
  }
}

TEST_CASE("when all buffers for copies are in use, no further copy is made") {
  Reads reads;
  reads.reads.begin_fill(1);
  const std::byte* const first = reads.copy(7);
  uint64_t made = 1;
  CHECK(reads.reads.room_for(1022));
  CHECK_FALSE(reads.reads.room_for(1023));
  while (made < 5000 && reads.copy(made) != nullptr) ++made;
  CHECK(made == 1024);
  CHECK_FALSE(reads.reads.room_for(0));
  CHECK(value_at(first) == 7);
  reads.reads.give_back_last();
  CHECK(reads.copy(8) != nullptr);
  CHECK(reads.copy(9) == nullptr);
  reads.reads.settled(0);
  CHECK(reads.copy(9) == nullptr);
  reads.reads.settled(1);
  CHECK(reads.copy(9) == first);
}

TEST_CASE("unmapped memory is not copied, and uses no buffer") {
  Reads reads;
  constexpr size_t page = 4096;
  void* const gone = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(gone != MAP_FAILED);
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(reads.reads.copy(static_cast<std::byte*>(gone), 8) == nullptr);
  }
  CHECK(reads.copy(1) != nullptr);
  munmap(gone, page);
}

}  // namespace
}  // namespace urma::test
