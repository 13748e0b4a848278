// SPDX-License-Identifier: Apache-2.0
// The choice of a group's member, for every group of up to four members of few kinds, beside rules
// that are written down one by one.

#include "jetty/groups.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::Groups;
using Rooms = std::vector<std::optional<uint32_t>>;  // by member; nullopt if it accepts no messages

Handle member(uint32_t index) { return {.index = index, .generation = 7}; }

Groups::Group group_of(GroupPolicy policy, size_t count, uint32_t next) {
  Groups::Group group{.policy = policy, .count = static_cast<uint32_t>(count), .next = next};
  for (uint32_t i = 0; i < count; ++i) group.members[i] = member(i);
  return group;
}

// Returns the first member from `begin` on, in a circle, for which the rule holds.
template <class Rule>
std::optional<uint32_t> first_from(const Rooms& rooms, size_t begin, Rule&& rule) {
  for (size_t i = 0; i < rooms.size(); ++i) {
    const size_t at = (begin + i) % rooms.size();
    if (rooms[at] && rule(*rooms[at])) return static_cast<uint32_t>(at);
  }
  return std::nullopt;
}

std::optional<uint32_t> by_the_rules(GroupPolicy policy, const Rooms& rooms, uint32_t next,
                                     uint8_t hint) {
  const auto any = [](uint32_t) { return true; };
  if (policy == GroupPolicy::hint) return first_from(rooms, hint, any);
  uint32_t least = 1;
  if (policy == GroupPolicy::most_receives) {
    for (const auto& room : rooms) least = std::max(least, room.value_or(0));
  }
  const auto found = first_from(rooms, next, [&](uint32_t room) { return room >= least; });
  return found ? found : first_from(rooms, next, any);
}

// Calls the function with each way to give `count` members a room.
template <class Function>
void for_each_rooms(size_t count, Function&& function) {
  const Rooms kinds{std::nullopt, 0, 1, 2};
  size_t ways = 1;
  for (size_t i = 0; i < count; ++i) ways *= kinds.size();
  for (size_t way = 0; way < ways; ++way) {
    Rooms rooms;
    for (size_t rest = way, i = 0; i < count; ++i, rest /= kinds.size()) {
      rooms.push_back(kinds[rest % kinds.size()]);
    }
    function(rooms);
  }
}

TEST_CASE("a group chooses its members by the rules of its policy") {
  size_t chosen_in_all = 0;
  for (const GroupPolicy policy :
       {GroupPolicy::round_robin, GroupPolicy::hint, GroupPolicy::most_receives}) {
    for (size_t count = 0; count <= 4; ++count) {
      for_each_rooms(count, [&](const Rooms& rooms) {
        for (uint32_t next = 0; next < std::max<size_t>(count, 1); ++next) {
          for (const uint8_t hint : std::initializer_list<uint8_t>{0, 1, 2, 3, 4, 255}) {
            Groups::Group group = group_of(policy, count, next);
            const auto chosen =
                Groups::choose(group, hint, [&](Handle handle) { return rooms.at(handle.index); });
            const auto expected = by_the_rules(policy, rooms, next, hint);
            REQUIRE(chosen.has_value() == expected.has_value());
            if (!chosen) continue;
            ++chosen_in_all;
            REQUIRE(*chosen == member(*expected));
            // Only a member that takes the message has had its turn.
            const bool takes = *rooms[*expected] > 0;
            REQUIRE(group.next == (takes ? (*expected + 1) % count : next));
          }
        }
      });
    }
  }
  CHECK(chosen_in_all > 10'000);
}

TEST_CASE("members of equal room receive equally often") {
  for (const GroupPolicy policy : {GroupPolicy::round_robin, GroupPolicy::most_receives}) {
    Groups::Group group = group_of(policy, 5, 0);
    std::vector<int> received(5);
    for (int i = 0; i < 100; ++i) {
      const auto chosen =
          Groups::choose(group, 0, [](Handle) -> std::optional<uint32_t> { return 8; });
      ++received.at(chosen.value().index);
    }
    CHECK(received == std::vector<int>(5, 20));
  }
}

TEST_CASE("groups are found by their number until they are erased") {
  Groups groups;
  const JettyId id{group_bit | 5};
  auto entry = Groups::entry(GroupPolicy::hint);
  entry.key() = id;
  groups.insert(std::move(entry));
  REQUIRE(groups.find(id) != nullptr);
  CHECK(groups.find(id)->policy == GroupPolicy::hint);
  CHECK(groups.find(id)->count == 0);
  CHECK(groups.find(JettyId{5}) == nullptr);
  groups.erase(id);
  CHECK(groups.find(id) == nullptr);
}

}  // namespace
}  // namespace urma::test
