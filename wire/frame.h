// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "urma/core/endpoint.h"

namespace urma {

// A range of memory to be sent, which the frame refers to but does not own: registered memory, or
// memory that a work names.
struct Piece {
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
};

inline constexpr unsigned max_pieces = 16;
inline constexpr uint32_t largest_rtp_mtu =
    8192;  // the largest payload of a packet on media that may lose packets

// The ECN field of the IP header (RFC 3168).
enum class Ecn : uint8_t {
  not_ect = 0,  // a congested queue may only drop the packet
  ect1 = 1,     // a congested queue may mark the packet
  ect0 = 2,     // the same
  ce = 3,       // a congested queue has marked the packet
};

// Returns the field of a packet that a congested queue marks if it may.
constexpr Ecn marked(Ecn sent) { return sent == Ecn::not_ect ? sent : Ecn::ce; }

// One packet to be sent, in a frame lent by a driver: headers in the driver's memory, then the
// payload, which stays where it is, then padding and ICRC. The layer that obtained the frame from
// the driver fills it and gives it back through `send`.
struct TxFrame {
  static constexpr unsigned head_room = 160;
  static constexpr unsigned tail_room = 7;  // padding, which aligns the packet to 4 bytes, and ICRC

  std::byte* head = nullptr;  // head_room bytes; set by the driver
  uint8_t head_bytes = 0;
  uint8_t piece_count = 0;
  uint8_t tail_bytes = 0;
  uint8_t path = 0;  // index of the port's path on which to send it
  std::array<std::byte, tail_room> tail{};
  Ecn ecn = Ecn::not_ect;  // ignored by a port that does not carry it
  // NTH.CCI (wire/cci.h), what the packet asks of the switches; ignored by a port that does not
  // carry it.
  uint16_t cci = 0;
  Endpoint to;
  std::array<Piece, max_pieces> pieces;

  size_t bytes() const {
    size_t sum = size_t{head_bytes} + tail_bytes;
    for (unsigned i = 0; i < piece_count; ++i) sum += pieces[i].bytes;
    return sum;
  }
};
static_assert(TxFrame::head_room <= UINT8_MAX);
// No byte is unused. The fields and the first piece fit into one cache line.
static_assert(sizeof(TxFrame) == 40 + max_pieces * sizeof(Piece));

// One received packet. `data` points into the driver's memory, and is valid until the frame is
// released.
struct RxFrame {
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
  uint32_t cookie = 0;             // for the driver's own use
  const Endpoint* from = nullptr;  // valid as long as `data`
  uint8_t path = 0;                // index of the port's path on which it arrived
  Ecn ecn = Ecn::not_ect;          // as it arrived; `not_ect` if the port does not carry it
  // NTH.CCI and UBQ, as switches have edited them; zero if the port does not carry them.
  uint16_t cci = 0;
  uint8_t switch_queue = 0;
};
// Three bytes are unused.
static_assert(sizeof(RxFrame) == 32);

}  // namespace urma
