#pragma once

#include <pthread.h>

#include <memory>
#include <span>

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
      : runner_(std::move(runner)), segment_(segment), thread_(pthread_self()) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // Opens the lane, or opens it again. Makes a channel to the peer if there is none, which may take
  // an operation timeout. Returns ok, or: remote_access, peer_restarted, peer_unreachable,
  // unsupported (the segment's memory is handed over as a file), no_resources (as many lanes are
  // open as a device has), closed.
  Status open();

  // A `Lane` of the application documents what these return.
  Status write(std::span<const std::byte> data, uint64_t offset) {
    if (const Status status = take(Rights::write, offset, data.size()); status != Status::ok)
        [[unlikely]]
      return status;
    // Others see the bytes of an earlier call before those of this one.
    std::atomic_thread_fence(std::memory_order_release);
    return store(data, lane_.base + offset);
  }
  Status read(std::span<std::byte> data, uint64_t offset) {
    if (const Status status = take(Rights::read, offset, data.size()); status != Status::ok)
        [[unlikely]]
      return status;
    return load(data, lane_.base + offset);
  }
  Status operate(const jetty::AtomicCall& call, uint64_t offset, uint64_t& previous);

 private:
  // Longer data is copied in parts, as a work is, so that the owner of the memory waits for none.
  static constexpr size_t part_bytes = 64 * 1024;

  // Begins a use of this part of the segment, unless it does not return ok.
  Status take(Rights wanted, uint64_t offset, uint64_t bytes) {
    const bool within = offset <= lane_.bytes && bytes <= lane_.bytes - offset;
    const bool usable = pthread_equal(thread_, pthread_self()) != 0 && runner_->here() &&
                        runner_->open() && within && has(lane_.rights, wanted);
    if (!usable) [[unlikely]]
      return why_not();
    if (lane_.take()) [[likely]]
      return Status::ok;
    return take_again(offset, bytes);
  }
  [[gnu::cold]] Status why_not() const;
  [[gnu::cold]] Status take_again(uint64_t offset, uint64_t bytes);
  Status store(std::span<const std::byte> data, std::byte* to);
  Status load(std::span<std::byte> data, const std::byte* from);
  Status copy_parts(std::byte* to, const std::byte* from, size_t bytes, Status if_closed);
  Laned ask(Engine& engine, transport::Channel& channel);

  const std::shared_ptr<Runner> runner_;
  const RemoteSegment segment_;
  const pthread_t thread_;
  MappedLane lane_;
  bool open_ = false;  // `lane_` is one of the driver's
};

}  // namespace urma::engine
