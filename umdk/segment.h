// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "umdk/found_peer.h"
#include "umdk/handle.h"

namespace urma::umdk {

struct TargetSegment;

inline constexpr unsigned token_id_shift = 8;  // the C API's numbers have eight more bits

// A TokenID of the C API. The library draws it when the first segment is registered with it, and
// again for the first one that peers may access, which settles the token.
struct Token : urma_token_id_t {
  static constexpr uint64_t kind = 0x746f'6b65'6e;

  Token(Context& context, urma_token_id_flag_t how);
  ~Token();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }
  bool is_used() const { return ref.atomic_cnt.load() > 1; }

  std::mutex mutex;
  std::vector<TargetSegment*> segments{};  // those that have it; guarded by `mutex`
  // What the first segment that peers may access asked for, which is what peers need for all of
  // them.
  uint32_t policy = URMA_TOKEN_NONE;
  uint32_t value = 0;
};

// A segment of the C API: registered here, or imported.
struct TargetSegment : urma_target_seg_t {
  static constexpr uint64_t kind = 0x7365'67;

  TargetSegment(Context& context, const urma_seg_t& described);
  ~TargetSegment();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }
  bool is_imported() const { return !own.has_value(); }

  RemoteSegment remote;  // as works of this context name it, but for the peer
  FoundPeer peer;
  std::optional<Segment> own;     // if it is registered here
  std::optional<Segment> window;  // if its memory was moved into a window: these pages
  bool writable = false;          // whether its memory could be written when it was registered
};

// Registers memory as `cfg` says, which has been checked. Errors: those of register_memory.
Result<TargetSegment*> register_segment(Context& context, const urma_seg_cfg_t& cfg);
// Errors: those of Segment::unregister.
Result<void> unregister_segment(TargetSegment& segment);
// Makes an imported segment. Errors: those of Device::import.
Result<TargetSegment*> import_segment(Context& context, const urma_seg_t& described,
                                      uint32_t token);

// Returns the rights that a set of URMA_ACCESS_ bits means.
Rights rights_of(uint32_t access);

// Returns whether the range lies in a segment that this context has registered. `written`: whether
// a work stores into it.
inline bool is_own(const urma_sge_t& range, bool written, const Context& context) {
  if (range.tseg == nullptr) return range.len == 0;
  const TargetSegment* const segment = find<TargetSegment>(range.tseg);
  if (segment == nullptr || (written && !segment->writable)) return false;
  const uint64_t offset = range.addr - segment->seg.ubva.va;
  return segment->urma_ctx == &context && segment->own.has_value() && offset <= segment->seg.len &&
         range.len <= segment->seg.len - offset;
}

}  // namespace urma::umdk
