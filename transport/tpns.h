// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/assert.h"
#include "base/entropy.h"
#include "base/flat_map.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// The TPNs of this device: each names one of its channels, or is promised to the channel that a
// peer is being asked for. It knows channels and peers by their indices only. Only the thread that
// runs the engine calls it.
class Tpns {
 public:
  static constexpr uint32_t none = FlatMap<uint32_t>::none;

  // A channel in use, and the one asked for that may replace it, each have a TPN.
  explicit Tpns(uint32_t peers) : by_tpn_(2 * peers) {}

  // Returns a TPN that is not in use, drawn at random so that outsiders cannot guess it.
  Tpn draw(Entropy& entropy) const {
    for (;;) {
      const uint32_t tpn = entropy.below(tpn_limit);
      if (tpn != 0 && by_tpn_.find(tpn) == none) return Tpn(tpn);
    }
  }
  void bind(Tpn tpn, uint32_t channel) { by_tpn_.insert(number(tpn), channel); }
  void promise(Tpn tpn, uint32_t peer) { by_tpn_.insert(number(tpn), peer | promised_flag); }
  void release(Tpn tpn) { by_tpn_.erase(number(tpn)); }

  // Returns the index of the channel, an index that no channel has if the TPN is promised, or
  // `none`.
  uint32_t channel(uint32_t tpn) const { return by_tpn_.find(tpn); }
  // Returns the index of the peer that the TPN is promised to, or `none`.
  uint32_t promised_to(uint32_t tpn) const {
    const uint32_t found = by_tpn_.find(tpn);
    return found == none || (found & promised_flag) == 0 ? none : found & ~promised_flag;
  }

  // Returns the size of an entry, for the budget; the table is at most half full.
  static constexpr size_t entry_bytes() { return FlatMap<uint32_t>::entry_bytes(); }

 private:
  static constexpr uint32_t promised_flag = 1u << 31;

  FlatMap<uint32_t> by_tpn_;
};

}  // namespace urma::transport
