// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "urma/urma.hpp"

namespace urma::test {

// Writes numbers into a peer's segment for as long as `turn` is called, and notifies the peer of
// each one. A write carries its number in every word, so its target can see whether the whole write
// has arrived.
//
// Works complete in any order, so a source is filled again only once the work that reads it has
// completed, whatever the number of berths. Each source owns two slots at the target and uses them
// in turn: while one write is under way, the slot of the one before it does not change.
class NumberedWrites {
 public:
  static constexpr size_t sources = 16;
  static constexpr size_t words = 1000;
  static constexpr size_t slot_bytes = words * 8;
  static constexpr size_t target_bytes = sources * 2 * slot_bytes;

  // Writes into `target_bytes` of the target's segment from `offset` on.
  NumberedWrites(Jetty& jetty, const Imported& target, size_t offset)
      : jetty_(jetty), target_(target), offset_(offset), sources_(sources) {
    for (size_t i = 0; i < sources; ++i) sources_[i].next = sources + i;
  }

  static size_t source_of(uint64_t number) { return number % sources; }
  // Returns the offset of the write of `number` from the first byte that this object writes.
  static size_t slot_of(uint64_t number) {
    return (source_of(number) * 2 + number / sources % 2) * slot_bytes;
  }
  // Returns whether the slot of `number` contains that number in every word. `region` is the memory
  // that this object writes.
  static bool whole(std::span<const std::byte> region, uint64_t number) {
    std::array<uint64_t, words> found;
    std::memcpy(found.data(), region.subspan(slot_of(number)).data(), slot_bytes);
    return std::ranges::all_of(found, [&](uint64_t word) { return word == number; });
  }

  // Posts a write from each free source while berths are vacant. Sources take turns.
  void post() {
    for (size_t tried = 0; tried < sources; ++tried, ++turn_) {
      Source& source = sources_[turn_ % sources];
      if (source.busy) continue;
      std::ranges::fill(source.content, source.next);
      const Work work = write(std::as_bytes(std::span(source.content)), target_.segment,
                              offset_ + slot_of(source.next))
                            .to(target_.jetty)
                            .immediate(source.next)
                            .tag(source.next);
      if (jetty_.post(work) == 0) return;
      source.busy = true;
      source.next += sources;
    }
  }
  // Records completions of this object's works.
  void note(std::span<const Completion> completions) {
    for (const Completion& done : completions) sources_[source_of(done.tag)].busy = false;
  }

 private:
  struct Source {
    std::array<uint64_t, words> content{};
    uint64_t next = 0;  // the number that it writes next
    bool busy = false;  // a work that has not completed reads it
  };

  Jetty& jetty_;
  Imported target_;
  size_t offset_;
  size_t turn_ = 0;  // the source that is tried next, so that each gets its turn
  std::vector<Source> sources_;
};

}  // namespace urma::test
