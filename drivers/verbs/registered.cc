#include "drivers/verbs/registered.h"

#include <algorithm>

namespace urma::drivers::verbs {

std::vector<RegisteredSegments::Mapped>::iterator RegisteredSegments::find(
    std::span<const std::byte> memory) {
  const auto is_it = [&](const Mapped& one) {
    return one.memory->addr == memory.data() && one.memory->length == memory.size();
  };
  const auto vacant =
      std::ranges::find_if(mapped_, [&](const Mapped& one) { return is_it(one) && !one.granted; });
  return vacant != mapped_.end() ? vacant : std::ranges::find_if(mapped_, is_it);
}

bool RegisteredSegments::map(std::span<const std::byte> memory, Rights rights) {
  Mapped mapped{.memory = nullptr, .opened = rights, .writable = opens_};
  if (opens_) {
    mapped.memory = adapter_.register_memory(
        memory, IBV_ACCESS_LOCAL_WRITE |
                    (has(rights, Rights::write) ? IBV_ACCESS_REMOTE_WRITE : 0) |
                    (has(rights, Rights::read) ? IBV_ACCESS_REMOTE_READ : 0));
  }
  if (!mapped.memory) {
    // Memory that this process may only read, which some kernels refuse in any case.
    mapped = {.memory = adapter_.register_memory(memory, 0),
              .opened = Rights::local_only,
              .writable = false};
  }
  if (!mapped.memory) return false;
  const std::lock_guard lock(mutex_);
  mapped_.push_back(std::move(mapped));
  return true;
}

void RegisteredSegments::unmap(std::span<const std::byte> memory) {
  Memory ended;  // is deregistered without the lock
  const std::lock_guard lock(mutex_);
  const auto at = find(memory);
  if (at == mapped_.end()) return;
  ended = std::move(at->memory);
  mapped_.erase(at);
}

void RegisteredSegments::grant(std::span<const std::byte> memory) {
  if (granted_.size() == most_granted) return;
  const std::lock_guard lock(mutex_);
  const auto at = find(memory);
  if (at == mapped_.end() || at->granted) return;
  at->granted = true;
  granted_.push_back({.begin = memory.data(),
                      .end = memory.data() + memory.size(),
                      .key = at->memory->lkey,
                      .remote_key = at->memory->rkey,
                      .opened = at->opened,
                      .writable = at->writable});
}

std::optional<RemoteAccess::Opened> RegisteredSegments::opened(std::span<const std::byte> memory,
                                                               bool write) const {
  const Granted* const found = find_granted(memory.data(), memory.size());
  const Rights wanted = write ? Rights::write : Rights::read;
  if (found == nullptr || !has(found->opened, wanted)) return std::nullopt;
  return RemoteAccess::Opened{.address = reinterpret_cast<uintptr_t>(found->begin),
                              .bytes = static_cast<uint64_t>(found->end - found->begin),
                              .key = found->remote_key};
}

void RegisteredSegments::revoke(std::span<const std::byte> memory) {
  const auto at = std::ranges::find_if(granted_, [&](const Granted& one) {
    return one.begin == memory.data() && one.end == memory.data() + memory.size();
  });
  if (at == granted_.end()) return;
  const std::lock_guard lock(mutex_);
  const auto registered = std::ranges::find_if(
      mapped_, [&](const Mapped& one) { return one.granted && one.memory->lkey == at->key; });
  if (registered != mapped_.end()) registered->granted = false;
  granted_.erase(at);
}

}  // namespace urma::drivers::verbs
