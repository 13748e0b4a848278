// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>

#include "urma/core/handle.h"
#include "urma/core/ids.h"
#include "urma/core/options.h"

namespace urma::jetty {

// The Jetty groups of an engine (UB 6.1): their members, and which of them has its turn. A group is
// also a Jetty, without berths and receives, which has its number and its token. This class knows
// groups by their JettyId with `group_bit`, and members by handle; one that was destroyed stays in
// the list until it is removed, and is passed over. Transactions owns it; only the thread that runs
// the engine calls it.
class Groups {
 public:
  struct Group {
    GroupPolicy policy = GroupPolicy::round_robin;
    uint32_t count = 0;  // of members
    uint32_t next = 0;   // the member whose turn it is
    std::array<Handle, max_group_members> members{};
  };
  using Map = std::map<JettyId, Group>;

  // Returns a group without members, under no number. Throws std::bad_alloc.
  static Map::node_type entry(GroupPolicy policy) {
    Map one;
    one[{}].policy = policy;
    return one.extract(one.begin());
  }
  // `entry` was made by the caller, because a pass does not allocate.
  Group& insert(Map::node_type entry) { return groups_.insert(std::move(entry)).position->second; }
  // Returns null if there is none.
  Group* find(JettyId id) {
    const auto found = groups_.find(id);
    return found == groups_.end() ? nullptr : &found->second;
  }
  void erase(JettyId id) { groups_.erase(id); }

  // Returns the member that takes the next message, or nothing if none accepts messages. `room`
  // returns how many more messages a member could take now, or nothing if it accepts none. A member
  // without room is chosen only if the hint asks for it, or if all are without room.
  template <class Room>
  static std::optional<Handle> choose(Group& group, uint8_t hint, Room&& room);

 private:
  Map groups_;
};

template <class Room>
std::optional<Handle> Groups::choose(Group& group, uint8_t hint, Room&& room) {
  const bool hinted = group.policy == GroupPolicy::hint;
  std::optional<uint32_t> best;
  uint32_t most = 0;
  for (uint32_t i = 0; i < group.count; ++i) {
    const uint32_t at = ((hinted ? hint : group.next) + i) % group.count;
    const std::optional<uint32_t> has = room(group.members[at]);
    if (!has || (best && *has <= most)) continue;
    best = at;
    most = *has;
    const bool decided = hinted || (most > 0 && group.policy == GroupPolicy::round_robin);
    if (decided) break;
  }
  if (!best) return std::nullopt;
  if (most > 0) group.next = (*best + 1) % group.count;
  return group.members[*best];
}

}  // namespace urma::jetty
