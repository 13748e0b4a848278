#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "wire/frame.h"

namespace urma::transport {

// ICRC of a UB packet on IP and UDP (UB 3.3): over the headers below, as a socket sends them and
// with what the network may change set to ones, then everything from the transport header to the
// padding. It is made per UB packet, so that segmentation offload does not matter.

inline constexpr size_t icrc_bytes = 4;

// The part that the addresses and the length decide: the same for packets of one length between
// two endpoints, which come in rows, so a few are remembered.
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

// Writes the ICRC of a frame whose head, pieces and padding are in place behind its padding.
void seal(TxFrame& frame, const Endpoint& from, IcrcPrefix& prefix);

// Whether the last four bytes of `packet` are its ICRC.
bool verify(std::span<const std::byte> packet, const Endpoint& from, const Endpoint& to,
            IcrcPrefix& prefix);

}  // namespace urma::transport
