// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/region.h"

namespace urma::fabric {

// The table of a switch: through which ports of equal cost each address is reached, and which port
// has claimed it. An address takes two bytes, once its page is used.
class Routes {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  // Addresses are below `addresses`, ports below `ports`.
  Routes(uint32_t addresses, uint32_t ports);

  // Claims an address for a port, through which it is reached from now on. Returns false, and
  // changes nothing, if another port has claimed the address, or if the number of either is too
  // large.
  bool attach(uint32_t address, uint32_t port);
  // Ends a claim. Afterwards no route leads to the address.
  void detach(uint32_t address);
  // Sets the route to each address from `first` to `last` that no port has claimed. Returns false,
  // and changes nothing, if the number of an address or a port is too large, if `ports` is empty,
  // or if the table has too many routes.
  bool set(uint32_t first, uint32_t last, std::span<const uint16_t> ports);

  // A port is avoided while its other end does not answer: packets then leave through it only if no
  // other port of equal cost is up.
  void avoid(uint32_t port, bool avoided) { avoided_[port] = avoided; }
  bool avoided(uint32_t port) const { return avoided_[port] != 0; }

  // Returns the port that has claimed the address, or `none`.
  uint32_t owner(uint32_t address) const {
    if (address >= entries_.size()) return none;
    const uint32_t entry = entries_[address];
    return entry - 1 < ports_ ? entry - 1 : none;
  }
  // Returns the ports that lead to the address; nothing if the address has no route.
  std::span<const uint16_t> find(uint32_t address) const {
    if (address >= entries_.size() || entries_[address] == 0) return {};
    const Group& group = groups_[entries_[address] - 1u];
    return {members_.data() + group.first, group.count};
  }

 private:
  struct Group {
    uint32_t first;
    uint32_t count;
  };

  // A group's number + 1; 0 without a route. The first groups are the single ports, which only
  // claims use.
  RegionArray<uint16_t> entries_;
  uint32_t ports_;
  std::vector<Group> groups_;
  std::vector<uint16_t> members_;
  std::vector<uint8_t> avoided_;  // 0 or 1, by port
};

}  // namespace urma::fabric
