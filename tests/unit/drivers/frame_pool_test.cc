// SPDX-License-Identifier: Apache-2.0
#include "drivers/frame_pool.h"

#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using drivers::FramePool;

TEST_CASE("a frame is free or lent, never both and never lent twice") {
  constexpr uint32_t frames = 20;
  FramePool pool(frames);
  REQUIRE(pool.size() == frames);
  std::set<TxFrame*> lent;
  Prng prng(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TxFrame*> out(prng.below(8));
    const size_t count = pool.lend(out);
    REQUIRE(count == std::min(out.size(), frames - lent.size()));
    for (size_t i = 0; i < count; ++i) REQUIRE(lent.insert(out[i]).second);
    while (!lent.empty() && prng.chance(0.6)) {
      const auto at = std::next(lent.begin(), static_cast<ptrdiff_t>(prng.below(lent.size())));
      pool.take_back(*at);
      lent.erase(at);
    }
    REQUIRE(pool.free() + lent.size() == frames);
  }
}

TEST_CASE("the head rooms of different frames do not overlap") {
  FramePool pool(3);
  std::array<TxFrame*, 4> frame{};
  REQUIRE(pool.lend(frame) == 3);
  for (uint8_t i = 0; i < 3; ++i) std::fill_n(frame[i]->head, TxFrame::head_room, std::byte{i});
  for (uint8_t i = 0; i < 3; ++i) {
    CHECK(frame[i]->head[0] == std::byte{i});
    CHECK(frame[i]->head[TxFrame::head_room - 1] == std::byte{i});
  }
}

TEST_CASE("a flattened frame is its head, its pieces in order and its tail") {
  FramePool pool(1);
  TxFrame* frame = nullptr;
  REQUIRE(pool.lend({&frame, 1}) == 1);
  Prng prng(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> expected;
    const auto next = [&] { return expected.emplace_back(static_cast<std::byte>(prng.next())); };
    frame->head_bytes = static_cast<uint8_t>(prng.below(TxFrame::head_room + 1));
    for (size_t i = 0; i < frame->head_bytes; ++i) frame->head[i] = next();
    std::vector<std::vector<std::byte>> pieces(prng.below(max_pieces + 1));
    frame->piece_count = 0;
    for (auto& piece : pieces) {
      for (uint64_t i = prng.below(10); i > 0; --i) piece.push_back(next());
      frame->pieces[frame->piece_count++] = {piece.data(), static_cast<uint32_t>(piece.size())};
    }
    frame->tail_bytes = static_cast<uint8_t>(prng.below(TxFrame::tail_room + 1));
    for (size_t i = 0; i < frame->tail_bytes; ++i) frame->tail[i] = next();

    REQUIRE(frame->bytes() == expected.size());
    std::vector<std::byte> flat(frame->bytes() + 1, std::byte{0xee});
    drivers::flatten(*frame, flat.data());
    REQUIRE(flat.back() == std::byte{0xee});
    flat.pop_back();
    REQUIRE(flat == expected);
  }
}

}  // namespace
}  // namespace urma::test
