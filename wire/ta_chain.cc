#include "wire/ta_chain.h"

namespace urma {
namespace {

// Takes headers off the front of a packet that is known to hold them.
class Front {
 public:
  explicit Front(std::span<const std::byte> packet) : packet_(packet), at_(packet.data()) {}

  template <class Header>
  void take_into(Header& header) {
    header = Header::parse(HeaderView<Header::size>(at_, Header::size));
    at_ += Header::size;
  }
  // One that may be of another version: false then.
  template <class Header>
  bool take_base(Header& header) {
    const bool known = header.assign(HeaderView<Header::size>(at_, Header::size));
    at_ += Header::size;
    return known;
  }
  std::span<const std::byte> rest() const { return {at_, packet_.data() + packet_.size()}; }

 private:
  std::span<const std::byte> packet_;
  const std::byte* at_;
};

}  // namespace

bool parse_request(std::span<const std::byte> packet, ParsedRequest& request) {
  TaRequest& headers = request.headers;
  const Btah& base = headers.base;
  Front front(packet);
  if (packet.size() < Btah::size || !front.take_base(headers.base)) return false;
  const OpcodeInfo* info = find_opcode(base.opcode);
  if (info == nullptr || info->user_data != base.user_data) return true;
  request.info = info;
  if (!info->request || base.target_present != info->to_jetty) return false;
  const size_t without = base.token_present ? 0 : Tvetah::size;
  if (packet.size() < chain_bytes(*info) - without) return false;
  if (info->user_data) front.take_into(headers.update);
  if (info->to_jetty) front.take_into(headers.target);
  if (info->to_memory) front.take_into(headers.memory);
  if (info->offset) front.take_into(headers.offset);
  if (info->notify) front.take_into(headers.notify);
  if (info->immediate) front.take_into(headers.immediate);
  if (base.token_present) front.take_into(headers.token);
  request.data = front.rest();
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
  Front front(packet);
  if (packet.size() < Atah::size || !front.take_base(response.headers.base)) return false;
  response.info = find_opcode(base.opcode);
  if (response.info == nullptr || response.info->request) return false;
  if (packet.size() < response.headers.bytes()) return false;
  if (response.info->offset) front.take_into(response.headers.offset);
  response.data = front.rest();
  return response.info->data || response.data.empty();
}

std::optional<ParsedResponse> parse_response(std::span<const std::byte> packet) {
  std::optional<ParsedResponse> response(std::in_place);
  if (!parse_response(packet, *response)) response.reset();
  return response;
}

}  // namespace urma
