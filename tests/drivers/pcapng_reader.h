// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "drivers/pcap/pcapng.h"
#include "tests/catch.h"

namespace urma::test {

// Reads a pcapng file according to the format, independently of the writer under test.

struct Captured {
  drivers::pcap::Direction direction;
  uint64_t nanoseconds;
  size_t had_bytes;
  std::vector<std::byte> bytes;  // the captured bytes, from the IP header on
};

struct Capture {
  uint32_t snap_bytes = 0;
  std::vector<Captured> packets;
  bool ended = false;  // by a block of statistics
  uint64_t seen = 0;
  uint64_t missing = 0;
  std::string comment;
};

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : left_(bytes) {}
  template <class Number>
  Number take() {
    REQUIRE(left_.size() >= sizeof(Number));
    Number number;
    std::memcpy(&number, left_.data(), sizeof number);
    left_ = left_.subspan(sizeof number);
    return number;
  }
  std::span<const std::byte> take(size_t bytes) {
    REQUIRE(left_.size() >= bytes);
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  std::span<const std::byte> take_padded(size_t bytes) {
    return take((bytes + 3) / 4 * 4).first(bytes);
  }
  uint64_t time() {
    const uint64_t high = take<uint32_t>();
    return high << 32 | take<uint32_t>();
  }
  bool empty() const { return left_.empty(); }
  // Returns the options at the end of a block, by their numbers.
  std::map<int, std::span<const std::byte>> options() {
    std::map<int, std::span<const std::byte>> found;
    for (;;) {
      const auto code = take<uint16_t>();
      const auto bytes = take<uint16_t>();
      if (code == 0) break;
      found[code] = take_padded(bytes);
    }
    CHECK(empty());
    return found;
  }

 private:
  std::span<const std::byte> left_;
};

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Fails if the file violates the format, or ends inside a block.
inline Capture read_capture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Cursor whole(std::as_bytes(std::span(text)));
  Capture out;
  for (int number = 0; !whole.empty(); ++number) {
    INFO(path << ", block " << number);
    REQUIRE_FALSE(out.ended);
    const auto type = whole.take<uint32_t>();
    const auto bytes = whole.take<uint32_t>();
    REQUIRE(bytes % 4 == 0);
    Cursor block(whole.take(bytes - 12));
    REQUIRE(whole.take<uint32_t>() == bytes);
    REQUIRE((type == 0x0a0d0d0a) == (number == 0));
    REQUIRE((type == 1) == (number == 1));
    if (type == 0x0a0d0d0a) {
      CHECK(block.take<uint32_t>() == 0x1a2b3c4d);
      CHECK(block.take<uint32_t>() == 1);  // version 1.0
      CHECK(block.take<uint64_t>() == UINT64_MAX);
      CHECK(text_of(block.options().at(4)) == "liburma");
    } else if (type == 1) {
      CHECK(block.take<uint32_t>() == 101);  // raw IP
      out.snap_bytes = block.take<uint32_t>();
      auto options = block.options();
      CHECK_FALSE(text_of(options.at(2)).empty());
      CHECK_FALSE(text_of(options.at(3)).empty());
      CHECK(options.at(9)[0] == std::byte{9});
    } else if (type == 6) {
      CHECK(block.take<uint32_t>() == 0);
      Captured packet{};
      packet.nanoseconds = block.time();
      const auto kept = block.take<uint32_t>();
      packet.had_bytes = block.take<uint32_t>();
      const auto data = block.take_padded(kept);
      packet.bytes.assign(data.begin(), data.end());
      Cursor flags(block.options().at(2));
      packet.direction = flags.take<drivers::pcap::Direction>();
      out.packets.push_back(std::move(packet));
    } else {
      REQUIRE(type == 5);
      CHECK(block.take<uint32_t>() == 0);
      block.time();
      auto options = block.options();
      if (options.contains(1)) out.comment = text_of(options.at(1));
      out.seen = Cursor(options.at(4)).take<uint64_t>();
      out.missing = Cursor(options.at(5)).take<uint64_t>();
      out.ended = true;
    }
  }
  return out;
}

}  // namespace urma::test
