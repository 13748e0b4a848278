// SPDX-License-Identifier: Apache-2.0
// Tests every header parser on any bytes. Oracle: what parses is emitted as the same bytes, except
// for bits that the specification reserves, and parses again as the same value; no parser reads
// beyond its input (ASan: the input lies at the end of its allocation).

#include <algorithm>
#include <array>

#include "drivers/frame_pool.h"
#include "tests/fuzz/input.h"
#include "wire/cetph.h"
#include "wire/link.h"
#include "wire/nth.h"
#include "wire/setup_message.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma::fuzz {
namespace {

using Packet = std::span<const std::byte>;

template <class Header>
std::array<std::byte, Header::size> emitted(const Header& header) {
  std::array<std::byte, Header::size> out;
  out.fill(std::byte{0xa5});  // `emit` must overwrite every byte
  header.emit(HeaderBytes<Header::size>(out));
  return out;
}

template <class Header>
std::optional<Header> parsed(HeaderView<Header::size> in) {
  return Header::parse(in);
}

// Returns which bits of a header have a meaning: those that come back from a header of ones.
// `reserved` gives the bits that must be zero for the header to be parsed.
template <class Header>
std::array<std::byte, Header::size> known_bits(std::initializer_list<std::byte> must_be) {
  std::array<std::byte, Header::size> ones;
  ones.fill(std::byte{0xff});
  std::copy(must_be.begin(), must_be.end(), ones.begin());
  const auto header = parsed<Header>(ones);
  require(header.has_value(), "a header of ones is a header");
  return emitted(*header);
}

// Checks one header. `first` has further bits of the first byte that have a meaning, but cannot all
// be set together.
template <class Header>
void check_header(Packet in, std::initializer_list<std::byte> must_be = {}, std::byte first = {}) {
  static const auto mask = [&] {
    auto known = known_bits<Header>(must_be);
    known[0] |= first;
    return known;
  }();
  static const auto always = [] {
    std::array<std::byte, Header::size> zeros{};
    const auto header = parsed<Header>(zeros);
    return header ? emitted(*header) : zeros;
  }();
  if (in.size() < Header::size) return;
  const auto bytes = in.first<Header::size>();
  const auto header = parsed<Header>(bytes);
  if (!header) return;
  const auto out = emitted(*header);
  for (size_t i = 0; i < Header::size; ++i) {
    require(out[i] == ((bytes[i] & mask[i]) | always[i]), "a header is emitted as it was parsed");
  }
  const auto again = parsed<Header>(out);
  require(again == header, "an emitted header parses as itself");
}

void check_saetph(Packet in) {
  const auto header = Saetph::parse(in);
  if (!header) return;
  require(header->size() <= in.size(), "a bitmap lies in its packet");
  std::array<std::byte, Saetph::max_size> out;
  const size_t bytes = header->emit(out);
  require(bytes == header->size(), "a bitmap is as long as it says");
  require((in[0] & std::byte{7}) == out[0] && std::equal(in.begin() + 1, in.begin() + 4, &out[1]),
          "a bitmap's fixed part is emitted as it was parsed");
  require(std::equal(in.begin() + 4, in.begin() + static_cast<ptrdiff_t>(bytes), &out[4]),
          "a bitmap is emitted as it was parsed");
  for (uint32_t i = 0; i < header->bit_count; ++i) {
    const bool set = (static_cast<unsigned>(in[4 + i / 8]) >> i % 8 & 1) != 0;
    require(header->bit(i) == set, "bits count from the least significant one");
  }
}

bool same(const TaRequest& a, const TaRequest& b) {
  return a.base == b.base && a.update == b.update && a.target == b.target && a.memory == b.memory &&
         a.offset == b.offset && a.notify == b.notify && a.immediate == b.immediate &&
         a.token == b.token;
}

void check_request(Packet in) {
  const auto request = parse_request(in);
  if (!request) return;
  if (request->info == nullptr) {
    require(request->data.empty(), "nothing is known of an unknown request's data");
    return;
  }
  std::vector<std::byte> out(TaRequest::max_size);
  TaRequest headers = request->headers;
  out.resize(headers.emit(out));
  require(out.size() + request->data.size() == in.size(), "headers and data are the packet");
  require(request->data.data() + request->data.size() == in.data() + in.size(),
          "data lies behind the headers");
  out.insert(out.end(), request->data.begin(), request->data.end());
  const auto again = parse_request(out);
  require(again && again->info == request->info && same(again->headers, request->headers) &&
              std::equal(again->data.begin(), again->data.end(), request->data.begin(),
                         request->data.end()),
          "an emitted request parses as itself");
}

void check_response(Packet in) {
  const auto response = parse_response(in);
  if (!response) return;
  std::vector<std::byte> out(TaResponse::max_size);
  out.resize(response->headers.emit(out));
  require(out.size() + response->data.size() == in.size(), "headers and data are the packet");
  out.insert(out.end(), response->data.begin(), response->data.end());
  const auto again = parse_response(out);
  require(again && again->info == response->info && again->headers.base == response->headers.base &&
              again->headers.offset == response->headers.offset &&
              again->data.size() == response->data.size(),
          "an emitted response parses as itself");
}

void check_setup(Packet in) {
  const auto setup = parse_setup(in);
  if (!setup) return;
  std::array<std::byte, TxFrame::head_room> head;
  TxFrame frame;
  frame.head = head.data();
  std::array<std::byte, SetupMessage::most_paths_size> said;
  const size_t said_bytes = emit_paths(setup->message.paths, said);
  write_setup(frame, setup->addresses, setup->message, 0, Carrier::unreliable,
              std::span(said).first(said_bytes));
  std::vector<std::byte> packet(frame.bytes());
  drivers::flatten(frame, packet.data());
  const auto again = parse_setup(packet);
  require(again && again->message == setup->message && again->addresses == setup->addresses,
          "a set-up message is written as it was parsed");
}

// Counts packets whose sizes are the input, and compares with a count that does not wrap.
void check_byte_count(Packet in) {
  constexpr uint32_t start = 0xffffff00;
  ByteCount count(start);
  int64_t bytes = 0;
  for (; in.size() >= 2; in = in.subspan(2)) {
    const auto size = static_cast<uint32_t>(load_be<2>(in.data()));
    const ByteCount before = count;
    count.add_packet(size);
    require(count - before == size + size % 2, "a packet is rounded up to units of 2 bytes");
    bytes += size + size % 2;
    require(count - ByteCount(start) == bytes && ByteCount(start) - count == -bytes,
            "a count that has wrapped is still right");
  }
}

void check_offer(Packet in) {
  if (in.size() < 4) return;
  const auto features = static_cast<uint32_t>(load_be<4>(in.data()));
  const ReportOffer offer = offered_by(features);
  require(offered_by(features_of(offer)) == offer, "an offer is written as it was read");
  const ReportForm form = agreed_form(offer, {.gives = {0xff}});
  require(form == offer.wants && form <= ReportForm::rate, "only known forms are agreed on");
}

void check_all(Packet in) {
  constexpr std::byte version_zero{0x3f};
  constexpr std::byte any{0xff};
  check_header<Rtph>(in, {any, version_zero});
  check_header<Utph>(in, {std::byte{0}, version_zero});
  check_header<Addresses>(in);
  check_header<SetupMessage>(in, {std::byte{7}}, std::byte{0x0f});
  check_header<Btah>(in, {any, version_zero});
  check_header<Atah>(in, {any, version_zero});
  check_header<Maetah>(in);
  check_header<Mtetah>(in);
  check_header<Tvetah>(in);
  check_header<Ofstetah>(in);
  check_header<Immetah>(in);
  check_header<Ntfetah>(in);
  check_header<Udetah>(in);
  check_header<LdcpCetph>(in);
  check_header<CaqmCetph>(in);
  check_header<RateCetph>(in);
  check_header<CnpCetph>(in);
  check_header<CaqmCci>(in, {std::byte{0x1f}});
  check_header<FecnRttCci>(in, {std::byte{0x5f}});
  check_header<FecnCci>(in, {std::byte{0x9f}});
  check_header<Cna16Nth>(in);
  check_header<Cna24Nth>(in);
  check_header<IpNth>(in);
  check_header<LinkWord>(in, {std::byte{0xff}, std::byte{LinkWord::version}});
  check_header<LinkControl>(in);
  check_saetph(in);
  check_byte_count(in);
  check_offer(in);
  check_request(in);
  check_response(in);
  check_setup(in);
}

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::check_all(std::as_bytes(std::span(data, size)));
  return 0;
}
