// SPDX-License-Identifier: Apache-2.0
#include "engine/pair_message.h"

#include <array>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::PairMessage;
using engine::read_pair_message;
using PairKind = PairMessage::Kind;

std::string pair_line_of(const PairMessage& message) {
  std::string line = "what was sent before";
  engine::write_pair_message(message, line);
  return line;
}

PairMessage drawn_pair_message(Prng& prng) {
  // A number of any length.
  const auto any = [&] { return prng.next() >> prng.below(64); };
  PairMessage out{.kind = static_cast<PairKind>(prng.below(7)),
                  .number = static_cast<uint32_t>(any())};
  if (out.kind == PairKind::pair || out.kind == PairKind::paired) {
    for (std::byte& one : out.end) one = static_cast<std::byte>(prng.next());
  }
  if (out.kind == PairKind::key) {
    out.range = {.address = any(),
                 .bytes = any() | 1,
                 .id = TokenId(static_cast<uint32_t>(any())),
                 .token = TokenValue(static_cast<uint32_t>(any())),
                 .wanted = prng.chance(0.5) ? Rights::read : Rights::write};
  }
  if (out.kind == PairKind::keyed) {
    out.opened = {.address = any(), .bytes = any(), .key = static_cast<uint32_t>(any())};
  }
  return out;
}

bool same_message(const PairMessage& a, const PairMessage& b) {
  return a.kind == b.kind && a.number == b.number && a.end == b.end &&
         a.range.address == b.range.address && a.range.bytes == b.range.bytes &&
         a.range.id == b.range.id && a.range.token == b.range.token &&
         a.range.wanted == b.range.wanted && a.opened.address == b.opened.address &&
         a.opened.bytes == b.opened.bytes && a.opened.key == b.opened.key;
}

TEST_CASE("a pair message is a line of words, with numbers in hexadecimal digits") {
  CHECK(pair_line_of({.kind = PairKind::unpair, .number = 0}) == "unpair 0");
  CHECK(pair_line_of({.kind = PairKind::unpaired, .number = 0xffffffff}) == "unpaired ffffffff");
  CHECK(pair_line_of({.kind = PairKind::unkeyed, .number = 26}) == "unkeyed 1a");
  CHECK(pair_line_of({.kind = PairKind::key,
                      .number = 7,
                      .range = {.address = 0x1000,
                                .bytes = 255,
                                .id = TokenId(3),
                                .token = TokenValue(0xab),
                                .wanted = Rights::write}}) ==
        "key 7 1000 ff 3 ab " + std::to_string(static_cast<unsigned>(Rights::write)));
  CHECK(pair_line_of({.kind = PairKind::keyed,
                      .number = 7,
                      .opened = {.address = UINT64_MAX, .bytes = 16, .key = 9}}) ==
        "keyed 7 ffffffffffffffff 10 9");
  PairMessage pair{.kind = PairKind::pair, .number = 1};
  pair.end[0] = std::byte{0xa5};
  CHECK(pair_line_of(pair) == "pair 1 a5" + std::string(78, '0'));
}

TEST_CASE("a pair message that was written is read as itself") {
  Prng prng(1);
  for (int i = 0; i < 20'000; ++i) {
    const PairMessage message = drawn_pair_message(prng);
    const std::string line = pair_line_of(message);
    INFO(line);
    CHECK(line.size() <= 128);
    const auto read = read_pair_message(line);
    REQUIRE(read.has_value());
    CHECK(same_message(*read, message));
  }
}

TEST_CASE("other lines are not read as pair messages") {
  const std::string end(80, 'a');
  for (const std::string& line : {std::string(),
                                  std::string(" "),
                                  std::string("pair"),
                                  std::string("unpair"),
                                  std::string("unpair "),
                                  std::string("unpair x"),
                                  std::string("unpair -1"),
                                  std::string("unpair +1"),
                                  std::string("unpair 0x1"),
                                  std::string("unpair 1x"),
                                  std::string("unpair  1"),
                                  std::string("unpair 1 "),
                                  std::string("unpair 1 2"),
                                  std::string("unpair 100000000"),
                                  std::string("unpair 10000000000000000"),
                                  std::string("unpair\t1"),
                                  std::string("unpair 1\n"),
                                  std::string("unpair 1\0", 9),
                                  std::string(" unpair 1"),
                                  std::string("UNPAIR 1"),
                                  std::string("unpai 1"),
                                  std::string("unpairs 1"),
                                  std::string("find 1 x"),
                                  std::string("pair 1"),
                                  std::string("pair 1 "),
                                  "pair 1 " + end.substr(1),
                                  "pair 1 " + end + "a",
                                  "pair 1 " + end + " ",
                                  "pair 1 " + end + " 1",
                                  "pair 1  " + end,
                                  "pair 1 " + end.substr(1) + "g",
                                  "pair 1 -" + end.substr(1),
                                  "pair " + end,
                                  "paired 1 " + end.substr(2),
                                  "unpaired 1 " + end,
                                  std::string("key 1"),
                                  std::string("key 1 1000 10 3 4"),
                                  std::string("key 1 1000 10 3 4 2 1"),
                                  std::string("key 1 1000 0 3 4 2"),
                                  std::string("key 1 1000 10 3 4 0"),
                                  std::string("key 1 1000 10 3 4 3"),
                                  std::string("key 1 1000 10 3 4 4"),
                                  std::string("key 1 1000 10 3 4 102"),
                                  std::string("key 1 1000 10 100000000 4 2"),
                                  std::string("key 1 1000 10 3 100000000 2"),
                                  std::string("key 1 10000000000000000 10 3 4 2"),
                                  std::string("keyed 1 1000 10"),
                                  std::string("keyed 1 1000 10 100000000"),
                                  std::string("keyed 1 1000 10 9 9"),
                                  std::string("unkeyed 1 1000 10 9")}) {
    INFO(line);
    CHECK_FALSE(read_pair_message(line).has_value());
  }
}

TEST_CASE("each kind of right and its number are read") {
  for (const Rights wanted : {Rights::read, Rights::write}) {
    const std::string line = "key 1 1000 10 3 4 " + std::to_string(static_cast<unsigned>(wanted));
    const auto read = read_pair_message(line);
    REQUIRE(read.has_value());
    CHECK(read->range.wanted == wanted);
  }
}

// A line that differs in one byte, or is cut, is rejected or has another meaning: what is accepted
// is written as a line with the same meaning.
TEST_CASE("changed and random lines are rejected, or read as what they say") {
  Prng prng(2);
  uint64_t accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string line = pair_line_of(drawn_pair_message(prng));
    const uint64_t how = prng.below(4);
    if (how == 0) line.resize(prng.below(line.size()));
    if (how == 1) line[prng.below(line.size())] = static_cast<char>(prng.next());
    if (how == 2) line.insert(prng.below(line.size() + 1), 1, " 0agx\n"[prng.below(6)]);
    if (how == 3) {
      line.resize(prng.below(100));
      for (char& one : line) one = static_cast<char>(prng.next());
    }
    INFO(line);
    const auto read = read_pair_message(line);
    if (!read) continue;
    ++accepted;
    REQUIRE(how != 3);
    // It differs from what is written at most in leading zeros and capital digits.
    const std::string again = pair_line_of(*read);
    REQUIRE(again.size() <= line.size());
    REQUIRE(std::ranges::count(again, ' ') == std::ranges::count(line, ' '));
    const auto twice = read_pair_message(again);
    REQUIRE(twice.has_value());
    REQUIRE(same_message(*twice, *read));
  }
  CHECK(accepted > 1000);
}

}  // namespace
}  // namespace urma::test
