// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/slice_shape.h"

#include <algorithm>
#include <vector>

#include "jetty/flow.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::is_well_formed;
using jetty::start_in_memory;

constexpr uint64_t base = 0x10'0000;

struct Part {
  uint32_t offset;
  uint32_t size;
  bool last;
};

// Cuts a slice into packets.
std::vector<Part> cut(uint32_t bytes, uint32_t packet_bytes) {
  std::vector<Part> parts;
  for (uint32_t at = 0; at == 0 || at < bytes; at += packet_bytes) {
    const uint32_t size = std::min(packet_bytes, bytes - at);
    parts.push_back({at, size, at + size == bytes});
  }
  return parts;
}

struct Shape {
  explicit Shape(TaOpcode opcode) {
    request.info = find_opcode(static_cast<uint8_t>(opcode));
    request.headers.base.opcode = static_cast<uint8_t>(opcode);
  }
  // A packet of a slice of `length` bytes in memory.
  Shape& memory(const Part& part, uint32_t length) {
    request.headers.memory = {.address = base + part.offset, .length = length};
    return data(part.size, part.last);
  }
  Shape& message(const Part& part) {
    request.headers.offset.kib = part.offset / 1024;
    return data(part.size, part.last);
  }
  Shape& data(size_t size, bool last) {
    bytes.resize(size);
    request.data = bytes;
    packet.last = last;
    return *this;
  }
  bool well_formed(uint32_t packet_bytes) const {
    return is_well_formed(packet, request, packet_bytes);
  }

  std::vector<std::byte> bytes;
  transport::Received packet{};
  ParsedRequest request;
};

TEST_CASE("slice shape: exactly the packets that a write is cut into are well formed") {
  constexpr uint32_t packet_bytes = 16;
  Shape shape(TaOpcode::write);
  for (uint32_t length = 0; length <= 5 * packet_bytes; ++length) {
    const auto parts = cut(length, packet_bytes);
    for (uint32_t size = 0; size <= packet_bytes + 2; ++size) {
      for (const bool last : {false, true}) {
        const bool genuine = std::ranges::any_of(
            parts, [&](const Part& part) { return part.size == size && part.last == last; });
        INFO(length << " bytes, packet of " << size << (last ? ", last" : ""));
        REQUIRE(shape.memory({0, size, last}, length).well_formed(packet_bytes) == genuine);
      }
    }
  }
  CHECK(shape.memory({0, packet_bytes, false}, jetty::slice_bytes).well_formed(packet_bytes));
  CHECK_FALSE(
      shape.memory({0, packet_bytes, false}, jetty::slice_bytes + 1).well_formed(packet_bytes));
}

TEST_CASE("slice shape: each packet that a message is cut into is well formed, and no others") {
  constexpr uint32_t packet_bytes = 2048;
  Shape shape(TaOpcode::send);
  for (uint32_t bytes = 0; bytes <= max_send_bytes; bytes += 512) {
    for (const Part& part : cut(bytes, packet_bytes)) {
      INFO(bytes << " bytes, at " << part.offset);
      REQUIRE(shape.message(part).well_formed(packet_bytes));
    }
  }
  const Part wrong[] = {
      {0, packet_bytes - 1, false},         // not full
      {0, packet_bytes + 1, true},          // more than full
      {1024, 8, true},                      // between two packets
      {packet_bytes, 0, true},              // empty behind the first
      {uint32_t{max_send_bytes}, 1, true},  // behind the longest message
  };
  for (const Part& part : wrong) {
    INFO(part.offset << " " << part.size);
    CHECK_FALSE(shape.message(part).well_formed(packet_bytes));
  }
}

TEST_CASE("slice shape: an atomic is one packet with its operands, a read one without data") {
  for (const auto& [opcode, operands] :
       {std::pair{TaOpcode::fetch_add, 1u}, {TaOpcode::compare_swap, 2u}}) {
    Shape atomic(opcode);
    for (uint32_t size = 0; size <= 32; ++size) {
      CHECK(atomic.memory({0, size, true}, 8).well_formed(1024) == (size == 8 * operands));
      CHECK_FALSE(atomic.memory({0, size, false}, 8).well_formed(1024));
    }
  }
  Shape read(TaOpcode::read);
  CHECK(read.memory({0, 0, true}, jetty::slice_bytes).well_formed(1024));
  CHECK_FALSE(read.memory({0, 0, false}, 8).well_formed(1024));
  CHECK_FALSE(read.memory({0, 0, true}, jetty::slice_bytes + 1).well_formed(1024));
}

TEST_CASE("slice shape: the last packet shows where a slice begins, or the first if none is lost") {
  constexpr uint32_t packet_bytes = 16;
  Shape shape(TaOpcode::write);
  for (uint32_t length = 0; length <= 5 * packet_bytes; ++length) {
    const auto parts = cut(length, packet_bytes);
    for (const Part& part : parts) {
      INFO(length << " bytes, at " << part.offset);
      shape.memory(part, length);
      shape.packet.in_order = false;
      const auto late = start_in_memory(shape.packet, shape.request);
      if (parts.size() == 1 || !part.last) {
        REQUIRE_FALSE(late);
      } else {
        REQUIRE(late == base);
      }
      shape.packet.in_order = true;
      const auto first = start_in_memory(shape.packet, shape.request);
      if (parts.size() > 1 && part.offset == 0) REQUIRE(first == base);
    }
  }
  Shape message(TaOpcode::send);
  message.message({0, 16, true}).packet.in_order = true;
  CHECK_FALSE(start_in_memory(message.packet, message.request));
  Shape atomic(TaOpcode::compare_swap);
  atomic.memory({0, 16, true}, 8).packet.in_order = true;
  CHECK_FALSE(start_in_memory(atomic.packet, atomic.request));
}

}  // namespace
}  // namespace urma::test
