// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/registered.h"

#include <algorithm>

namespace urma::drivers::verbs {

std::vector<RegisteredSegments::Mapped>::iterator RegisteredSegments::find(
    std::span<const std::byte> memory, Rights rights) {
  return std::ranges::find_if(mapped_, [&](const Mapped& one) {
    return one.memory->addr == memory.data() && one.memory->length == memory.size() &&
           one.rights == rights && !one.granted;
  });
}

bool RegisteredSegments::map(std::span<const std::byte> memory, Rights rights) {
  Mapped mapped{.memory = nullptr, .rights = rights, .opened = opens_, .writable = opens_};
  if (opens_) {
    mapped.memory = adapter_.register_memory(
        memory, IBV_ACCESS_LOCAL_WRITE |
                    (has(rights, Rights::write) ? IBV_ACCESS_REMOTE_WRITE : 0) |
                    (has(rights, Rights::read) ? IBV_ACCESS_REMOTE_READ : 0));
  }
  if (!mapped.memory) {
    // Memory that this process may only read, which some kernels refuse in any case.
    mapped = {.memory = adapter_.register_memory(memory, 0),
              .rights = rights,
              .opened = false,
              .writable = false};
  }
  if (!mapped.memory) return false;
  const std::lock_guard lock(mutex_);
  mapped_.push_back(std::move(mapped));
  return true;
}

void RegisteredSegments::unmap(std::span<const std::byte> memory, Rights rights) {
  Memory ended;  // is deregistered without the lock
  const std::lock_guard lock(mutex_);
  const auto at = find(memory, rights);
  if (at == mapped_.end()) return;
  ended = std::move(at->memory);
  mapped_.erase(at);
}

void RegisteredSegments::grant(std::span<const std::byte> memory, Rights rights) {
  if (granted_.size() == most_granted) return;
  const std::lock_guard lock(mutex_);
  const auto at = find(memory, rights);
  if (at == mapped_.end()) return;
  at->granted = true;
  granted_.push_back({.begin = memory.data(),
                      .end = memory.data() + memory.size(),
                      .key = at->memory->lkey,
                      .remote_key = at->memory->rkey,
                      .rights = at->rights,
                      .opened = at->opened,
                      .writable = at->writable});
}

const RegisteredSegments::Granted* RegisteredSegments::find_whole(std::span<const std::byte> memory,
                                                                  Rights rights) const {
  const auto found = std::ranges::find_if(granted_, [&](const Granted& one) {
    return one.begin == memory.data() && one.end == memory.data() + memory.size() &&
           one.rights == rights;
  });
  return found != granted_.end() ? &*found : nullptr;
}

std::optional<RemoteAccess::Opened> RegisteredSegments::opened(std::span<const std::byte> memory,
                                                               Rights rights, Rights wanted) const {
  const Granted* const found = find_whole(memory, rights);
  if (found == nullptr || !found->opened || !has(rights, wanted)) return std::nullopt;
  return RemoteAccess::Opened{.address = reinterpret_cast<uintptr_t>(memory.data()),
                              .bytes = memory.size(),
                              .key = found->remote_key};
}

void RegisteredSegments::revoke(std::span<const std::byte> memory, Rights rights) {
  const Granted* const at = find_whole(memory, rights);
  if (at == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto registered = std::ranges::find_if(
      mapped_, [&](const Mapped& one) { return one.granted && one.memory->lkey == at->key; });
  if (registered != mapped_.end()) registered->granted = false;
  granted_.erase(granted_.begin() + (at - granted_.data()));
}

}  // namespace urma::drivers::verbs
