#include "engine/passive_pairs.h"

namespace urma::engine {

using Kind = PairMessage::Kind;
using What = drivers::RemoteAccess::News::What;

PassivePairs::Pair* PassivePairs::find(PeerId peer) {
  Pair* found = nullptr;
  pairs_.for_each([&](Pair& one) {
    if (one.peer == peer) found = &one;
  });
  return found;
}

void PassivePairs::send(PeerId to, const PairMessage& message) {
  uses_.lines.send(to, [&](std::string& line) { write_pair_message(message, line); });
}

void PassivePairs::handle(PeerId from, const PairMessage& question, Time now) {
  if (question.kind == Kind::pair) return make(from, question);
  if (question.kind == Kind::unpair) return end(from, question.number);
  tell_key(from, question, now);
}

// A peer has one pair. If it asks for another, the old one ends first, and the peer asks again.
void PassivePairs::make(PeerId from, const PairMessage& question) {
  if (Pair* const known = find(from)) {
    if (known->number != question.number) return stop(*known);
    if (known->connected)
      send(from, {.kind = Kind::paired, .number = known->number, .end = known->own});
    return;
  }
  Pair* const pair = pairs_.full() ? nullptr : pairs_.create();
  if (pair != nullptr) {
    *pair = {.peer = from,
             .number = question.number,
             .end = uses_.access.make(true),
             .other = question.end};
    if (pair->end) return;
    pairs_.destroy(pair);
  }
  send(from, {.kind = Kind::unpaired, .number = question.number});
}

void PassivePairs::end(PeerId from, uint32_t number) {
  Pair* const pair = find(from);
  if (pair != nullptr && pair->number == number) return stop(*pair);
  // The peer may be one that was forgotten and is known again: its end must not be left.
  look();
  bool stopping = false;
  pairs_.for_each([&](const Pair& one) { stopping = stopping || one.stopping; });
  if (stopping) return;  // the peer asks again
  send(from, {.kind = Kind::unpaired, .number = number});
}

void PassivePairs::stop(Pair& pair) {
  if (pair.stopping) return;
  pair.stopping = true;
  pair.connected = false;
  uses_.access.stop(pair.end);
}

// A peer that guesses tokens is not answered for a while.
void PassivePairs::tell_key(PeerId from, const PairMessage& question, Time now) {
  const MemoryRange& range = question.range;
  const Eid asker = uses_.channels.eid(from);
  if (!uses_.judge.admits(asker, now)) return;
  const memseg::SegmentTable::Access access =
      uses_.segments.access(range.id, range.token, range.address, range.bytes, range.wanted);
  const bool bad = access.at == nullptr && !uses_.segments.names(range.id, range.token);
  if (bad) uses_.judge.wrong(asker, range.id, range.token, now);
  // The device knows memory by its address in this process, and so must the peer. The key of a
  // larger segment in the same memory would open more than this token does.
  const bool same = range.address == reinterpret_cast<uintptr_t>(access.at);
  const auto whole = uses_.segments.memory_of(range.id, range.address);
  const auto opened = access.at != nullptr && !access.guarded && same
                          ? uses_.access.opened(whole, range.wanted == Rights::write)
                          : std::nullopt;
  const bool exact = opened && opened->bytes == whole.size() &&
                     opened->address == reinterpret_cast<uintptr_t>(whole.data());
  if (!exact) return send(from, {.kind = Kind::unkeyed, .number = question.number});
  send(from, {.kind = Kind::keyed, .number = question.number, .opened = *opened});
}

bool PassivePairs::handle(const drivers::RemoteAccess::News& news) {
  Pair* pair = nullptr;
  pairs_.for_each([&](Pair& one) {
    if (one.end == news.end) pair = &one;
  });
  if (pair == nullptr) return false;
  if (news.what == What::stopped) {
    send(pair->peer, {.kind = Kind::unpaired, .number = pair->number});
    pairs_.destroy(pair);
  } else if (news.what == What::failed) {
    stop(*pair);
  } else if (news.what == What::made && !pair->stopping) {
    pair->own = news.own;
    uses_.access.connect(pair->end, pair->other);
  } else if (news.what == What::connected && !pair->stopping) {
    pair->connected = true;
    send(pair->peer, {.kind = Kind::paired, .number = pair->number, .end = pair->own});
  }
  return true;
}

void PassivePairs::look() {
  pairs_.for_each([&](Pair& pair) {
    if (!uses_.channels.knows(pair.peer)) stop(pair);
  });
}

}  // namespace urma::engine
