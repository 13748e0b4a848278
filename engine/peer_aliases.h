#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/region.h"
#include "urma/core/handle.h"
#include "urma/core/ids.h"

namespace urma::engine {

// The names of peers in one engine of a device that has several. Each engine knows peers by itself
// and numbers them by itself. An application sees one PeerId for each peer, on whichever engine the
// Jetty is that it uses: the name that the peer has in the engine that named it first, with the
// number of that engine. This class turns such an *outer* name into the *inner* one of its own
// engine, and back.
//
// A peer may have several engines, too, of which each is a peer to this engine. A work that only
// names memory may go to any of them. So an outer name has two inner ones: that of exactly this
// engine of the peer, and that of the one that is `nearest`, which the engines of this device share
// among themselves.
//
// Any thread looks names up, without a lock. Threads that add names take turns.
class PeerAliases {
 public:
  static constexpr uint32_t most_engines = 8;

  struct Inner {
    PeerId exact;
    PeerId nearest;
    Incarnation life{};  // of the device, which all its engines have in common
  };

  // `engine`: the number of this object's engine. `peers`: how many an engine can know.
  PeerAliases(uint32_t engine, uint32_t engines, uint32_t peers)
      : engine_(engine), peers_(peers), inner_(size_t{engines} * peers), outer_(peers) {}

  // Makes an outer name of an inner one, if no other engine has named the peer.
  static PeerId outer_name(uint32_t engine, PeerId inner) {
    return inner ? PeerId{inner.index | engine << index_bits, inner.generation} : inner;
  }
  // Returns which engine made the outer name, and the peer's name there.
  static uint32_t engine_of(PeerId outer) { return outer.index >> index_bits; }
  static PeerId name_there(PeerId outer) {
    return {outer.index & ((1u << index_bits) - 1), outer.generation};
  }

  // Returns empty names if this engine was not told of the peer.
  Inner inner(PeerId outer) const {
    Inner out;
    if (const Entry* const entry = find(outer)) {
      const std::array<uint64_t, 3> words = entry->read(outer.generation);
      if (words[0] != 0 || words[1] != 0) {
        out = {.exact = std::bit_cast<PeerId>(words[0]),
               .nearest = std::bit_cast<PeerId>(words[1]),
               .life = Incarnation(words[2])};
      }
    }
    return out;
  }
  // Returns the outer name of an inner one. `exactly`: the application may answer it; else a name
  // of the same device will do.
  PeerId outer(PeerId inner, bool exactly) const {
    if (inner.index >= peers_) return inner;
    const std::array<uint64_t, 3> words = outer_[inner.index].read(inner.generation);
    if (words[0] != 0) return std::bit_cast<PeerId>(words[0]);
    if (!exactly && words[1] != 0) return std::bit_cast<PeerId>(words[1]);
    return outer_name(engine_, inner);
  }

  // From now on the outer name means these peers. `shown`: they are called so from now on; else
  // only if they had no other outer name.
  void add(PeerId outer, const Inner& names, bool shown) {
    Entry* const entry = const_cast<Entry*>(find(outer));
    if (entry == nullptr) return;
    entry->write(outer.generation, {std::bit_cast<uint64_t>(names.exact),
                                    std::bit_cast<uint64_t>(names.nearest), number(names.life)});
    add_outer(names.exact, outer, 0, shown);
    add_outer(names.nearest, outer, 1, shown);
  }

 private:
  static constexpr uint32_t index_bits = 24;

  // Words that belong to one generation of an index. A reader that meets a writer sees none.
  struct Entry {
    std::atomic<uint64_t> generation;  // 0: none
    std::atomic<uint64_t> words[3];

    std::array<uint64_t, 3> read(uint32_t wanted) const {
      std::array<uint64_t, 3> out{};
      if (generation.load(std::memory_order_acquire) != wanted) return out;
      for (size_t i = 0; i < out.size(); ++i) out[i] = words[i].load(std::memory_order_acquire);
      if (generation.load(std::memory_order_relaxed) != wanted) out = {};
      return out;
    }
    void write(uint32_t whose, const std::array<uint64_t, 3>& values) {
      generation.store(0, std::memory_order_relaxed);
      for (size_t i = 0; i < values.size(); ++i)
        words[i].store(values[i], std::memory_order_release);
      generation.store(whose, std::memory_order_release);
    }
  };

  const Entry* find(PeerId outer) const {
    const uint64_t at = uint64_t{engine_of(outer)} * peers_ + name_there(outer).index;
    const bool valid = outer && name_there(outer).index < peers_ && at < inner_.size();
    return valid ? &inner_[at] : nullptr;
  }
  // Keeps the other word, if it belongs to the same generation.
  void add_outer(PeerId inner, PeerId outer, size_t which, bool shown) {
    if (inner.index >= peers_) return;
    Entry& entry = outer_[inner.index];
    std::array<uint64_t, 3> words = entry.read(inner.generation);
    if (shown || words[which] == 0) words[which] = std::bit_cast<uint64_t>(outer);
    entry.write(inner.generation, words);
  }

  const uint32_t engine_;
  const uint32_t peers_;
  RegionArray<Entry> inner_;
  RegionArray<Entry> outer_;
};

}  // namespace urma::engine
