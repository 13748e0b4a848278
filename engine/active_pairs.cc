#include "engine/active_pairs.h"

#include <algorithm>

#include "memseg/segment_table.h"

namespace urma::engine {

using Kind = PairMessage::Kind;
using What = drivers::RemoteAccess::News::What;

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
  by_peer_.insert(key_of(peer), pairs_.index_of(pair));
  return pair;
}

// ---- slices

bool ActivePairs::begin(const Task& task, Time now) {
  Pair* const pair = find_or_make(task.peer);
  if (pair == nullptr) return false;
  if (pair->state != State::up) {
    if (pair->state == State::resting && now >= pair->again_at) make(*pair, now);
    look_no_later(now + ask_again_after);
    return false;
  }
  const Key* const key = find_key(*pair, task.remote);
  if (key == nullptr) {
    ask_for_key(*pair, task.remote, now);
    return false;
  }
  return uses_.access.begin(pair->end, {.read = task.read,
                                        .pieces = task.pieces,
                                        .from = task.from,
                                        .bytes = static_cast<uint32_t>(task.remote.bytes),
                                        .there = {task.remote.address, key->key},
                                        .number = task.slice});
}

void ActivePairs::stop(PeerId peer, Time) {
  if (Pair* const pair = find(peer)) stop(*pair);
}

// ---- keys

const ActivePairs::Key* ActivePairs::find_key(const Pair& pair, const MemoryRange& range) {
  const auto found = std::ranges::find_if(pair.keys, [&](const Key& one) {
    return one.range.id == range.id && one.range.token == range.token &&
           one.range.wanted == range.wanted &&
           memseg::within(one.range.address, one.range.bytes, range.address, range.bytes);
  });
  return found != pair.keys.end() ? &*found : nullptr;
}

// The answer may be lost, or that there is none: until then, and for a while after a refusal,
// packets are sent, to which the peer answers why.
void ActivePairs::ask_for_key(Pair& pair, const MemoryRange& range, Time now) {
  if (now < pair.key_at) return;
  pair.key_at = now + ask_again_after;
  pair.key_number = next_number_++;
  pair.wanted = range;
  send(pair, {.kind = Kind::key, .number = pair.key_number, .range = range});
}

void ActivePairs::take_key(Pair& pair, const PairMessage& answer) {
  if (answer.number != pair.key_number || pair.state != State::up) return;
  pair.key_number = 0;
  if (answer.kind == Kind::unkeyed) return;
  pair.key_at = {};
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
  pair.asked = false;
  pair.number = next_number_++;
}

void ActivePairs::stop(Pair& pair) {
  if (pair.state == State::resting || pair.state == State::stopping ||
      pair.state == State::fencing) {
    return;
  }
  pair.state = State::stopping;
  pair.keys.clear();
  uses_.access.stop(pair.end);
}

void ActivePairs::stopped(Pair& pair, Time now) {
  pair.end = {};
  if (!pair.asked) return fenced(pair, now);
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

// Asks the peer for its end, or to destroy it. A peer that never answers has no such ends.
void ActivePairs::ask(Pair& pair, Time now) {
  if (pair.state == State::asking && pair.questions == most_questions) {
    pair.pause = longest_pause;
    return stop(pair);
  }
  ++pair.questions;
  pair.asked = true;
  pair.ask_at = now + ask_again_after;
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
  if (answer.kind == Kind::keyed || answer.kind == Kind::unkeyed) return take_key(*pair, answer);
  if (answer.number != pair->number) return;
  if (answer.kind == Kind::paired && pair->state == State::asking) {
    pair->state = State::connecting;
    uses_.access.connect(pair->end, answer.end);
  } else if (answer.kind == Kind::unpaired && pair->state == State::fencing) {
    fenced(*pair, now);
  } else if (answer.kind == Kind::unpaired) {
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
    pair->key_at = {};
    pair->pause = first_pause;
  }
  return true;
}

void ActivePairs::look(Time now) {
  look_at_ = pairs_.size() > 0 ? now + ask_again_after : never;
  pairs_.for_each([&](Pair& pair) {
    if (!uses_.channels.knows(pair.peer)) {
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
