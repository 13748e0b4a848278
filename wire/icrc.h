// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "wire/frame.h"

namespace urma {

// The ICRC of a UB packet (UB 3.3). It covers the IP and UDP headers, as a socket sends them but
// with the fields that the network may change set to ones, and everything from the transport header
// to the padding. Behind a UB switch it covers NTH instead of IP and UDP, with CCI and LBF as ones.
// It is computed per UB packet, so segmentation offload does not affect it.

inline constexpr size_t icrc_bytes = 4;

// The CRC of the headers of the network, which depend only on the addresses and the length. Packets
// of one length between the same endpoints follow each other, so a few results are cached.
class IcrcPrefix {
 public:
  // `ub_bytes`: from the transport header to the ICRC, both included.
  uint32_t operator()(const Endpoint& from, const Endpoint& to, size_t ub_bytes) {
    Entry& entry = entries_[ub_bytes / 4 % entries_.size()];
    const bool known = entry.ub_bytes == ub_bytes && entry.to == to && entry.from == from;
    if (!known) entry = compute(from, to, ub_bytes);
    return entry.crc;
  }

 private:
  struct Entry {
    Endpoint from;
    Endpoint to;
    size_t ub_bytes = 0;
    uint32_t crc = 0;
  };
  static Entry compute(const Endpoint& from, const Endpoint& to, size_t ub_bytes);

  std::array<Entry, 4> entries_;
};

// Computes the ICRC of a frame whose head, pieces and padding are in place, and appends it.
void seal(TxFrame& frame, const Endpoint& from, IcrcPrefix& prefix);
// As above, for a caller that knows frame.bytes().
void seal(TxFrame& frame, size_t bytes, const Endpoint& from, IcrcPrefix& prefix);

// Returns whether the last four bytes of `packet` are its ICRC.
bool verify(std::span<const std::byte> packet, const Endpoint& from, const Endpoint& to,
            IcrcPrefix& prefix);

}  // namespace urma
