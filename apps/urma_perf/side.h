// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/draw.h"
#include "apps/urma_perf/gpu_memory.h"
#include "apps/urma_perf/layout.h"
#include "apps/urma_perf/pattern.h"
#include "apps/urma_perf/pulse.h"
#include "urma/urma.hpp"

namespace urma::apps::perf {

enum class Place : uint8_t { client, server };

// The description of one side, sent to the other.
struct SideDescription {
  std::string segment;                                 // the descriptor of the segment
  std::vector<std::pair<uint32_t, uint32_t>> jetties;  // id and token
  // The descriptor of a Jetty of each engine that has any, and for each Jetty the index of its
  // engine.
  std::vector<std::string> engines;
  std::vector<uint32_t> engine_of;
};

// One side of a case: its memory and its Jetties, and access to those of the other side. The loops
// of the client and the server use the same class with different `Place`.
class Side {
 public:
  // Jetty i completes in completions[i % size]. The memory is touched here, and not during the
  // measurement; the engine runs meanwhile.
  Side(Device& device, const Case& what, Place place, std::span<Jfc* const> completions);

  SideDescription describe() const;
  void meet(Device& device, const SideDescription& other);

  const Case& what() const { return case_; }
  const Layout& layout() const { return layout_; }
  std::vector<Jetty>& jetties() { return jetties_; }
  uint32_t receives() const { return receives_; }
  const RemoteSegment& other() const { return other_; }

  // Returns the work of the case: from this side's window of the source to a slot of the other side
  // or, for a read, from the other side to a slot here.
  Work work(uint32_t jetty, uint32_t slot, uint32_t window) const;
  // Turns a work made by `work` into another one of the same Jetty.
  void aim(Work& work, uint32_t jetty, uint32_t slot, uint32_t window) const;
  // Runs the engine for this long.
  void beat_for(int64_t time) const;
  // Posts the receive for a message to this slot.
  void receive(uint32_t jetty, uint32_t slot);

  // These parts of the segment are for the processor. If the segment lies in memory of a GPU, they
  // are a copy of it, as of the last time that it was filled or checked.
  std::span<std::byte> slot(uint32_t jetty, uint32_t slot) const;
  std::span<const std::byte> source() const;
  std::span<std::byte> landing() const;
  // The window that was last written to each slot; for atomics, the words. At the end of a round
  // the client's ledger is copied to the server's.
  std::span<uint64_t> ledger() const;
  // Returns the same bytes where works read and write them.
  std::span<std::byte> posted(std::span<const std::byte> part) const;
  static constexpr uint64_t never_written = UINT64_MAX;

  // Compares a slot with the bytes of the other side's window.
  void check(uint32_t jetty, uint32_t slot, uint32_t window, Verdict& verdict) const;
  // Checks all slots that were written according to the ledger.
  void check_ledger(Verdict& verdict) const;
  // Returns the window that the message in this slot belongs to.
  std::optional<uint32_t> window_in(uint32_t jetty, uint32_t slot) const;

 private:
  std::span<std::byte> whole() const { return gpu_ ? std::span(copy_) : segment_.bytes(); }
  std::span<std::byte> at(uint64_t offset, uint64_t bytes) const {
    return whole().subspan(offset, bytes);
  }
  // Brings the copy of a part of the segment up to date.
  void look_at(std::span<const std::byte> part) const;
  uint32_t any_source(uint32_t jetty) const;
  // Compares bytes that arrived here with those of the other side's window from `begin` on. Returns
  // the position of the first wrong byte, if there is one.
  std::optional<size_t> mismatch(std::span<std::byte> arrived, uint32_t window, size_t begin) const;
  void check_blocks(Verdict& verdict) const;
  void check_word(uint32_t jetty, uint32_t slot, uint64_t right, Verdict& verdict) const;
  bool has_own_memory() const;
  Segment make_segment(Device& device);
  void touch_memory();
  bool sends_data() const;
  bool gets_data() const;
  void make_jetties(Device& device, std::span<Jfc* const> completions);

  Case case_;
  Place place_;
  Layout layout_;
  Pattern ours_;
  Pattern theirs_;
  std::unique_ptr<Pulse> pulse_;
  std::unique_ptr<std::byte, void (*)(void*)> own_memory_;
  std::unique_ptr<GpuMemory> gpu_;
  mutable std::vector<std::byte> copy_;  // of the memory of the GPU
  mutable std::vector<Draw> draws_;      // of each Jetty
  Segment segment_;
  uint32_t receives_ = 0;
  std::vector<Jetty> jetties_;
  RemoteSegment other_;
  std::vector<RemoteJetty> other_jetties_;
};

// An immediate says where its message lies and which window it has.
constexpr uint64_t pack(uint32_t slot, uint32_t window) { return uint64_t{slot} << 32 | window; }

}  // namespace urma::apps::perf
