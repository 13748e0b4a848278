#include "drivers/verbs/registered.h"

#include <algorithm>

namespace urma::drivers::verbs {

std::vector<Memory>::iterator RegisteredSegments::find(std::span<const std::byte> memory) {
  return std::ranges::find_if(mapped_, [&](const Memory& one) {
    return one->addr == memory.data() && one->length == memory.size();
  });
}

bool RegisteredSegments::map(std::span<const std::byte> memory) {
  Memory registered = adapter_.register_memory(memory, 0);
  // Some kernels refuse memory that this process may only read.
  if (!registered) return false;
  const std::lock_guard lock(mutex_);
  mapped_.push_back(std::move(registered));
  return true;
}

void RegisteredSegments::unmap(std::span<const std::byte> memory) {
  Memory ended;  // is deregistered without the lock
  const std::lock_guard lock(mutex_);
  const auto at = find(memory);
  if (at == mapped_.end()) return;
  ended = std::move(*at);
  mapped_.erase(at);
}

void RegisteredSegments::grant(std::span<const std::byte> memory) {
  if (granted_.size() == most_granted) return;
  const std::lock_guard lock(mutex_);
  const auto at = find(memory);
  if (at == mapped_.end()) return;
  granted_.push_back({memory.data(), memory.data() + memory.size(), (*at)->lkey});
}

void RegisteredSegments::revoke(std::span<const std::byte> memory) {
  const auto at = std::ranges::find_if(granted_, [&](const Granted& one) {
    return one.begin == memory.data() && one.end == memory.data() + memory.size();
  });
  if (at != granted_.end()) granted_.erase(at);
}

}  // namespace urma::drivers::verbs
