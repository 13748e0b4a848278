// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/assembly.h"

#include "transport/channel.h"

namespace urma::jetty {

void Assembly::note_length(const ParsedRequest& last_packet, uint32_t packet_bytes) {
  if (info->to_memory) return;
  const uint32_t offset = last_packet.headers.offset.kib * 1024;
  bytes = offset + static_cast<uint32_t>(last_packet.data.size());
  needed = transport::packets_of(bytes, packet_bytes);
}

void Assembly::expect_next(const transport::Received& packet, const ParsedRequest& request) {
  expected = {};
  if (info->opcode != TaOpcode::write || !request.headers.base.token_present) return;
  expected = WriteWords::read(packet.head.first<WriteWords::size>());
  expected.address += request.data.size();
}

bool Assembly::expects(const transport::Received& packet, uint32_t packet_bytes) const {
  if (expected.base == 0 || packet.last || packets + 1 >= needed) return false;
  if (packet.bytes.size() != WriteWords::size + packet_bytes) return false;
  if (packet.head.size() < WriteWords::size) return false;
  return WriteWords::read(packet.head.first<WriteWords::size>()) == expected;
}

bool Assembly::fills(const std::byte* base, uint64_t size) const {
  if (receive == Queues::none) return false;
  return overlaps(receiver->queues->jfr().pieces(receive), base, size);
}

void Assembly::give_back() {
  if (jetty != nullptr) {
    let_go();
    if (permit) --receiver->immediates_raised;
    if (receive != Queues::none) receiver->recycle(receive);
    permit = false;
    receive = Queues::none;
    jetty = receiver = nullptr;
  }
  abandon(ExecutionRecord::Mark::none);
}

}  // namespace urma::jetty
