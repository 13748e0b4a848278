// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>

#include "umdk/context.h"

namespace urma::umdk {

// The process of an imported object. UMDK's hardware reaches the process that is at a place now, so
// the place is looked up again when works have shown that another process may be there. Any thread
// uses it.
class FoundPeer {
 public:
  // `as_of`: Context::losses() before the peer was found.
  void set(const Place& place, PeerId peer, uint32_t as_of) {
    place_ = place;
    set(peer, as_of);
  }
  // Sets a peer that never changes: this process.
  void set(PeerId peer) { set(peer, 0); }

  PeerId in(Context& context) {
    const uint32_t losses = context.losses();
    if (as_of_.load(std::memory_order_acquire) != losses) [[unlikely]]
      look_again(context, losses);
    const uint64_t peer = peer_.load(std::memory_order_relaxed);
    return {.index = static_cast<uint32_t>(peer), .generation = static_cast<uint32_t>(peer >> 32)};
  }

 private:
  void set(PeerId peer, uint32_t as_of) {
    peer_.store(uint64_t{peer.generation} << 32 | peer.index, std::memory_order_relaxed);
    as_of_.store(as_of, std::memory_order_release);
  }
  // The peer that is known stays if there is no memory to find another one: works say that it is
  // gone, and the next post looks again.
  [[gnu::noinline, gnu::cold]] void look_again(Context& context, uint32_t losses) {
    if (!place_) return as_of_.store(losses, std::memory_order_release);
    if (const auto found = context.peer_again_at(*place_)) set(*found, losses);
  }

  std::optional<Place> place_;
  std::atomic<uint64_t> peer_{0};
  std::atomic<uint32_t> as_of_{0};
};

}  // namespace urma::umdk
