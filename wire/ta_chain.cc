// SPDX-License-Identifier: Apache-2.0
#include "wire/ta_chain.h"

namespace urma {

bool parse_request(std::span<const std::byte> packet, ParsedRequest& request) {
  TaRequest& headers = request.headers;
  const Btah& base = headers.base;
  ChainReader reader(packet);
  if (packet.size() < Btah::size || !reader.take(headers.base)) return false;
  const OpcodeInfo* info = find_opcode(base.opcode);
  if (info == nullptr || info->user_data != base.user_data) return true;
  request.info = info;
  if (!info->request || base.target_present != info->to_jetty) return false;
  const size_t without = base.token_present ? 0 : Tvetah::size;
  if (packet.size() < chain_bytes(*info) - without) return false;
  visit_chain(*info, headers, [&](auto& header) { reader.take(header); });
  request.data = reader.rest();
  return info->data || request.data.empty();
}

std::optional<ParsedRequest> parse_request(std::span<const std::byte> packet) {
  std::optional<ParsedRequest> request(std::in_place);
  if (!parse_request(packet, *request)) request.reset();
  return request;
}

size_t TaResponse::bytes() const {
  return Atah::size + (find_opcode(base.opcode)->offset ? Ofstetah::size : 0);
}

size_t TaResponse::emit(std::span<std::byte> out) const {
  base.emit(out.first<Atah::size>());
  if (find_opcode(base.opcode)->offset) offset.emit(out.subspan<Atah::size, Ofstetah::size>());
  return bytes();
}

bool parse_response(std::span<const std::byte> packet, ParsedResponse& response) {
  const Atah& base = response.headers.base;
  ChainReader reader(packet);
  if (packet.size() < Atah::size || !reader.take(response.headers.base)) return false;
  response.info = find_opcode(base.opcode);
  if (response.info == nullptr || response.info->request) return false;
  if (packet.size() < response.headers.bytes()) return false;
  if (response.info->offset) reader.take(response.headers.offset);
  response.data = reader.rest();
  return response.info->data || response.data.empty();
}

std::optional<ParsedResponse> parse_response(std::span<const std::byte> packet) {
  std::optional<ParsedResponse> response(std::in_place);
  if (!parse_response(packet, *response)) response.reset();
  return response;
}

}  // namespace urma
