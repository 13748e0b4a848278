// SPDX-License-Identifier: Apache-2.0
#include "engine/jetty_control.h"

#include <algorithm>

namespace urma::engine {
namespace {

constexpr uint32_t works_at_a_time = 64;

}  // namespace

std::optional<JettyControl::Made> JettyControl::create(jetty::JettyParts parts,
                                                       const Chosen& chosen) {
  jetty::Jetties& jetties = transactions_.jetties();
  if (jetties.full()) return std::nullopt;
  const std::optional<JettyId> id = chosen.id ? chosen.id : draw();
  if (!id) return std::nullopt;
  parts.id_is_chosen = chosen.id.has_value();
  const auto drawn = TokenValue(entropy_.next32());
  Made made{.id = *id, .token = chosen.token.value_or(drawn), .handle = {}};
  made.handle = jetties.handle_of(*jetties.create(made.id, made.token, std::move(parts)));
  return made;
}

// An id that the application has chosen meanwhile is passed over, and not drawn any more.
std::optional<JettyId> JettyControl::draw() {
  std::optional<JettyId> id = ids_.take();
  while (id && transactions_.jetties().used(*id)) id = ids_.take();
  return id;
}

std::optional<JettyControl::Made> JettyControl::create_group(jetty::JettyParts parts,
                                                             const Chosen& chosen,
                                                             jetty::Groups::Map::node_type entry) {
  std::optional<Made> made = create(std::move(parts), chosen);
  if (!made) return std::nullopt;
  made->id = entry.key() = JettyId(number(made->id) | group_bit);
  transactions_.groups().insert(std::move(entry));
  return made;
}

JettyControl::Changed JettyControl::add(const Made& group, Handle jetty) {
  jetty::Groups::Group& to = *transactions_.groups().find(group.id);
  const auto destroyed = [&](Handle member) {
    return transactions_.jetties().find(member) == nullptr;
  };
  const auto end = std::remove_if(to.members.begin(), to.members.begin() + to.count, destroyed);
  to.count = static_cast<uint32_t>(end - to.members.begin());
  if (std::find(to.members.begin(), end, jetty) != end) return Changed::already;
  if (to.count == to.members.size()) return Changed::full;
  to.members[to.count++] = jetty;
  return Changed::yes;
}

JettyControl::Changed JettyControl::remove(const Made& group, Handle jetty) {
  jetty::Groups::Group& from = *transactions_.groups().find(group.id);
  const auto end = from.members.begin() + from.count;
  const auto found = std::find(from.members.begin(), end, jetty);
  if (found == end) return Changed::absent;
  std::copy(found + 1, end, found);
  --from.count;
  return Changed::yes;
}

void JettyControl::take_posted(jetty::Jetty& jetty, Time now) {
  while (jetty.queues->jfs().used() &&
         transactions_.initiator().take(jetty, works_at_a_time, now) > 0) {
  }
}

bool JettyControl::flush(uint32_t index, Time now) {
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  jetty.state = jetty::JettyState::error;
  take_posted(jetty, now);
  transactions_.initiator().flush(jetty, now);
  transactions_.target().detach(jetty);
  transactions_.target().flush_receives(jetty);
  return jetty.outstanding == 0;
}

bool JettyControl::flush_all(Time now) {
  bool flushed = true;
  transactions_.jetties().for_each([&](jetty::Jetty& jetty) {
    if (jetty.id == names_jetty) return;
    flushed = flush(transactions_.jetties().index_of(jetty), now) && flushed;
  });
  return flushed;
}

bool JettyControl::suspend(uint32_t index, Time now) {
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  if (jetty.state == jetty::JettyState::ready) jetty.state = jetty::JettyState::suspended;
  take_posted(jetty, now);
  transactions_.initiator().flush(jetty, now);
  return jetty.outstanding == 0;
}

void JettyControl::reset(uint32_t index, Time now) {
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  take_posted(jetty, now);
  transactions_.initiator().end_cancelled(jetty, now);
  jetty.state = jetty::JettyState::ready;
}

bool JettyControl::destroy(uint32_t index, Time now) {
  if (!flush(index, now)) return false;
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  transactions_.initiator().detach(jetty);
  transactions_.groups().erase(JettyId(number(jetty.id) | group_bit));
  transactions_.events().forget(jetty.id);
  if (!jetty.id_is_chosen) ids_.give_back(jetty.id);
  transactions_.jetties().destroy(jetty);
  return true;
}

}  // namespace urma::engine
