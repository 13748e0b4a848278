// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include "base/prng.h"
#include "memseg/segment_table.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using memseg::SegmentTable;
using Added = SegmentTable::Added;

constexpr uint32_t capacity = 24;
constexpr uint64_t arena_bytes = 512;

// The model: segments as sets of bytes, and the tokens that each TokenID ever had.
struct Model {
  struct Name {
    std::vector<uint32_t> valid;
    bool checked = true;
  };
  struct Segment {
    SegmentTable::Segment what;
    uint32_t id;
    Handle handle;
  };
  std::map<uint32_t, Name> names;
  std::vector<Segment> segments;
};

class Walk {
 public:
  explicit Walk(uint64_t seed) : prng_(seed), table_(capacity, SipHash(seed, 7)) {}

  void step() {
    const uint64_t what = prng_.below(100);
    if (what < 12) {
      add();
    } else if (what < 20) {
      withdraw();
    } else if (what < 25) {
      rotate();
    } else if (what < 30) {
      retire();
    } else {
      check();
    }
    REQUIRE(table_.size() == model_.segments.size());
  }
  int granted() const { return granted_; }

 private:
  Model::Segment* some() {
    if (model_.segments.empty()) return nullptr;
    return &model_.segments[prng_.below(model_.segments.size())];
  }
  // Tokens that were valid before are tried again.
  TokenValue some_token() {
    if (tokens_.empty() || prng_.chance(0.1))
      return TokenValue(static_cast<uint32_t>(prng_.next()));
    const size_t latest = std::min<size_t>(tokens_.size(), prng_.chance(0.7) ? 12 : 400);
    return TokenValue(tokens_[tokens_.size() - 1 - prng_.below(latest)]);
  }
  bool overlaps(uint32_t id, const SegmentTable::Segment& segment) const {
    return std::ranges::any_of(model_.segments, [&](const Model::Segment& one) {
      return one.id == id && one.what.base < segment.base + segment.bytes &&
             segment.base < one.what.base + one.what.bytes;
    });
  }

  void add() {
    const uint64_t first = prng_.below(arena_bytes);
    const uint64_t most = prng_.chance(0.7) ? 40 : arena_bytes;
    const SegmentTable::Segment segment{
        .base = arena_.data() + first,
        .bytes = prng_.between(1, std::min(most, arena_bytes - first)),
        .rights = static_cast<Rights>(prng_.below(8))};
    const Model::Segment* const with = prng_.chance(0.6) ? some() : nullptr;
    const bool full = model_.segments.size() == capacity;
    SegmentTable::Made made;
    if (with == nullptr) {
      const bool checked = !prng_.chance(0.1);
      const auto policy = checked ? TokenPolicy::plain_text : TokenPolicy::none;
      REQUIRE((table_.add(segment, policy, made) == Added::added) == !full);
      if (full) return;
      REQUIRE(model_.names.count(number(made.token.id)) == 0);
      REQUIRE(std::ranges::count(tokens_, number(made.token.value)) == 0);
      REQUIRE(made.token.older == made.token.value);
      model_.names[number(made.token.id)] = {{number(made.token.value)}, checked};
      tokens_.push_back(number(made.token.value));
    } else {
      const Added added = table_.join(with->handle, segment, made);
      REQUIRE(added == (overlaps(with->id, segment) ? Added::overlaps
                        : full                      ? Added::full
                                                    : Added::added));
      if (added != Added::added) return;
      REQUIRE(number(made.token.id) == with->id);
      REQUIRE(number(made.token.value) == model_.names[with->id].valid.back());
    }
    model_.segments.push_back({segment, number(made.token.id), made.segment});
  }

  void withdraw() {
    const Model::Segment* const which = some();
    if (which == nullptr) return;
    const Model::Segment one = *which;
    const bool all = prng_.chance(0.3);
    std::vector<const std::byte*> expected;
    std::erase_if(model_.segments, [&](const Model::Segment& other) {
      const bool goes = all ? other.id == one.id : other.handle == one.handle;
      if (goes) expected.push_back(other.what.base);
      return goes;
    });
    const auto same_id = [&](const Model::Segment& other) { return other.id == one.id; };
    if (std::ranges::none_of(model_.segments, same_id)) model_.names.erase(one.id);
    const uint32_t root = table_.withdraw(one.handle, all);
    std::vector<const std::byte*> withdrawn;
    table_.for_each(root, [&](const auto& segment) { withdrawn.push_back(segment.base); });
    std::ranges::sort(expected);
    REQUIRE(withdrawn == expected);
    REQUIRE(table_.withdraw(one.handle, all) == SegmentTable::none);
    table_.release(root);
    REQUIRE(table_.root(one.handle) == SegmentTable::none);
  }

  void rotate() {
    const Model::Segment* const one = some();
    if (one == nullptr) return;
    Model::Name& name = model_.names[one->id];
    const bool may = name.checked && name.valid.size() == 1;
    REQUIRE(table_.rotate(one->handle) == may);
    if (!may) return;
    const SegmentTable::Token token = table_.token(one->handle);
    REQUIRE(number(token.older) == name.valid[0]);
    REQUIRE(std::ranges::count(tokens_, number(token.value)) == 0);
    name.valid.push_back(number(token.value));
    tokens_.push_back(number(token.value));
  }

  void retire() {
    const Model::Segment* const one = some();
    if (one == nullptr) return;
    REQUIRE(table_.retire(one->handle));
    std::vector<uint32_t>& valid = model_.names[one->id].valid;
    valid = {valid.back()};
  }

  void check() {
    const Model::Segment* const near = some();
    auto id = TokenId(static_cast<uint32_t>(prng_.below(id_limit + 2)));
    TokenValue token = some_token();
    auto wanted = static_cast<Rights>(prng_.below(8));
    int64_t offset = static_cast<int64_t>(prng_.below(arena_bytes + 20)) - 10;
    uint64_t bytes = prng_.between(1, prng_.chance(0.5) ? 8 : arena_bytes);
    if (near != nullptr && !prng_.chance(0.05)) {
      id = TokenId(near->id);
      const std::vector<uint32_t>& valid = model_.names[near->id].valid;
      if (prng_.chance(0.7)) token = TokenValue(valid[prng_.below(valid.size())]);
      if (prng_.chance(0.6)) {
        // Takes an offset near an end of a segment.
        offset = near->what.base - arena_.data() + static_cast<int64_t>(prng_.below(3)) - 1;
        bytes = std::max<uint64_t>(near->what.bytes + prng_.below(3), 2) - 1;
        if (prng_.chance(0.7)) wanted = near->what.rights;
      }
    }
    const bool expected = allowed(number(id), number(token), offset, bytes, wanted);
    const auto base = reinterpret_cast<uint64_t>(arena_.data());
    const std::byte* at =
        table_.check(id, token, base + static_cast<uint64_t>(offset), bytes, wanted);
    REQUIRE((at != nullptr) == expected);
    if (expected) REQUIRE(at == arena_.data() + offset);
    granted_ += expected;
    const auto name = model_.names.find(number(id));
    const bool known = name != model_.names.end();
    REQUIRE(table_.unchecked(id) == (known && !name->second.checked));
    REQUIRE(table_.names(id, token) == (known && opens(name->second, number(token))));
  }

  static bool opens(const Model::Name& name, uint32_t token) {
    return !name.checked || std::ranges::count(name.valid, token) > 0;
  }
  // Checks byte by byte whether the access is inside one segment. `offset` counts from the arena's
  // first byte, and may be outside of the arena.
  bool allowed(uint32_t id, uint32_t token, int64_t offset, uint64_t bytes, Rights wanted) const {
    const auto name = model_.names.find(id);
    if (name == model_.names.end() || !opens(name->second, token)) return false;
    return std::ranges::any_of(model_.segments, [&](const Model::Segment& one) {
      if (one.id != id) return false;
      for (const Rights right : {Rights::read, Rights::write, Rights::atomic}) {
        if (has(wanted, right) && !has(one.what.rights, right)) return false;
      }
      const int64_t first = one.what.base - arena_.data();
      for (uint64_t i = 0; i < bytes; ++i) {
        const int64_t byte = offset + static_cast<int64_t>(i);
        if (byte < first || byte >= first + static_cast<int64_t>(one.what.bytes)) return false;
      }
      return true;
    });
  }

  Prng prng_;
  std::vector<std::byte> arena_ = std::vector<std::byte>(arena_bytes);
  SegmentTable table_;
  Model model_;
  std::vector<uint32_t> tokens_;  // all tokens ever made
  int granted_ = 0;
};

TEST_CASE("a hundred thousand operations have the same results as on a model of sets of bytes") {
  int granted = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Walk walk(seed);
    for (int i = 0; i < 5000; ++i) walk.step();
    granted += walk.granted();
  }
  // Checks that accesses were granted and refused often enough.
  CHECK(granted > 2'000);
  CHECK(granted < 60'000);
}

}  // namespace
}  // namespace urma::test
