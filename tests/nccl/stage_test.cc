// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/stage.h"

#include <deque>

#include "tests/catch.h"

namespace urma::nccl {
namespace {

struct Part {
  uint64_t begin;
  uint64_t bytes;
  uint64_t mark;
};

TEST_CASE("the parts of a stage lie in it and do not overlap") {
  constexpr uint64_t bytes = 4096;
  Stage stage(bytes);
  std::deque<Part> parts;
  uint64_t seed = 1;
  size_t refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const uint64_t size = 1 + (seed >> 33) % 1500;
    if (const auto begin = stage.take(size)) {
      REQUIRE(*begin + size <= bytes);
      for (const Part& other : parts) {
        REQUIRE((*begin + size <= other.begin || other.begin + other.bytes <= *begin));
      }
      parts.push_back({*begin, size, stage.mark()});
    } else {
      ++refused;
      REQUIRE(!parts.empty());
      stage.release(parts.front().mark);
      parts.pop_front();
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a stage has no room for a part that is larger than itself") {
  CHECK(!Stage(0).take(1));
  CHECK(!Stage(4096).take(4097));
  CHECK(Stage(4096).take(4096) == 0);
}

TEST_CASE("a stage is used entirely") {
  Stage stage(4096);
  for (uint64_t i = 0; i < 64; ++i) CHECK(stage.take(33) == i * 64);
  CHECK(!stage.take(1));
  stage.release(64);
  CHECK(stage.take(1) == 0);
}

}  // namespace
}  // namespace urma::nccl
