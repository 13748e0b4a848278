// SPDX-License-Identifier: Apache-2.0
#include "fabric/routes.h"

#include <algorithm>

#include "base/assert.h"

namespace urma::fabric {

Routes::Routes(uint32_t addresses, uint32_t ports)
    : entries_(addresses), ports_(ports), avoided_(ports) {
  URMA_ASSERT(ports < UINT16_MAX, "an entry names a group of ports in 16 bits");
  for (uint32_t port = 0; port < ports; ++port) {
    groups_.push_back({port, 1});
    members_.push_back(static_cast<uint16_t>(port));
  }
}

bool Routes::attach(uint32_t address, uint32_t port) {
  if (address >= entries_.size() || port >= ports_) return false;
  const uint32_t earlier = owner(address);
  if (earlier != none && earlier != port) return false;
  entries_[address] = static_cast<uint16_t>(port + 1);
  return true;
}

void Routes::detach(uint32_t address) {
  if (owner(address) != none) entries_[address] = 0;
}

bool Routes::set(uint32_t first, uint32_t last, std::span<const uint16_t> ports) {
  if (first > last || last >= entries_.size() || ports.empty()) return false;
  if (std::any_of(ports.begin(), ports.end(), [&](uint16_t port) { return port >= ports_; })) {
    return false;
  }
  auto same = std::find_if(groups_.begin() + ports_, groups_.end(), [&](const Group& group) {
    return std::equal(ports.begin(), ports.end(), members_.begin() + group.first,
                      members_.begin() + group.first + group.count);
  });
  if (same == groups_.end()) {
    if (groups_.size() == UINT16_MAX) return false;
    groups_.push_back(
        {static_cast<uint32_t>(members_.size()), static_cast<uint32_t>(ports.size())});
    members_.insert(members_.end(), ports.begin(), ports.end());
    same = groups_.end() - 1;
  }
  const auto entry = static_cast<uint16_t>(same - groups_.begin() + 1);
  for (uint32_t address = first; address <= last; ++address) {
    if (owner(address) == none) entries_[address] = entry;
  }
  return true;
}

}  // namespace urma::fabric
