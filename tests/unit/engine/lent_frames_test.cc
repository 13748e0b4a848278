// SPDX-License-Identifier: Apache-2.0
#include "engine/lent_frames.h"

#include <deque>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using engine::LentFrames;

// A port that takes as many frames as the test wants, and knows which frames it has lent.
class GreedyPort final : public IdlePort {
 public:
  explicit GreedyPort(size_t frames) : frames_(frames) {
    for (TxFrame& frame : frames_) free_.push_back(&frame);
  }
  size_t lend(std::span<TxFrame*> frames) override {
    size_t count = 0;
    for (; count < frames.size() && !free_.empty(); ++count) {
      frames[count] = free_.back();
      free_.pop_back();
      lent_.insert(frames[count]);
    }
    return count;
  }
  size_t send(std::span<TxFrame* const> frames, Time) override {
    const size_t count = std::min(frames.size(), wants);
    for (TxFrame* const frame : frames.first(count)) {
      REQUIRE(lent_.erase(frame) == 1);
      taken.push_back(frame);
    }
    return count;
  }
  void unlend(std::span<TxFrame* const> frames) override {
    for (TxFrame* const frame : frames) {
      REQUIRE(lent_.erase(frame) == 1);
      free_.push_back(frame);
    }
  }
  // Does what happens when the device has sent the frames that it took: they are free again.
  void finish() {
    free_.insert(free_.end(), taken.begin(), taken.end());
    taken.clear();
  }
  size_t lent() const { return lent_.size(); }

  size_t wants = 0;
  std::vector<TxFrame*> taken;

 private:
  std::vector<TxFrame> frames_;
  std::vector<TxFrame*> free_;
  std::set<TxFrame*> lent_;
};

TEST_CASE("frames leave once each, in the order in which they were filled, however few at a time") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Prng prng(seed);
    GreedyPort port(1 + prng.below(200));
    LentFrames frames;
    std::deque<TxFrame*> expected;
    for (int step = 0; step < 500; ++step) {
      if (frames.waiting() == 0) {
        const std::span<TxFrame* const> empty = frames.borrow(port);
        REQUIRE(std::set<TxFrame*>(empty.begin(), empty.end()).size() == empty.size());
        REQUIRE(port.lent() == empty.size());
        const size_t filled = prng.below(empty.size() + 1);
        expected.assign(empty.begin(), empty.begin() + static_cast<ptrdiff_t>(filled));
        frames.fill(filled);
      }
      port.wants = prng.below(12);
      const size_t waiting = frames.waiting();
      REQUIRE(frames.send(port, {}) == std::min(waiting, port.wants));
      for (TxFrame* const frame : port.taken) {
        REQUIRE(frame == expected.front());
        expected.pop_front();
      }
      REQUIRE(frames.waiting() == expected.size());
      port.finish();
    }
    frames.give_back(port);
    CHECK(port.lent() == 0);
    CHECK(frames.waiting() == 0);
  }
}

TEST_CASE("the empty frame that was lent last is filled first, because it is still in the cache") {
  GreedyPort port(4);
  LentFrames frames;
  const std::span<TxFrame* const> empty = frames.borrow(port);
  REQUIRE(empty.size() == 4);
  TxFrame* const last = empty.back();
  frames.fill(1);
  port.wants = 1;
  CHECK(frames.send(port, {}) == 1);
  CHECK(frames.borrow(port).front() == last);
  frames.give_back(port);
}

}  // namespace
}  // namespace urma::test
