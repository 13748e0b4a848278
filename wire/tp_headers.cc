#include "wire/tp_headers.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace urma::transport {
namespace {

constexpr uint64_t version = 0;

// Bit positions as the specification draws them.
namespace rtph {
using Last = Field<0, 1>;
using Opcode = Field<1, 7>;
using Version = Field<8, 2>;
using Padding = Field<10, 2>;
using Next = Field<12, 4>;
using Source = Field<16, 24>;
using Destination = Field<40, 24>;
using AckRequest = Field<64, 1>;
using Fake = Field<65, 1>;
using PacketNumber = Field<72, 24>;
using Status = Field<96, 3>;
using Info = Field<99, 5>;
using SliceNumber = Field<104, 24>;
}  // namespace rtph

namespace utph {
using Opcode = Field<0, 8>;
using Version = Field<8, 2>;
using Padding = Field<10, 2>;
using Next = Field<12, 4>;
}  // namespace utph

namespace ctph {
using Opcode = Field<0, 2>;
using Padding = Field<2, 2>;
using Next = Field<4, 4>;
}  // namespace ctph

namespace upih {
using Partition = Field<8, 24>;
constexpr size_t source_byte = 4;
constexpr size_t destination_byte = 20;
}  // namespace upih

namespace saetph {
using BitmapSize = Field<5, 3>;
using MaxReceived = Field<8, 24>;
constexpr uint32_t smallest = 64;
constexpr uint32_t largest_code = 4;
}  // namespace saetph

}  // namespace

std::optional<Rtph> Rtph::parse(HeaderView<size> in) {
  if (rtph::Version::get(in) != version) return std::nullopt;
  return Rtph{
      .last = rtph::Last::get(in) != 0,
      .opcode = static_cast<uint8_t>(rtph::Opcode::get(in)),
      .padding = static_cast<uint8_t>(rtph::Padding::get(in)),
      .next = static_cast<NextHeader>(rtph::Next::get(in)),
      .source = static_cast<uint32_t>(rtph::Source::get(in)),
      .destination = static_cast<uint32_t>(rtph::Destination::get(in)),
      .ack_request = rtph::AckRequest::get(in) != 0,
      .fake = rtph::Fake::get(in) != 0,
      .psn = static_cast<uint32_t>(rtph::PacketNumber::get(in)),
      .status = static_cast<uint8_t>(rtph::Status::get(in)),
      .info = static_cast<uint8_t>(rtph::Info::get(in)),
      .tpmsn = static_cast<uint32_t>(rtph::SliceNumber::get(in)),
  };
}

void Rtph::emit(HeaderBytes<size> out) const {
  clear(out);
  rtph::Last::set(out, last);
  rtph::Opcode::set(out, opcode);
  rtph::Version::set(out, version);
  rtph::Padding::set(out, padding);
  rtph::Next::set(out, static_cast<uint64_t>(next));
  rtph::Source::set(out, source);
  rtph::Destination::set(out, destination);
  rtph::AckRequest::set(out, ack_request);
  rtph::Fake::set(out, fake);
  rtph::PacketNumber::set(out, psn);
  rtph::Status::set(out, status);
  rtph::Info::set(out, info);
  rtph::SliceNumber::set(out, tpmsn);
}

std::optional<Utph> Utph::parse(HeaderView<size> in) {
  if (utph::Opcode::get(in) != static_cast<uint64_t>(TpOpcode::unreliable)) return std::nullopt;
  if (utph::Version::get(in) != version) return std::nullopt;
  return Utph{.padding = static_cast<uint8_t>(utph::Padding::get(in)),
              .next = static_cast<NextHeader>(utph::Next::get(in))};
}

void Utph::emit(HeaderBytes<size> out) const {
  clear(out);
  utph::Opcode::set(out, static_cast<uint64_t>(TpOpcode::unreliable));
  utph::Padding::set(out, padding);
  utph::Next::set(out, static_cast<uint64_t>(next));
}

std::optional<Ctph> Ctph::parse(HeaderView<size> in) {
  const uint64_t opcode = ctph::Opcode::get(in);
  if (opcode > static_cast<uint64_t>(Opcode::filler) || ctph::Padding::get(in) != 0) {
    return std::nullopt;
  }
  return Ctph{.opcode = static_cast<Opcode>(opcode),
              .next = static_cast<NextHeader>(ctph::Next::get(in))};
}

void Ctph::emit(HeaderBytes<size> out) const {
  out[0] = std::byte{0};
  ctph::Opcode::set(out, static_cast<uint64_t>(opcode));
  ctph::Next::set(out, static_cast<uint64_t>(next));
}

Addresses Addresses::parse(HeaderView<size> in) {
  Addresses out{
      .upi = static_cast<uint32_t>(upih::Partition::get(in)), .source = {}, .destination = {}};
  std::memcpy(out.source.bytes.data(), in.data() + upih::source_byte, 16);
  std::memcpy(out.destination.bytes.data(), in.data() + upih::destination_byte, 16);
  return out;
}

void Addresses::emit(HeaderBytes<size> out) const {
  clear(out);
  upih::Partition::set(out, upi);
  std::memcpy(out.data() + upih::source_byte, source.bytes.data(), 16);
  std::memcpy(out.data() + upih::destination_byte, destination.bytes.data(), 16);
}

std::optional<Saetph> Saetph::parse(std::span<const std::byte> in) {
  if (in.size() < fixed_size) return std::nullopt;
  const auto fixed = in.first<fixed_size>();
  const auto code = static_cast<uint32_t>(saetph::BitmapSize::get(fixed));
  if (code > saetph::largest_code) return std::nullopt;
  Saetph out{.max_received = static_cast<uint32_t>(saetph::MaxReceived::get(fixed)),
             .bit_count = saetph::smallest << code,
             .bits = {}};
  if (in.size() < out.size()) return std::nullopt;
  for (uint32_t byte = 0; byte < out.bit_count / 8; ++byte) {
    out.bits[byte / 8] |= static_cast<uint64_t>(in[fixed_size + byte]) << byte % 8 * 8;
  }
  return out;
}

size_t Saetph::emit(std::span<std::byte> out) const {
  const auto fixed = out.first<fixed_size>();
  clear(fixed);
  saetph::BitmapSize::set(fixed,
                          static_cast<uint64_t>(std::countr_zero(bit_count / saetph::smallest)));
  saetph::MaxReceived::set(fixed, max_received);
  for (uint32_t byte = 0; byte < bit_count / 8; ++byte) {
    out[fixed_size + byte] = static_cast<std::byte>(bits[byte / 8] >> byte % 8 * 8);
  }
  return size();
}

}  // namespace urma::transport
