// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/slice_shape.h"

#include "jetty/flow.h"

namespace urma::jetty {

bool is_well_formed(const transport::Received& packet, const ParsedRequest& request,
                    uint32_t packet_bytes) {
  const size_t size = request.data.size();
  if (request.info->opcode == TaOpcode::read) {
    return packet.last && request.headers.memory.length <= slice_bytes;
  }
  if (size > packet_bytes || (!packet.last && size != packet_bytes)) return false;
  if (request.info->operands > 0) {
    return packet.last && size == uint64_t{request.headers.memory.length} * request.info->operands;
  }
  if (!request.info->to_memory) {
    const uint64_t offset = uint64_t{request.headers.offset.kib} * 1024;
    return offset % packet_bytes == 0 && offset + size <= max_send_bytes &&
           (size > 0 || offset == 0);
  }
  const uint32_t length = request.headers.memory.length;
  if (length > slice_bytes) return false;
  const uint32_t last = length <= packet_bytes ? length : (length - 1) % packet_bytes + 1;
  return packet.last ? size == last : length > packet_bytes;
}

std::optional<uint64_t> start_in_memory(const transport::Received& packet,
                                        const ParsedRequest& request) {
  const Maetah& memory = request.headers.memory;
  const size_t size = request.data.size();
  if (!request.info->to_memory || size == memory.length || request.info->operands > 0) {
    return std::nullopt;
  }
  if (!packet.last && !packet.in_order) return std::nullopt;
  return packet.last ? memory.address + size - memory.length : memory.address;
}

}  // namespace urma::jetty
