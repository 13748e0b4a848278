// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dirty_set.h"
#include "jetty/jetty.h"

namespace urma::engine {

// The well-known Jetty 1 (docs/protocol.md), by which devices send each other lines of text. It
// does not know what they say. A line may be lost: a flood of them finds no receive slot. Called by
// the thread that runs the pass.
class LineJetty {
 public:
  static constexpr size_t line_bytes = 1024;

  LineJetty(jetty::Jetties& jetties, DirtySet& dirty);

  // Sends a line: `write` writes the text to a string, in which line_bytes are reserved. Drops the
  // line if it is too long, if 32 lines are on their way, or eight of them to this peer.
  template <class Write>
  void send(PeerId to, Write&& write) {
    if (free_to_send_.empty() || queues_->vacant_berths() == 0) return;
    if (std::ranges::count(to_, to) >= most_to_one) return;
    std::string& line = sending_[free_to_send_.back()];
    write(line);
    if (line.size() <= line_bytes) post(to);
  }

  // Returns whether lines have arrived that `take` has not returned.
  bool waits() const { return jfc_->ready(); }
  // Calls `each` with the sender and the text of each line that has arrived. Returns true if there
  // was anything to do.
  template <class Each>
  bool take(Each&& each) {
    if (!jfc_->ready()) return false;
    std::array<Completion, 16> completions;
    const size_t count = jfc_->poll(completions);
    for (const Completion& one : std::span(completions).first(count)) {
      const auto slot = static_cast<uint16_t>(one.tag);
      if (one.operation != Operation::receive) {
        free_to_send_.push_back(slot);
        to_[slot] = {};
        continue;
      }
      if (one.ok() && one.from_jetty == names_jetty) each(one.from, text_in(slot, one.bytes));
      post_receive(slot);
    }
    return true;
  }

 private:
  static constexpr uint16_t slots = 32;
  // Lines on their way to one peer: if that takes none, it must not hold back those to others.
  static constexpr ptrdiff_t most_to_one = 8;

  void post(PeerId to);
  void post_receive(uint16_t slot);
  std::string_view text_in(uint16_t slot, size_t bytes) const {
    return {reinterpret_cast<const char*>(receive_buffers_.data() + slot * line_bytes), bytes};
  }

  DirtySet& dirty_;
  std::shared_ptr<jetty::Jfc> jfc_;
  std::shared_ptr<jetty::Queues> queues_;
  uint32_t index_;
  std::vector<std::byte> receive_buffers_;
  std::vector<std::string> sending_;  // by tag
  std::vector<PeerId> to_;            // by tag; empty if nothing is on its way
  std::vector<uint16_t> free_to_send_;
};

}  // namespace urma::engine
