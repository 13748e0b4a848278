// SPDX-License-Identifier: Apache-2.0
#include "jetty/jfr.h"

#include <array>
#include <vector>

#include "tests/unit/jetty/queue_beside_lists.h"

namespace urma::test {
namespace {

using jetty::Jfr;
using jetty::ReceiveSlot;

struct PostedReceive {
  uint64_t tag;
  std::vector<Buffer> full;  // without the empty ones
};

class JfrBesideLists final : public QueueBesideLists<Jfr, PostedReceive> {
 public:
  using QueueBesideLists::QueueBesideLists;

 private:
  void post() override {
    PostedReceive one{.tag = ++next_tag_, .full = {}};
    std::vector<Buffer> buffers(below(max_buffers + 2));
    for (Buffer& buffer : buffers) {
      buffer = {&memory_[below(32)], prng_.chance(0.3) ? 0 : 1 + prng_.below(32)};
      if (buffer.bytes > 0) one.full.push_back(buffer);
    }
    const bool fits = vacant_ > 0 && buffers.size() <= max_buffers;
    REQUIRE(queue_.post(buffers, one.tag) == (fits ? 1 : 0));
    if (!fits) {
      ++refused_;
      return;
    }
    posted_.push_back(one);
    --vacant_;
  }
  void complete() override {
    if (!taken_.empty()) queue_.polled(release_one());
  }
  void require_kept(uint16_t lease, const PostedReceive& posted) const override {
    const ReceiveSlot& slot = queue_.slot(lease);
    const auto pieces = queue_.pieces(lease);
    REQUIRE(slot.tag == posted.tag);
    REQUIRE(pieces.size() == posted.full.size());
    size_t bytes = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      REQUIRE(pieces[i].data == posted.full[i].data);
      REQUIRE(pieces[i].bytes == posted.full[i].bytes);
      bytes += pieces[i].bytes;
    }
    REQUIRE(slot.bytes == bytes);
  }

  std::array<std::byte, 64> memory_{};
};

TEST_CASE("jfr: slots are taken in post order, and keep their buffers until they are polled") {
  run_beside_lists<JfrBesideLists>();
}

TEST_CASE("jfr: a queue that was never posted to is unused, and one without slots takes nothing") {
  Jfr jfr(2);
  const std::vector<Buffer> too_many(max_buffers + 1);
  CHECK(jfr.post(too_many, 1) == 0);
  CHECK_FALSE(jfr.used());
  CHECK(jfr.post({}, 1) == 1);  // for a message without bytes
  CHECK(jfr.used());
  CHECK(jfr.pieces(jfr.take_posted()).empty());
  Jfr none(0);
  CHECK(none.post({}, 1) == 0);
  CHECK_FALSE(none.used());
}

// A message has at most max_send_bytes bytes. The sum of the longest buffers fits in 32 bits.
TEST_CASE("jfr: of each buffer, only the bytes that a message can fill are used") {
  std::byte memory{};
  Jfr jfr(1);
  const std::vector<Buffer> longest(max_buffers, Buffer{&memory, size_t{1} << 40});
  REQUIRE(jfr.post(longest, 1) == 1);
  const uint16_t lease = jfr.take_posted();
  CHECK(jfr.slot(lease).bytes == max_buffers * max_send_bytes);
  for (const Piece& piece : jfr.pieces(lease)) CHECK(piece.bytes == max_send_bytes);
}

TEST_CASE("jfr: polled immediates are counted and return no slot") {
  Jfr jfr(3);
  CHECK(jfr.immediates_polled() == 0);
  REQUIRE(jfr.post({}, 1) == 1);
  for (uint32_t polled = 1; polled <= 10; ++polled) {
    jfr.polled(Jfr::none);
    CHECK(jfr.immediates_polled() == polled);
    CHECK(jfr.vacant() == 2);
  }
  jfr.polled(jfr.take_posted());
  CHECK(jfr.immediates_polled() == 10);
  CHECK(jfr.vacant() == 3);
}

TEST_CASE("jfr: the memory for recycled slots overlaps nothing else") {
  constexpr uint16_t slots = 5;
  std::array<std::byte, 8> memory{};
  const std::array two = {Buffer{memory.data(), 3}, Buffer{&memory[3], 5}};
  Jfr jfr(slots);
  for (uint64_t tag = 0; tag < slots; ++tag) REQUIRE(jfr.post(two, tag) == 1);
  for (uint16_t i = 0; i < slots; ++i) jfr.recycled()[i] = UINT16_MAX;
  for (uint64_t tag = 0; tag < slots; ++tag) {
    const uint16_t lease = jfr.take_posted();
    REQUIRE(lease < slots);
    CHECK(jfr.slot(lease).tag == tag);
    CHECK(jfr.slot(lease).bytes == 8);
    CHECK(jfr.pieces(lease)[1].data == &memory[3]);
    jfr.polled(lease);
  }
  CHECK(jfr.vacant() == slots);
  CHECK(jfr.recycled()[slots - 1] == UINT16_MAX);
}

}  // namespace
}  // namespace urma::test
