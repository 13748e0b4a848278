// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "base/copy.h"
#include "base/thread_mark.h"
#include "engine/runner.h"
#include "jetty/atomics.h"
#include "urma/core/status.h"
#include "urma/core/work.h"

namespace urma::engine {

// One thread's access to a mapped segment of a peer, without works, passes and completions. It asks
// the engine only when it is opened, and when the segment has been closed since: the segment may be
// open again, after its owner has ended an old token. The thread that opens it uses it; any thread
// may destroy it, which must not happen during a use.
class Lane {
 public:
  // `segment` must be mapped.
  Lane(std::shared_ptr<Runner> runner, const RemoteSegment& segment)
      : runner_(std::move(runner)), segment_(segment), thread_(this_thread()) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // Opens the lane, or opens it again. Makes a channel to the peer if there is none, which may take
  // an operation timeout. Returns ok, or: remote_access, peer_restarted, peer_unreachable,
  // unsupported (the segment's memory is handed over as a file), no_resources (the device has
  // `max_lanes` others), closed.
  Status open();

  // A `Lane` of the application documents what these return.
  Status write(std::span<const std::byte> data, uint64_t offset) {
    if (!allows(Rights::write, offset, data.size())) [[unlikely]]
      return why_not();
    // Others see the bytes of an earlier call before those of this one.
    std::atomic_thread_fence(std::memory_order_release);
    return copy(lane_.base + offset, data.data(), data.size(), Status::unknown);
  }
  Status read(std::span<std::byte> data, uint64_t offset) {
    if (!allows(Rights::read, offset, data.size())) [[unlikely]]
      return why_not();
    return copy(data.data(), lane_.base + offset, data.size(), Status::remote_access);
  }
  Status operate(const jetty::AtomicCall& call, uint64_t offset, uint64_t& previous) {
    // Counters are the most frequent atomics, so they take no call.
    const bool common = call.what == Atomic::fetch_add && call.bytes == sizeof(uint64_t);
    if (!common || !allows(Rights::atomic, offset, sizeof(uint64_t))) [[unlikely]]
      return operate_any(call, offset, previous);
    std::byte* const at = lane_.base + offset;
    if (reinterpret_cast<uintptr_t>(at) % sizeof(uint64_t) != 0 || !lane_.take()) [[unlikely]]
      return operate_any(call, offset, previous);
    previous = std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).fetch_add(call.operand);
    return lane_.let_go() ? Status::ok : Status::unknown;
  }

 private:
  // Longer data is copied in parts, as a work is, so that the owner of the memory waits for none.
  static constexpr size_t part_bytes = 64 * 1024;

  // Returns whether this thread may use this part of the segment, as long as that is not closed.
  bool allows(Rights wanted, uint64_t offset, uint64_t bytes) const {
    const bool within = offset <= lane_.bytes && bytes <= lane_.bytes - offset;
    return thread_ == this_thread() && runner_->here() && runner_->open() && within &&
           has(lane_.rights, wanted);
  }
  [[gnu::cold]] Status why_not() const;
  // Begins a use after the segment was found closed, unless it does not return ok. Opening it again
  // does not move it.
  [[gnu::cold]] Status take_again();

  // Copies. Returns `if_closed` if the segment was closed meanwhile. One word takes no call.
  Status copy(std::byte* to, const std::byte* from, size_t bytes, Status if_closed) {
    if (bytes == sizeof(uint64_t) && lane_.take()) [[likely]] {
      copy_shared(to, from, sizeof(uint64_t));
      return lane_.let_go() ? Status::ok : if_closed;
    }
    return copy_parts(to, from, bytes, if_closed);
  }
  Status operate_any(const jetty::AtomicCall& call, uint64_t offset, uint64_t& previous);
  Status copy_parts(std::byte* to, const std::byte* from, size_t bytes, Status if_closed);
  Laned ask(transport::Channel& channel);

  const std::shared_ptr<Runner> runner_;
  const RemoteSegment segment_;
  const ThreadMark* const thread_;
  MappedLane lane_;
};

}  // namespace urma::engine
