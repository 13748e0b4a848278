// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/open_memory.h"

#include <algorithm>

namespace urma::drivers::sim {
namespace {

bool contains(std::span<const std::byte> memory, const std::byte* data, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const auto at = reinterpret_cast<uintptr_t>(data);
  return at >= begin && at - begin <= memory.size() && bytes <= memory.size() - (at - begin);
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() == b.data() && a.size() == b.size();
}

}  // namespace

bool OpenMemory::map(std::span<const std::byte> memory, Rights rights) {
  mapped_.push_back({.memory = memory, .rights = rights, .key = next_key_++});
  return true;
}

void OpenMemory::grant(std::span<const std::byte> memory, Rights rights) {
  const auto one = std::ranges::find_if(mapped_, [&](const Mapped& candidate) {
    return same(candidate.memory, memory) && candidate.rights == rights && !candidate.keyed;
  });
  if (one != mapped_.end()) one->granted = one->keyed = true;
}

void OpenMemory::revoke(std::span<const std::byte> memory, Rights rights) {
  const auto one = std::ranges::find_if(mapped_, [&](const Mapped& candidate) {
    return same(candidate.memory, memory) && candidate.rights == rights && candidate.granted;
  });
  if (one != mapped_.end()) one->granted = false;
}

void OpenMemory::unmap(std::span<const std::byte> memory, Rights rights) {
  const auto one = std::ranges::find_if(mapped_, [&](const Mapped& candidate) {
    return same(candidate.memory, memory) && candidate.rights == rights && !candidate.granted;
  });
  if (one != mapped_.end()) mapped_.erase(one);
}

// A transfer that has begun uses memory until that is unmapped.
bool OpenMemory::covers(const std::byte* data, size_t bytes) const {
  return std::ranges::any_of(mapped_,
                             [&](const Mapped& one) { return contains(one.memory, data, bytes); });
}

std::optional<RemoteAccess::Opened> OpenMemory::opened(std::span<const std::byte> memory,
                                                       Rights rights, Rights wanted) const {
  const auto one = std::ranges::find_if(mapped_, [&](const Mapped& candidate) {
    return same(candidate.memory, memory) && candidate.rights == rights && candidate.granted;
  });
  if (one == mapped_.end() || !has(rights, wanted)) return {};
  return RemoteAccess::Opened{.address = reinterpret_cast<uintptr_t>(memory.data()),
                              .bytes = memory.size(),
                              .key = one->key};
}

std::byte* OpenMemory::at(const RemoteAccess::There& there, uint64_t bytes, bool write) const {
  const auto* const data = reinterpret_cast<const std::byte*>(there.address);
  const auto one = std::ranges::find(mapped_, there.key, &Mapped::key);
  if (one == mapped_.end() || !one->keyed || !contains(one->memory, data, bytes)) return nullptr;
  if (!has(one->rights, write ? Rights::write : Rights::read)) return nullptr;
  return const_cast<std::byte*>(data);
}

}  // namespace urma::drivers::sim
