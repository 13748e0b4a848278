#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "urma/core/endpoint.h"

namespace urma {

// Bytes that belong to somebody else: registered or posted memory on its way out.
struct Piece {
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
};

inline constexpr unsigned max_pieces = 16;
inline constexpr uint32_t largest_rtp_mtu = 8192;  // payload of a packet where packets may be lost

// One packet on its way out, in a frame lent by a driver: headers in the driver's memory, payload
// where it lies, padding and ICRC behind it. Whoever holds the frame fills it; `send` gives it
// back.
struct TxFrame {
  static constexpr unsigned head_room = 160;
  static constexpr unsigned tail_room = 8;

  std::byte* head = nullptr;  // head_room bytes; set by the driver
  uint16_t head_bytes = 0;
  uint8_t piece_count = 0;
  uint8_t tail_bytes = 0;
  uint8_t path = 0;  // the one of the port's on which it is to leave
  std::array<std::byte, tail_room> tail{};
  Endpoint to;
  std::array<Piece, max_pieces> pieces;

  size_t bytes() const {
    size_t sum = size_t{head_bytes} + tail_bytes;
    for (unsigned i = 0; i < piece_count; ++i) sum += pieces[i].bytes;
    return sum;
  }
};

// One packet that came in. `data` is the driver's memory until the frame is released.
struct RxFrame {
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
  uint32_t cookie = 0;             // the driver's
  const Endpoint* from = nullptr;  // as long as `data`
  uint8_t path = 0;                // the one of the port's on which it came
};

}  // namespace urma
