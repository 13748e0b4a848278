// SPDX-License-Identifier: Apache-2.0
#include "engine/fills.h"

#include <deque>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::Fills;

TEST_CASE("a fill settles with its last frame, and the fills before it have settled then") {
  Fills fills;
  CHECK(fills.all_settled());
  CHECK(fills.has_settled(fills.latest()));
  fills.add(3);
  fills.add(2);
  CHECK(fills.latest() == 2);
  CHECK(fills.settle(2));
  CHECK_FALSE(fills.has_settled(1));
  CHECK(fills.settle(4));
  CHECK(fills.has_settled(1));
  CHECK_FALSE(fills.has_settled(2));
  CHECK_FALSE(fills.all_settled());
  CHECK(fills.settle(5));
  CHECK(fills.has_settled(2));
  CHECK(fills.all_settled());
  CHECK_FALSE(fills.settle(5));
}

TEST_CASE("there is room for 1024 fills that have not settled") {
  Fills fills;
  for (size_t i = 0; i < Fills::most; ++i) {
    CHECK(fills.room());
    fills.add(1);
  }
  CHECK_FALSE(fills.room());
  fills.settle(1);
  CHECK(fills.room());
}

// The model is a list with the fill of each frame. The driver reads frames that it has taken and
// not settled; the port reports how many frames have settled, rarely or often.
TEST_CASE(
    "a fill has settled exactly if the driver has read all frames of it and of earlier fills") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    Fills fills;
    std::deque<uint64_t> unread;  // the fill of each frame that the driver may read
    uint64_t read = 0;
    for (int step = 0; step < 4000; ++step) {
      if (fills.room() && prng.chance(seed % 2 == 0 ? 0.5 : 0.9)) {
        const size_t frames = 1 + prng.below(64);
        fills.add(frames);
        unread.insert(unread.end(), frames, fills.latest());
      } else if (!unread.empty()) {
        const size_t frames = prng.below(unread.size() + 1);
        unread.erase(unread.begin(), unread.begin() + static_cast<ptrdiff_t>(frames));
        read += frames;
        fills.settle(read);
      }
      const uint64_t oldest = unread.empty() ? fills.latest() + 1 : unread.front();
      REQUIRE(fills.settled() == oldest - 1);
      REQUIRE(fills.has_settled(oldest - 1));
      REQUIRE_FALSE(fills.has_settled(oldest));
      REQUIRE(fills.all_settled() == unread.empty());
    }
  }
}

}  // namespace
}  // namespace urma::test
