// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/pattern.h"

#include <algorithm>
#include <vector>

#include "apps/urma_perf/layout.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

std::vector<std::byte> source_of(const Pattern& pattern, size_t message) {
  std::vector<std::byte> source(Pattern::source_bytes(message));
  pattern.fill(source);
  return source;
}

std::span<const std::byte> window(const std::vector<std::byte>& source, uint32_t number,
                                  size_t message) {
  return std::span(source).subspan(number * Pattern::window_bytes, message);
}

}  // namespace

TEST_CASE("a message matches the pattern only in its own window") {
  const Pattern pattern(7);
  for (const size_t bytes : {8, 9, 15, 64, 65, 1000, 8193}) {
    const auto source = source_of(pattern, bytes);
    for (uint32_t sent = 0; sent < Pattern::windows; ++sent) {
      const auto message = window(source, sent, bytes);
      REQUIRE(pattern.window_of(message) == sent);
      for (uint32_t expected = 0; expected < Pattern::windows; ++expected) {
        REQUIRE(pattern.mismatch(message, expected).has_value() == (sent != expected));
      }
    }
  }
}

TEST_CASE("each single wrong byte is found, at its position") {
  const Pattern pattern(7);
  for (const size_t bytes : {1, 7, 8, 64, 77}) {
    const auto source = source_of(pattern, bytes);
    for (size_t at = 0; at < bytes; ++at) {
      const auto right = window(source, 5, bytes);
      std::vector<std::byte> message(right.begin(), right.end());
      message[at] ^= std::byte{0x10};
      REQUIRE(pattern.mismatch(message, 5) == at);
    }
  }
}

TEST_CASE("a message that is checked in parts gives the same result as the whole message") {
  const Pattern pattern(7);
  constexpr size_t bytes = 1003;
  constexpr size_t part = 256;
  std::vector<std::byte> source(Pattern::source_bytes(bytes));
  for (size_t at = 0; at < source.size(); at += part) {
    pattern.fill(std::span(source).subspan(at, std::min(part, source.size() - at)), at);
  }
  REQUIRE(source == source_of(pattern, bytes));
  auto message = std::span(source).subspan(9 * Pattern::window_bytes, bytes);
  message[700] ^= std::byte{1};
  for (size_t at = 0; at < bytes; at += part) {
    const auto wrong = pattern.mismatch(message.subspan(at, std::min(part, bytes - at)), 9, at);
    REQUIRE(wrong == (at == 512 ? std::optional<size_t>(700 - 512) : std::nullopt));
  }
}

TEST_CASE("messages that are too short to contain their number match some window") {
  const Pattern pattern(7);
  const auto source = source_of(pattern, 3);
  for (uint32_t sent = 0; sent < Pattern::windows; ++sent) {
    const auto message = window(source, sent, 3);
    const auto found = pattern.window_of(message);
    REQUIRE(found);
    REQUIRE(!pattern.mismatch(message, *found));
  }
}

TEST_CASE("bytes of another seed and untouched bytes do not match any window") {
  const size_t bytes = 64;
  const Pattern pattern(1);
  const auto others = source_of(Pattern(2), bytes);
  REQUIRE(!pattern.window_of(window(others, 0, bytes)));
  const std::vector<std::byte> untouched(bytes, std::byte{0xee});
  REQUIRE(!pattern.window_of(untouched));
}

TEST_CASE("the slots of a layout do not overlap") {
  for (const Test& test : all_tests()) {
    for (const uint64_t bytes : {1, 64, 100, 5000, 65536}) {
      Case what{.test = &test, .bytes = bytes, .depth = test.bandwidth() ? 7u : 1u, .jetties = 3};
      if (test.reads()) what.spread = 10 << 20;
      const Layout layout(what);
      REQUIRE((layout.sources() > 1) == test.reads());
      REQUIRE(layout.ledger_bytes() <= layout.source_begin());
      const uint32_t last = layout.sources() - 1;
      // The blocks of a plan arrive where the other side has its source.
      const uint64_t source_end = test.plan ? layout.bytes() : layout.landing_begin();
      REQUIRE(layout.source_at(Pattern::windows - 1, last) + bytes <= source_end);
      if (last > 0) {
        REQUIRE(layout.source_at(0, 1) >= layout.source_at(Pattern::windows - 1, 0) + bytes);
        REQUIRE(layout.source_at(0, last) - layout.source_at(0, 0) > 9 << 20);
      }
      uint64_t end = layout.landing_begin();
      for (uint32_t jetty = 0; jetty < what.jetties; ++jetty) {
        for (uint32_t slot = 0; slot < layout.slots(); ++slot) {
          REQUIRE(layout.slot_at(jetty, slot) >= end);
          end = layout.slot_at(jetty, slot) + bytes;
        }
      }
      REQUIRE(end <= layout.bytes());
    }
  }
}

}  // namespace urma::apps::perf
