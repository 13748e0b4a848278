// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/region.h"
#include "urma/core/descriptor.h"
#include "urma/core/handle.h"
#include "urma/core/ids.h"

namespace urma::engine {

// The names of peers in one engine of a device. Each engine knows peers by itself and numbers them
// by itself, and each engine of a peer is a peer to it. An application sees one PeerId for each
// device, on whichever engine the Jetty is that it uses: the *outer* name, which is the name that
// the device has in the engine that named it, with the number of that engine. This class turns it
// into the *inner* name of each engine of the device, and back.
//
// Any thread looks names up, without a lock. Threads that add names take turns.
class PeerAliases {
 public:
  // `engines`: of this device. `peers`: how many an engine can know.
  PeerAliases(uint32_t engines, uint32_t peers)
      : peers_(peers), inner_(size_t{engines} * peers), outer_(size_t{2} * peers) {}

  // Makes an outer name of an inner one.
  static PeerId outer_name(uint32_t engine, PeerId inner) {
    return inner ? PeerId{inner.index | engine << index_bits, inner.generation} : inner;
  }
  // Returns which engine made the outer name, and the name there.
  static uint32_t engine_of(PeerId outer) { return outer.index >> index_bits; }
  static PeerId name_there(PeerId outer) {
    return {outer.index & ((1u << index_bits) - 1), outer.generation};
  }

  // How many engines the named device has; 0 if this engine was not told of it.
  uint32_t engines(PeerId outer) const { return static_cast<uint32_t>(read(outer, 0)); }
  // Returns the inner name of an engine of the device; null if there is none yet.
  PeerId inner(PeerId outer, uint32_t engine) const {
    const uint64_t word = read(outer, 1 + engine);
    return word != 0 ? std::bit_cast<PeerId>(word) : PeerId{};
  }
  // Returns the outer name of an inner one; null if it has none.
  PeerId outer(PeerId inner) const {
    if (inner.index >= peers_) return {};
    const Outer& entry = outer_[place(inner)];
    if (entry.generation.load(std::memory_order_acquire) != inner.generation) return {};
    const uint64_t word = entry.name.load(std::memory_order_acquire);
    const bool still = entry.generation.load(std::memory_order_relaxed) == inner.generation;
    return still && word != 0 ? std::bit_cast<PeerId>(word) : PeerId{};
  }

  // From now on the outer name means a device with so many engines.
  void add(PeerId outer, uint32_t engines) {
    Inner* const entry = find(outer);
    if (entry == nullptr || read(outer, 0) == engines) return;
    entry->generation.store(0, std::memory_order_relaxed);
    for (auto& word : entry->words) word.store(0, std::memory_order_release);
    entry->words[0].store(engines, std::memory_order_release);
    entry->generation.store(outer.generation, std::memory_order_release);
  }
  // From now on one of its engines has this inner name, or none. Does nothing unless `add` of the
  // device was called. `shown`: the inner name is turned into this outer one.
  void add(PeerId outer, uint32_t engine, PeerId inner, bool shown = true) {
    if (engine >= engines(outer) || (inner && inner.index >= peers_)) return;
    find(outer)->words[1 + engine].store(inner ? std::bit_cast<uint64_t>(inner) : 0,
                                         std::memory_order_release);
    if (inner && shown) call(inner, outer);
  }
  // From now on the inner name is turned into this outer one.
  void call(PeerId inner, PeerId outer) {
    if (inner.index >= peers_ || this->outer(inner) == outer) return;
    Outer& back = outer_[place(inner)];
    back.generation.store(0, std::memory_order_relaxed);
    back.name.store(std::bit_cast<uint64_t>(outer), std::memory_order_release);
    back.generation.store(inner.generation, std::memory_order_release);
  }

 private:
  static constexpr uint32_t index_bits = 24;

  // Words that belong to one generation of an index, which is 0 if they belong to none. A reader
  // that meets a writer of another generation finds none.
  struct Inner {
    std::atomic<uint64_t> generation;
    std::atomic<uint64_t> words[1 + most_engines];  // the number of engines, a name of each
  };
  struct Outer {
    std::atomic<uint64_t> generation;
    std::atomic<uint64_t> name;
  };

  uint64_t read(PeerId outer, uint32_t word) const {
    const Inner* const entry = const_cast<PeerAliases*>(this)->find(outer);
    if (entry == nullptr || word > most_engines) return 0;
    if (entry->generation.load(std::memory_order_acquire) != outer.generation) return 0;
    const uint64_t value = entry->words[word].load(std::memory_order_acquire);
    const bool still = entry->generation.load(std::memory_order_relaxed) == outer.generation;
    return still ? value : 0;
  }
  Inner* find(PeerId outer) {
    const uint64_t index = name_there(outer).index;
    const uint64_t at = uint64_t{engine_of(outer)} * peers_ + index;
    return outer && index < peers_ && at < inner_.size() ? &inner_[at] : nullptr;
  }
  // Generations of living peers are odd. The previous peer of an index keeps its name, because
  // events about its end may be read after another one has come.
  static size_t place(PeerId inner) {
    return size_t{inner.index} * 2 + (inner.generation >> 1) % 2;
  }

  const uint32_t peers_;
  RegionArray<Inner> inner_;
  RegionArray<Outer> outer_;
};

}  // namespace urma::engine
