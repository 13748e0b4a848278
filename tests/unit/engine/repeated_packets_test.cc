// SPDX-License-Identifier: Apache-2.0
// The packets of a slice are the same however they are asked for: the headers of most are made from
// those of the packet before in the same burst, which may be any one if packets are sent again.

#include <array>
#include <vector>

#include "base/prng.h"
#include "engine/jetty_control.h"
#include "tests/unit/engine/lone_transactions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t full_packet = 1024;  // as OnePeer's channel has it
constexpr uint16_t packet_count = 5;

using Bytes = std::vector<std::byte>;

// A slice of several packets, which the channel has been offered.
struct OfferedSlice {
  explicit OfferedSlice(Operation operation) : memory((packet_count - 1) * full_packet + 100) {
    Prng prng(1);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(prng.below(256));
    lone.connect(now);
    Work work = write(memory, {.peer = OnePeer::id,
                               .address = 0x1000,
                               .bytes = memory.size(),
                               .token_id = TokenId(1),
                               .token = TokenValue(1),
                               .rights = Rights::write});
    if (operation == Operation::send) work = send(memory, {.peer = OnePeer::id, .id = JettyId(9)});
    const auto made = control.create({queues, {}}).value();
    REQUIRE(queues->post({&work, 1}) == 1);
    jetty::Initiator& initiator = lone.transactions.initiator();
    initiator.take(lone.transactions.jetties().at(made.handle.index), 1, now);
    initiator.cut(1, now);
    REQUIRE(lone.peer.link.offered.size() == 1);
  }

  // Returns the bytes of these packets, which the channel asks for at once.
  std::vector<Bytes> burst(std::span<const uint16_t> indices) {
    std::vector<std::array<std::byte, TxFrame::head_room>> heads(indices.size());
    std::vector<TxFrame> frames(indices.size());
    std::vector<transport::PacketSlot> slots;
    for (size_t i = 0; i < indices.size(); ++i) {
      frames[i].head = heads[i].data();
      slots.push_back({.slice = lone.peer.link.offered[0],
                       .index = indices[i],
                       .again = true,
                       .frame = &frames[i]});
    }
    lone.transactions.write(slots);
    std::vector<Bytes> out;
    for (const TxFrame& frame : frames) {
      Bytes bytes(frame.head, frame.head + frame.head_bytes);
      for (unsigned i = 0; i < frame.piece_count; ++i) {
        const Piece& piece = frame.pieces[i];
        bytes.insert(bytes.end(), piece.data, piece.data + piece.bytes);
      }
      out.push_back(std::move(bytes));
    }
    return out;
  }

  Bytes memory;
  Time now{1h};
  LoneTransactions lone;
  SeededEntropy entropy{1};
  engine::JettyControl control{8, lone.transactions, entropy};
  std::shared_ptr<jetty::Queues> queues = jetty::Queues::with_own_jfc(4, 4, 0);
};

TEST_CASE("a packet has the same bytes after any other packet of its slice as alone") {
  for (const Operation operation : {Operation::write, Operation::send}) {
    OfferedSlice slice(operation);
    std::vector<Bytes> alone;
    for (uint16_t i = 0; i < packet_count; ++i) alone.push_back(slice.burst({{i}})[0]);
    for (uint16_t before = 0; before < packet_count; ++before) {
      for (uint16_t i = 0; i < packet_count; ++i) {
        const std::array<uint16_t, 2> indices = {before, i};
        CHECK(slice.burst(indices) == std::vector<Bytes>{alone[before], alone[i]});
      }
    }
  }
}

}  // namespace
}  // namespace urma::test
