#include "engine/lane.h"

#include <algorithm>
#include <cstring>

namespace urma::engine {
namespace {

// Aligned words are copied whole, so that others see the old value or the new one.
template <class Word>
bool copy_word(std::byte* to, const std::byte* from) {
  const auto both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  if (both % sizeof(Word) != 0) return false;
  const Word value = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
  __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELAXED);
  return true;
}

// The two may overlap, if the segment is this process's own.
void copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == sizeof(uint64_t) && copy_word<uint64_t>(to, from)) return;
  if (bytes == sizeof(uint32_t) && copy_word<uint32_t>(to, from)) return;
  if (bytes > 0) std::memmove(to, from, bytes);
}

}  // namespace

Lane::~Lane() {
  if (!open_ || !runner_->here()) return;
  runner_->call([&](Engine& engine, Time) {
    engine.port().ways()->close_lane(lane_);
    return true;
  });
}

Laned Lane::ask(Engine& engine, transport::Channel& channel) {
  if (std::exchange(open_, false)) engine.port().ways()->close_lane(lane_);
  // Atomics that the owner's engine executes are works.
  const bool atomics = segment_.atomics == AtomicDomain::processor;
  const Rights most =
      Rights::read | Rights::write | (atomics ? Rights::atomic : Rights::local_only);
  const auto rights =
      static_cast<Rights>(static_cast<uint8_t>(segment_.rights) & static_cast<uint8_t>(most));
  const Laned asked = channel.open_lane({.address = segment_.address,
                                         .bytes = segment_.bytes,
                                         .id = segment_.token_id,
                                         .token = segment_.token,
                                         .wanted = rights},
                                        lane_);
  open_ = asked == Laned::opened;
  return asked;
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
    switch (ask(engine, *channel)) {
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
  return pthread_equal(thread_, pthread_self()) == 0 ? Status::invalid_argument
                                                     : Status::remote_access;
}

Status Lane::take_again(uint64_t offset, uint64_t bytes) {
  lane_.let_go();
  if (const Status status = open(); status != Status::ok) return status;
  const bool within = offset <= lane_.bytes && bytes <= lane_.bytes - offset;
  if (within && lane_.take()) return Status::ok;
  lane_.let_go();
  return Status::remote_access;
}

Status Lane::store(std::span<const std::byte> data, std::byte* to) {
  if (data.size() > part_bytes) [[unlikely]]
    return copy_parts(to, data.data(), data.size(), Status::unknown);
  copy(to, data.data(), data.size());
  return lane_.let_go() ? Status::ok : Status::unknown;
}

Status Lane::load(std::span<std::byte> data, const std::byte* from) {
  if (data.size() > part_bytes) [[unlikely]]
    return copy_parts(data.data(), from, data.size(), Status::remote_access);
  copy(data.data(), from, data.size());
  return lane_.let_go() ? Status::ok : Status::remote_access;
}

// Parts that were copied before the segment was closed stay where they are.
Status Lane::copy_parts(std::byte* to, const std::byte* from, size_t bytes, Status if_closed) {
  for (size_t done = 0;;) {
    const size_t part = std::min(bytes - done, part_bytes);
    copy(to + done, from + done, part);
    done += part;
    if (!lane_.let_go()) return if_closed;
    if (done == bytes) return Status::ok;
    if (lane_.take()) continue;
    lane_.let_go();
    return if_closed;
  }
}

Status Lane::operate(const jetty::AtomicCall& call, uint64_t offset, uint64_t& previous) {
  // The width is a power of two.
  if (((segment_.address + offset) & (call.bytes - 1)) != 0) return Status::bad_work;
  const Status status = take(Rights::atomic, offset, call.bytes);
  if (status != Status::ok) [[unlikely]] {
    return segment_.atomics == AtomicDomain::processor ? status : Status::unsupported;
  }
  previous = jetty::execute(call, lane_.base + offset);
  return lane_.let_go() ? Status::ok : Status::unknown;
}

}  // namespace urma::engine
