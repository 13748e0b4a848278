#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/urma_perf/case.h"
#include "apps/urma_perf/draw.h"
#include "apps/urma_perf/layout.h"
#include "apps/urma_perf/pattern.h"
#include "apps/urma_perf/pulse.h"
#include "urma/urma.hpp"

namespace urma::perf {

enum class Place : uint8_t { client, server };

// The description of one side, for the other.
struct SideDescription {
  std::string segment;                                 // its descriptor
  std::vector<std::pair<uint32_t, uint32_t>> jetties;  // id and token; of the segment's process
};

// One side of a case: its memory and its Jetties, and how it reaches the other's. Used by the
// client's loops and by the server alike, which differ only in `Place`.
class Side {
 public:
  // Jetty i completes in completions[i % size]. Memory is touched here, not while measuring; the
  // engine runs meanwhile.
  Side(Device& device, const Case& what, Place place, std::span<Jfc* const> completions);

  SideDescription describe() const;
  void meet(Device& device, const SideDescription& other);

  const Case& what() const { return case_; }
  const Layout& layout() const { return layout_; }
  std::vector<Jetty>& jetties() { return jetties_; }
  uint32_t receives() const { return receives_; }
  const RemoteSegment& other() const { return other_; }

  // The work of the case: from this side's window of the source to a slot of the other side, or,
  // a read, from there to a slot here.
  Work work(uint32_t jetty, uint32_t slot, uint32_t window) const;
  // Turns a work made by `work` into another one of the same Jetty.
  void aim(Work& work, uint32_t jetty, uint32_t slot, uint32_t window) const;
  // Lets the engine run for so long.
  void beat_for(int64_t time) const;
  // Posts the receive for a message to this slot.
  void receive(uint32_t jetty, uint32_t slot);

  std::span<std::byte> slot(uint32_t jetty, uint32_t slot) const;
  std::span<const std::byte> source() const;
  std::span<std::byte> landing() const;
  // Which iteration was written to which place; for atomics, the words. When a round ends, the
  // client's ledger is copied to the server's.
  std::span<uint64_t> ledger() const;
  static constexpr uint64_t never_written = UINT64_MAX;

  // Compares a slot with what the other side has in this window.
  void check(uint32_t jetty, uint32_t slot, uint32_t window, Verdict& verdict) const;
  // All slots of which the ledger says that they were written.
  void check_ledger(Verdict& verdict) const;
  // Which window a message in this slot carries.
  std::optional<uint32_t> window_in(uint32_t jetty, uint32_t slot) const;

 private:
  std::span<std::byte> at(uint64_t offset, uint64_t bytes) const {
    return segment_.bytes().subspan(offset, bytes);
  }
  uint32_t any_source(uint32_t jetty) const;
  void check_word(uint32_t jetty, uint32_t slot, uint64_t right, Verdict& verdict) const;
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
  mutable std::vector<Draw> draws_;  // of each Jetty
  Segment segment_;
  uint32_t receives_ = 0;
  std::vector<Jetty> jetties_;
  RemoteSegment other_;
  std::vector<RemoteJetty> other_jetties_;
};

// An immediate says where its message lies and which it is.
constexpr uint64_t pack(uint32_t slot, uint32_t window) { return uint64_t{slot} << 32 | window; }

}  // namespace urma::perf
