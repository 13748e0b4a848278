#include "urma/core/ta_headers.h"

namespace urma {
namespace {

// Positions as the specification draws them, counted in bits from the start of the header.
namespace btah {
using Opcode = Field<0, 8>;
using Version = Field<8, 2>;
using ExecutionEnvironment = Field<10, 2>;
using TokenPresent = Field<12, 1>;
using UserData = Field<15, 1>;
using IniTassn = Field<16, 16>;
using TargetOrder = Field<33, 3>;
using TargetPresent = Field<36, 1>;
using Solicited = Field<37, 1>;
using Retry = Field<38, 1>;
using RcId = Field<44, 20>;
constexpr uint64_t not_trusted = 1;  // EE_bits 01: no trusted execution environment
}  // namespace btah

namespace atah {
using Opcode = Field<0, 8>;
using Version = Field<8, 2>;
using IniTassn = Field<16, 16>;
using Status = Field<32, 3>;
using Info = Field<35, 5>;
using RcId = Field<44, 20>;
}  // namespace atah

namespace maetah {
using Address = Field<0, 64>;
using Token = Field<68, 20>;
using Length = Field<96, 32>;
}  // namespace maetah

namespace mtetah {
using Target = Field<12, 20>;
}

namespace tvetah {
using Value = Field<0, 32>;
}

namespace ofstetah {
using Offset = Field<8, 24>;
}

namespace immetah {
using Immediate = Field<0, 64>;
using Token = Field<64, 32>;
using Length = Field<96, 32>;
}  // namespace immetah

namespace ntfetah {
using Address = Field<0, 64>;
using TokenId = Field<68, 20>;
using Token = Field<96, 32>;
using Value = Field<128, 64>;
}  // namespace ntfetah

constexpr uint64_t version = 0;

// Takes headers off the front of a packet; each header's length is checked here, once.
class Front {
 public:
  explicit Front(std::span<const std::byte> packet)
      : at_(packet.data()), end_(packet.data() + packet.size()) {}

  // The header's bytes; null when there are not so many left.
  const std::byte* take(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) < bytes) return nullptr;
    const std::byte* const header = at_;
    at_ += bytes;
    return header;
  }
  template <class Header>
  bool take_into(Header& header) {
    const std::byte* const bytes = take(Header::size);
    if (bytes != nullptr) header = Header::parse(HeaderView<Header::size>(bytes, Header::size));
    return bytes != nullptr;
  }
  // One that may be of another version.
  template <class Header>
  bool take_base(Header& header) {
    const std::byte* const bytes = take(Header::size);
    return bytes != nullptr && header.assign(HeaderView<Header::size>(bytes, Header::size));
  }
  std::span<const std::byte> rest() const { return {at_, end_}; }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

class Back {
 public:
  explicit Back(std::span<std::byte> out) : out_(out) {}

  template <class Header>
  void put(const Header& header) {
    header.emit(out_.subspan(used_).template first<Header::size>());
    used_ += Header::size;
  }
  size_t used() const { return used_; }

 private:
  std::span<std::byte> out_;
  size_t used_ = 0;
};

}  // namespace

bool Btah::assign(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  if (btah::Version::get(in) != version) return false;
  opcode = static_cast<uint8_t>(btah::Opcode::get(in));
  token_present = btah::TokenPresent::get(in) != 0;
  target_present = btah::TargetPresent::get(in) != 0;
  user_data = btah::UserData::get(in) != 0;
  tassn = static_cast<uint32_t>(btah::IniTassn::get(in));
  order = static_cast<Order>(btah::TargetOrder::get(in) & 3);
  solicited = btah::Solicited::get(in) != 0;
  retry = btah::Retry::get(in) != 0;
  rc_id = static_cast<uint32_t>(btah::RcId::get(in));
  return true;
}

std::optional<Btah> Btah::parse(HeaderView<size> bytes) {
  std::optional<Btah> header(std::in_place);
  if (!header->assign(bytes)) header.reset();
  return header;
}

void Btah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  btah::Opcode::set(out, opcode);
  btah::Version::set(out, version);
  btah::ExecutionEnvironment::set(out, btah::not_trusted);
  btah::TokenPresent::set(out, token_present);
  btah::UserData::set(out, user_data);
  btah::IniTassn::set(out, tassn);
  btah::TargetOrder::set(out, static_cast<uint64_t>(order));
  btah::TargetPresent::set(out, target_present);
  btah::Solicited::set(out, solicited);
  btah::Retry::set(out, retry);
  btah::RcId::set(out, rc_id);
  out.store(bytes);
}

bool Atah::assign(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  if (atah::Version::get(in) != version) return false;
  opcode = static_cast<uint8_t>(atah::Opcode::get(in));
  tassn = static_cast<uint32_t>(atah::IniTassn::get(in));
  status = static_cast<Response>(atah::Status::get(in));
  info = static_cast<uint8_t>(atah::Info::get(in));
  rc_id = static_cast<uint32_t>(atah::RcId::get(in));
  return true;
}

std::optional<Atah> Atah::parse(HeaderView<size> bytes) {
  std::optional<Atah> header(std::in_place);
  if (!header->assign(bytes)) header.reset();
  return header;
}

void Atah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  atah::Opcode::set(out, opcode);
  atah::Version::set(out, version);
  atah::IniTassn::set(out, tassn);
  atah::Status::set(out, static_cast<uint64_t>(status));
  atah::Info::set(out, info);
  atah::RcId::set(out, rc_id);
  out.store(bytes);
}

Maetah Maetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.address = maetah::Address::get(in),
          .token_id = static_cast<uint32_t>(maetah::Token::get(in)),
          .length = static_cast<uint32_t>(maetah::Length::get(in))};
}

void Maetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  maetah::Address::set(out, address);
  maetah::Token::set(out, token_id);
  maetah::Length::set(out, length);
  out.store(bytes);
}

Mtetah Mtetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.target = static_cast<uint32_t>(mtetah::Target::get(in))};
}

void Mtetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  mtetah::Target::set(out, target);
  out.store(bytes);
}

Tvetah Tvetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.token = static_cast<uint32_t>(tvetah::Value::get(in))};
}

void Tvetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  tvetah::Value::set(out, token);
  out.store(bytes);
}

Ofstetah Ofstetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.kib = static_cast<uint32_t>(ofstetah::Offset::get(in))};
}

void Ofstetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  ofstetah::Offset::set(out, kib);
  out.store(bytes);
}

Immetah Immetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.immediate = immetah::Immediate::get(in),
          .token = static_cast<uint32_t>(immetah::Token::get(in)),
          .message_length = static_cast<uint32_t>(immetah::Length::get(in))};
}

void Immetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  immetah::Immediate::set(out, immediate);
  immetah::Token::set(out, token);
  immetah::Length::set(out, message_length);
  out.store(bytes);
}

Ntfetah Ntfetah::parse(HeaderView<size> bytes) {
  const HeaderWords in(bytes);
  return {.address = ntfetah::Address::get(in),
          .token_id = static_cast<uint32_t>(ntfetah::TokenId::get(in)),
          .token = static_cast<uint32_t>(ntfetah::Token::get(in)),
          .value = ntfetah::Value::get(in)};
}

void Ntfetah::emit(HeaderBytes<size> bytes) const {
  HeaderWords<size> out;
  ntfetah::Address::set(out, address);
  ntfetah::TokenId::set(out, token_id);
  ntfetah::Token::set(out, token);
  ntfetah::Value::set(out, value);
  out.store(bytes);
}

size_t TaRequest::emit(std::span<std::byte> out) {
  const OpcodeInfo* info = find_opcode(base.opcode);
  base.target_present = info->to_jetty;
  Back back(out);
  back.put(base);
  if (info->to_jetty) back.put(target);
  if (info->to_memory) back.put(memory);
  if (info->offset) back.put(offset);
  if (info->notify) back.put(notify);
  if (info->immediate) back.put(immediate);
  if (base.token_present) back.put(token);
  return back.used();
}

namespace {

bool parse(std::span<const std::byte> packet, ParsedRequest& request) {
  Front front(packet);
  TaRequest& headers = request.headers;
  const Btah& base = headers.base;
  if (!front.take_base(headers.base)) return false;
  const OpcodeInfo* info = base.user_data ? nullptr : find_opcode(base.opcode);
  if (info == nullptr) return true;
  request.info = info;
  if (!info->request || base.target_present != info->to_jetty) return false;
  if (info->to_jetty && !front.take_into(headers.target)) return false;
  if (info->to_memory && !front.take_into(headers.memory)) return false;
  if (info->offset && !front.take_into(headers.offset)) return false;
  if (info->notify && !front.take_into(headers.notify)) return false;
  if (info->immediate && !front.take_into(headers.immediate)) return false;
  if (base.token_present && !front.take_into(headers.token)) return false;
  request.data = front.rest();
  return info->data || request.data.empty();
}

}  // namespace

std::optional<ParsedRequest> parse_request(std::span<const std::byte> packet) {
  std::optional<ParsedRequest> request(std::in_place);
  if (!parse(packet, *request)) request.reset();
  return request;
}

size_t TaResponse::emit(std::span<std::byte> out) const {
  Back back(out);
  back.put(base);
  if (find_opcode(base.opcode)->offset) back.put(offset);
  return back.used();
}

namespace {

bool parse(std::span<const std::byte> packet, ParsedResponse& response) {
  Front front(packet);
  const Atah& base = response.headers.base;
  if (!front.take_base(response.headers.base)) return false;
  response.info = find_opcode(base.opcode);
  if (response.info == nullptr || response.info->request) return false;
  if (response.info->offset && !front.take_into(response.headers.offset)) return false;
  response.data = front.rest();
  return response.info->data || response.data.empty();
}

}  // namespace

std::optional<ParsedResponse> parse_response(std::span<const std::byte> packet) {
  std::optional<ParsedResponse> response(std::in_place);
  if (!parse(packet, *response)) response.reset();
  return response;
}

}  // namespace urma
