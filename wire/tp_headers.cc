// SPDX-License-Identifier: Apache-2.0
#include "wire/tp_headers.h"

#include <bit>

namespace urma {
namespace {

constexpr uint32_t smallest_bitmap = 64;
constexpr uint32_t largest_code = 4;

// The fixed part in front of the bitmap.
struct BitmapHead {
  static constexpr size_t size = Saetph::fixed_size;

  uint32_t code = 0;  // the bitmap has 64 << code bits
  uint32_t max_received = 0;

  using Layout =
      HeaderLayout<size, Member<&BitmapHead::code, 5, 3>, Member<&BitmapHead::max_received, 8, 24>>;
};

}  // namespace

std::optional<Saetph> Saetph::parse(std::span<const std::byte> in) {
  if (in.size() < fixed_size) return std::nullopt;
  const auto head = read_header<BitmapHead>(in.first<fixed_size>());
  if (head.code > largest_code) return std::nullopt;
  Saetph out{
      .max_received = head.max_received, .bit_count = smallest_bitmap << head.code, .bits = {}};
  if (in.size() < out.size()) return std::nullopt;
  for (uint32_t byte = 0; byte < out.bit_count / 8; ++byte) {
    out.bits[byte / 8] |= static_cast<uint64_t>(in[fixed_size + byte]) << byte % 8 * 8;
  }
  return out;
}

size_t Saetph::emit(std::span<std::byte> out) const {
  const BitmapHead head{
      .code = static_cast<uint32_t>(std::countr_zero(bit_count / smallest_bitmap)),
      .max_received = max_received};
  BitmapHead::Layout::write(head, out.first<fixed_size>());
  for (uint32_t byte = 0; byte < bit_count / 8; ++byte) {
    out[fixed_size + byte] = static_cast<std::byte>(bits[byte / 8] >> byte % 8 * 8);
  }
  return size();
}

}  // namespace urma
