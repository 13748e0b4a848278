// SPDX-License-Identifier: Apache-2.0
#include "engine/lane.h"

#include <algorithm>

namespace urma::engine {

Lane::~Lane() {
  if (lane_.hold == nullptr || !runner_->here()) return;
  runner_->call([&](Engine& engine, Time) {
    engine.port().ways()->close_lane(lane_);
    return true;
  });
}

Laned Lane::ask(transport::Channel& channel) {
  // Atomics that the owner's engine executes are works.
  const bool atomics = segment_.atomics == AtomicDomain::processor;
  const Rights most =
      Rights::read | Rights::write | (atomics ? Rights::atomic : Rights::local_only);
  const auto rights =
      static_cast<Rights>(static_cast<uint8_t>(segment_.rights) & static_cast<uint8_t>(most));
  return channel.open_lane({.address = segment_.address,
                            .bytes = segment_.bytes,
                            .id = segment_.token_id,
                            .token = segment_.token,
                            .wanted = rights},
                           lane_);
}

Status Lane::open() {
  Status status = Status::peer_unreachable;
  Time until{};
  runner_->call([&](Engine& engine, Time now) {
    if (until == Time{}) until = now + runner_->operation_timeout();
    transport::Transport& transport = engine.transport();
    status = !runner_->open()                  ? Status::closed
             : !transport.knows(segment_.peer) ? Status::peer_restarted
                                               : Status::peer_unreachable;
    if (status != Status::peer_unreachable) return true;
    transport::Channel* const channel = transport.channel(segment_.peer, now);
    if (channel == nullptr) return now >= until;
    switch (ask(*channel)) {
      case Laned::opened:
        status = Status::ok;
        break;
      case Laned::unmapped:
        status = Status::unsupported;
        break;
      case Laned::refused:
        status = Status::remote_access;
        break;
      case Laned::gone:
        status = Status::peer_restarted;
        break;
      case Laned::none_free:
        status = Status::no_resources;
        break;
    }
    return true;
  });
  return status;
}

Status Lane::why_not() const {
  if (!runner_->here()) return Status::forked;
  if (!runner_->open()) return Status::closed;
  return thread_ == this_thread() ? Status::remote_access : Status::invalid_argument;
}

Status Lane::take_again() {
  if (const Status status = open(); status != Status::ok) return status;
  return lane_.take() ? Status::ok : Status::remote_access;
}

// Parts that were copied before the segment was closed stay where they are.
Status Lane::copy_parts(std::byte* to, const std::byte* from, size_t bytes, Status if_closed) {
  size_t done = 0;
  do {
    if (!lane_.take()) [[unlikely]] {
      if (done > 0) return if_closed;
      if (const Status status = take_again(); status != Status::ok) return status;
    }
    const size_t part = std::min(bytes - done, part_bytes);
    copy_shared(to + done, from + done, part);
    done += part;
    if (!lane_.let_go()) [[unlikely]]
      return if_closed;
  } while (done < bytes);
  return Status::ok;
}

Status Lane::operate_any(const jetty::AtomicCall& call, uint64_t offset, uint64_t& previous) {
  // The width is a power of two.
  if (((segment_.address + offset) & (call.bytes - 1)) != 0) return Status::bad_work;
  if (segment_.atomics != AtomicDomain::processor) return Status::unsupported;
  if (!allows(Rights::atomic, offset, call.bytes)) return why_not();
  if (!lane_.take()) {
    if (const Status status = take_again(); status != Status::ok) return status;
  }
  previous = jetty::execute(call, lane_.base + offset);
  return lane_.let_go() ? Status::ok : Status::unknown;
}

}  // namespace urma::engine
