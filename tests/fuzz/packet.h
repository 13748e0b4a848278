// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "drivers/frame_pool.h"
#include "wire/frame.h"
#include "wire/icrc.h"

namespace urma::fuzz {

using Bytes = std::vector<std::byte>;

// A packet on a wire.
struct Packet {
  Bytes bytes;
  Endpoint from;
  Endpoint to;
};

// Pads a body to four bytes and appends its ICRC, as its sender would.
inline Packet sealed(Bytes body, const Endpoint& from, const Endpoint& to) {
  body.resize((body.size() + 3) & ~size_t{3});
  TxFrame frame;
  frame.to = to;
  frame.piece_count = 1;
  frame.pieces[0] = {body.data(), static_cast<uint32_t>(body.size())};
  IcrcPrefix prefix;
  seal(frame, from, prefix);
  body.insert(body.end(), frame.tail.begin(), frame.tail.begin() + frame.tail_bytes);
  return {std::move(body), from, to};
}

// Gives a changed packet the ICRC that belongs to its bytes.
inline void seal_again(Packet& packet) {
  if (packet.bytes.size() < icrc_bytes) return;
  packet.bytes.resize(packet.bytes.size() - icrc_bytes);
  packet = sealed(std::move(packet.bytes), packet.from, packet.to);
}

// Returns the packet that a device would have sent.
inline Packet gathered(const TxFrame& frame, const Endpoint& from) {
  Packet packet{Bytes(frame.bytes()), from, frame.to};
  drivers::flatten(frame, packet.bytes.data());
  return packet;
}

inline RxFrame received(const Packet& packet) {
  return {.data = packet.bytes.data(),
          .bytes = static_cast<uint32_t>(packet.bytes.size()),
          .cookie = 0,
          .from = &packet.from};
}

}  // namespace urma::fuzz
