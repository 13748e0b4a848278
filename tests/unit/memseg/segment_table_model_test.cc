#include <deque>
#include <map>
#include <vector>

#include "memseg/segment_table.h"
#include "tests/catch.h"
#include "urma/base/prng.h"

namespace urma::test {
namespace {

using memseg::SegmentTable;

constexpr uint32_t capacity = 24;
constexpr uint64_t arena_bytes = 512;

// Segments as sets of bytes, identifiers as a queue.
struct Model {
  std::map<uint32_t, SegmentTable::Segment> segments;
  std::deque<uint32_t> free;

  Model() {
    for (uint32_t id = 0; id < capacity; ++id) free.push_back(id);
  }
  const SegmentTable::Segment* find(uint32_t id) const {
    const auto at = segments.find(id);
    return at == segments.end() ? nullptr : &at->second;
  }
};

// `offset`: from the arena's first byte; may be outside of it.
bool allowed(const SegmentTable::Segment* segment, const std::byte* arena, TokenValue token,
             int64_t offset, uint64_t bytes, Rights wanted) {
  if (segment == nullptr || segment->token != token) return false;
  for (const Rights one : {Rights::read, Rights::write, Rights::atomic}) {
    if (has(wanted, one) && !has(segment->rights, one)) return false;
  }
  const int64_t first = segment->base - arena;
  for (uint64_t i = 0; i < bytes; ++i) {
    const int64_t byte = offset + static_cast<int64_t>(i);
    if (byte < first || byte >= first + static_cast<int64_t>(segment->bytes)) return false;
  }
  return true;
}

class Walk {
 public:
  explicit Walk(uint64_t seed) : prng_(seed) {}

  void step() {
    const uint64_t what = prng_.below(100);
    if (what < 8) {
      add();
    } else if (what < 15) {
      remove();
    } else {
      check();
    }
    REQUIRE(table_.size() == model_.segments.size());
  }
  int granted() const { return granted_; }

 private:
  // From few, so that what was right once is tried again when it no longer is.
  TokenValue some_token() { return TokenValue(static_cast<uint32_t>(prng_.below(3))); }
  uint32_t some_id() { return static_cast<uint32_t>(prng_.below(capacity + 2)); }

  void add() {
    const uint64_t first = prng_.below(arena_bytes);
    const SegmentTable::Segment segment{.base = arena_.data() + first,
                                        .bytes = prng_.between(1, arena_bytes - first),
                                        .token = some_token(),
                                        .rights = static_cast<Rights>(prng_.below(8))};
    TokenId id{};
    const bool added = table_.add(segment, id);
    REQUIRE(added == !model_.free.empty());
    if (!added) return;
    REQUIRE(number(id) == model_.free.front());
    model_.free.pop_front();
    model_.segments[number(id)] = segment;
  }

  void remove() {
    const uint32_t id = some_id();
    const bool removed = table_.remove(TokenId(id));
    REQUIRE(removed == (model_.segments.erase(id) == 1));
    if (removed) model_.free.push_back(id);
  }

  void check() {
    const uint32_t id = some_id();
    const TokenValue token = some_token();
    auto wanted = static_cast<Rights>(prng_.below(8));
    int64_t offset = static_cast<int64_t>(prng_.below(arena_bytes + 20)) - 10;
    uint64_t bytes = prng_.between(1, prng_.chance(0.5) ? 8 : arena_bytes);
    const auto* segment = model_.find(id);
    if (segment != nullptr && prng_.chance(0.5)) {
      // Around its ends.
      const int64_t first = segment->base - arena_.data();
      offset = first + static_cast<int64_t>(prng_.below(3)) - 1;
      bytes = std::max<uint64_t>(segment->bytes + prng_.below(3), 2) - 1;
      if (prng_.chance(0.7)) wanted = segment->rights;
    }
    const auto base = reinterpret_cast<uint64_t>(arena_.data());
    const std::byte* at =
        table_.check(TokenId(id), token, base + static_cast<uint64_t>(offset), bytes, wanted);
    const bool expected = allowed(segment, arena_.data(), token, offset, bytes, wanted);
    REQUIRE((at != nullptr) == expected);
    if (expected) REQUIRE(at == arena_.data() + offset);
    granted_ += expected;
  }

  Prng prng_;
  std::vector<std::byte> arena_ = std::vector<std::byte>(arena_bytes);
  SegmentTable table_{capacity};
  Model model_;
  int granted_ = 0;
};

TEST_CASE("a hundred thousand operations end as they would on sets of bytes") {
  int granted = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Walk walk(seed);
    for (int i = 0; i < 5000; ++i) walk.step();
    granted += walk.granted();
  }
  // Neither always nor never.
  CHECK(granted > 2'000);
  CHECK(granted < 60'000);
}

}  // namespace
}  // namespace urma::test
