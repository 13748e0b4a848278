// SPDX-License-Identifier: Apache-2.0
#include "engine/active_pairs.h"

#include <algorithm>

#include "memseg/segment_table.h"

namespace urma::engine {

using Kind = PairMessage::Kind;
using What = drivers::RemoteAccess::News::What;

namespace {

// Returns whether one key can be for both.
bool of_one_segment(const MemoryRange& a, const MemoryRange& b) {
  return a.id == b.id && a.token == b.token && a.wanted == b.wanted;
}

}  // namespace

ActivePairs::ActivePairs(const Uses& uses) : uses_(uses) {}

ActivePairs::Pair* ActivePairs::find(PeerId peer) {
  const uint32_t index = by_peer_.find(key_of(peer));
  return index != by_peer_.none ? &pairs_.at(index) : nullptr;
}

ActivePairs::Pair* ActivePairs::find_or_make(PeerId peer) {
  if (Pair* const known = find(peer)) return known;
  Pair* const pair = pairs_.create();
  if (pair == nullptr) return nullptr;
  pair->peer = peer;
  pair->keys.reserve(most_keys);
  pair->refused.reserve(most_refused);
  by_peer_.insert(key_of(peer), pairs_.index_of(pair));
  return pair;
}

// ---- slices

jetty::Carrier::Begun ActivePairs::begin(const Task& task, Time now) {
  Pair* const pair = find_or_make(task.peer);
  if (pair == nullptr) return Begun::none;
  if (pair->state != State::up && pair->state != State::resting) return Begun::none;
  const Key* const key = find_key(*pair, task.remote);
  if (key == nullptr) {
    ask_for_key(*pair, task.remote, now);
    return Begun::none;
  }
  if (pair->state == State::resting) {
    if (now >= pair->again_at) make(*pair, now);
    return Begun::none;
  }
  if (task.waits) return Begun::full;
  switch (uses_.access.begin(pair->end, {.read = task.read,
                                         .pieces = task.pieces,
                                         .from = task.from,
                                         .bytes = static_cast<uint32_t>(task.remote.bytes),
                                         .there = {task.remote.address, key->key},
                                         .number = task.slice})) {
    case drivers::RemoteAccess::Begun::begun:
      return Begun::begun;
    case drivers::RemoteAccess::Begun::full:
      return Begun::full;
    case drivers::RemoteAccess::Begun::refused:
      break;
  }
  return Begun::none;
}

void ActivePairs::worked(PeerId peer) {
  if (Pair* const pair = find(peer)) pair->pause = first_pause;
}

void ActivePairs::stop(PeerId peer, Time) {
  if (Pair* const pair = find(peer)) stop(*pair);
}

// ---- keys

const ActivePairs::Key* ActivePairs::find_key(const Pair& pair, const MemoryRange& range) {
  const auto found = std::ranges::find_if(pair.keys, [&](const Key& one) {
    return of_one_segment(one.range, range) &&
           memseg::within(one.range.address, one.range.bytes, range.address, range.bytes);
  });
  return found != pair.keys.end() ? &*found : nullptr;
}

bool ActivePairs::was_refused(const Pair& pair, const MemoryRange& range, Time now) {
  return std::ranges::any_of(pair.refused, [&](const Refused& one) {
    return now < one.until && of_one_segment(one.range, range) &&
           one.range.address <= range.address &&
           range.address - one.range.address < one.range.bytes;
  });
}

// Until the answer comes, which may be lost, packets are sent.
void ActivePairs::ask_for_key(Pair& pair, const MemoryRange& range, Time now) {
  if (was_refused(pair, range, now)) return;
  if (pair.key_number != 0) {
    if (now < pair.key_at) return;
    pair.key_wait = std::min(2 * pair.key_wait, longest_pause);
  }
  pair.key_at = now + pair.key_wait;
  pair.key_number = next_number_++;
  pair.wanted = range;
  look_no_later(now + between_looks);
  send(pair, {.kind = Kind::key, .number = pair.key_number, .range = range});
}

void ActivePairs::take_key(Pair& pair, const PairMessage& answer, Time now) {
  const bool asks = pair.state == State::up || pair.state == State::resting;
  if (answer.number != pair.key_number || pair.key_number == 0 || !asks) return;
  pair.key_number = 0;
  pair.key_wait = ask_again_after;
  if (answer.kind == Kind::unkeyed) {
    if (pair.refused.size() == most_refused) pair.refused.erase(pair.refused.begin());
    pair.refused.push_back({.range = pair.wanted, .until = now + refused_for});
    return;
  }
  if (pair.keys.size() == most_keys) pair.keys.erase(pair.keys.begin());
  Key key{.range = pair.wanted, .key = answer.opened.key};
  key.range.address = answer.opened.address;
  key.range.bytes = answer.opened.bytes;
  pair.keys.push_back(key);
}

// ---- the pair

void ActivePairs::make(Pair& pair, Time now) {
  pair.end = uses_.access.make(false);
  pair.again_at = now + pair.pause;
  if (!pair.end) return;
  pair.state = State::making;
  pair.asked = pair.was_up = false;
  pair.number = next_number_++;
  look_no_later(now + between_looks);
}

void ActivePairs::stop(Pair& pair) {
  if (pair.state == State::resting || pair.state == State::stopping ||
      pair.state == State::fencing) {
    return;
  }
  pair.state = State::stopping;
  pair.keys.clear();
  pair.key_number = 0;
  uses_.access.stop(pair.end);
}

void ActivePairs::stopped(Pair& pair, Time now) {
  pair.end = {};
  if (!pair.was_up) {
    // Nothing was sent over it: the peer need not be waited for.
    if (pair.asked) send(pair, {.kind = Kind::unpair, .number = pair.number});
    return fenced(pair, now);
  }
  pair.state = State::fencing;
  pair.questions = 0;
  ask(pair, now);
}

void ActivePairs::fenced(Pair& pair, Time now) {
  pair.state = State::resting;
  pair.again_at = now + pair.pause;
  pair.pause = std::min(2 * pair.pause, longest_pause);
  uses_.slices.fenced(pair.peer, now);
}

// Asks the peer for its end, or to destroy it. A peer of another version does not answer.
void ActivePairs::ask(Pair& pair, Time now) {
  if (pair.state == State::asking && pair.questions == most_questions) {
    pair.pause = longest_pause;
    return stop(pair);
  }
  const Duration wait = ask_again_after * (1 << std::min(pair.questions, 10u));
  ++pair.questions;
  pair.asked = true;
  pair.ask_at = now + std::min(wait, longest_wait);
  look_no_later(pair.ask_at);
  const bool fences = pair.state == State::fencing;
  send(pair, {.kind = fences ? Kind::unpair : Kind::pair, .number = pair.number, .end = pair.own});
}

void ActivePairs::send(const Pair& pair, const PairMessage& message) {
  uses_.lines.send(pair.peer, [&](std::string& line) { write_pair_message(message, line); });
}

void ActivePairs::handle(PeerId from, const PairMessage& answer, Time now) {
  Pair* const pair = find(from);
  if (pair == nullptr) return;
  if (answer.kind == Kind::keyed || answer.kind == Kind::unkeyed) {
    return take_key(*pair, answer, now);
  }
  if (answer.number != pair->number) return;
  if (answer.kind == Kind::paired && pair->state == State::asking) {
    const auto peer = uses_.transport.facts(from);
    if (!peer) return stop(*pair);
    pair->state = State::connecting;
    uses_.access.connect(pair->end, answer.end, peer->at.address);
  } else if (answer.kind == Kind::unpaired && pair->state == State::fencing) {
    fenced(*pair, now);
  } else if (answer.kind == Kind::unpaired || answer.kind == Kind::refused) {
    stop(*pair);  // the peer has no end for us, or not any longer
  }
}

bool ActivePairs::handle(const drivers::RemoteAccess::News& news, Time now) {
  Pair* pair = nullptr;
  pairs_.for_each([&](Pair& one) {
    if (one.end == news.end) pair = &one;
  });
  if (pair == nullptr) return false;
  if (news.what == What::stopped) {
    stopped(*pair, now);
  } else if (news.what == What::failed) {
    stop(*pair);
  } else if (news.what == What::made && pair->state == State::making) {
    pair->state = State::asking;
    pair->questions = 0;
    pair->own = news.own;
    ask(*pair, now);
  } else if (news.what == What::connected && pair->state == State::connecting) {
    pair->state = State::up;
    pair->was_up = true;
  }
  return true;
}

void ActivePairs::look(Time now) {
  look_at_ = pairs_.size() > 0 ? now + between_looks : never;
  pairs_.for_each([&](Pair& pair) {
    if (!uses_.transport.knows(pair.peer)) {
      stop(pair);
      if (pair.state == State::stopping) return;
      by_peer_.erase(key_of(pair.peer));
      pairs_.destroy(&pair);
    } else if (pair.state == State::asking || pair.state == State::fencing) {
      if (now >= pair.ask_at) return ask(pair, now);
      look_no_later(pair.ask_at);
    }
  });
}

}  // namespace urma::engine
