// SPDX-License-Identifier: Apache-2.0
#include "engine/passive_pairs.h"

#include "base/accelerator_memory.h"

namespace urma::engine {

using Kind = PairMessage::Kind;
using What = drivers::RemoteAccess::News::What;

namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

PassivePairs::Guest* PassivePairs::find(PeerId peer) {
  Guest* found = nullptr;
  guests_.for_each([&](Guest& one) {
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
  Guest* const guest = find(from);
  if (guest == nullptr || guest->told.empty()) {
    return send(from, {.kind = Kind::refused, .number = question.number});
  }
  if (guest->end) {
    if (guest->number != question.number) return stop(*guest);
    if (!guest->connected) return;
    return send(from, {.kind = Kind::paired, .number = guest->number, .end = guest->own});
  }
  guest->end = uses_.access.make(true);
  if (!guest->end) return send(from, {.kind = Kind::refused, .number = question.number});
  guest->number = question.number;
  guest->other = question.end;
}

void PassivePairs::end(PeerId from, uint32_t number) {
  Guest* const guest = find(from);
  if (guest != nullptr && guest->end && guest->number == number) return stop(*guest);
  // The peer may be one that was forgotten and is known again: its end must not be left.
  look();
  const Eid eid = uses_.transport.eid(from);
  bool stopping = false;
  guests_.for_each(
      [&](const Guest& one) { stopping = stopping || (one.stopping && one.eid == eid); });
  if (stopping) return;  // the peer asks again
  send(from, {.kind = Kind::unpaired, .number = number});
}

void PassivePairs::stop(Guest& guest) {
  if (guest.stopping || !guest.end) return;
  guest.stopping = true;
  guest.connected = false;
  uses_.access.stop(guest.end);
}

// ---- keys

PassivePairs::Keys PassivePairs::end_keys(Memory memory, Time now) {
  Keys keys = Keys::ended;
  guests_.for_each([&](Guest& guest) {
    const auto is_it = [&](const Memory& told) { return overlap(told, memory); };
    if (std::ranges::none_of(guest.told, is_it)) return;
    stop(guest);
    const Keys state = state_of(guest, now);
    if (state == Keys::ended) std::erase_if(guest.told, is_it);
    if (keys != Keys::ending && state != Keys::ended) keys = state;
  });
  return keys;
}

// Returns how far the end of a guest is whose pair was stopped.
PassivePairs::Keys PassivePairs::state_of(Guest& guest, Time now) {
  if (!guest.end) {
    guest.stopping_since = {};
    return Keys::ended;
  }
  if (guest.stopping_since == Time{}) guest.stopping_since = now;
  const bool stuck = now - guest.stopping_since > uses_.access.longest_stop();
  return stuck ? Keys::stuck : Keys::ending;
}

bool PassivePairs::end_all_keys(Time now) {
  bool ended = true;
  guests_.for_each([&](Guest& guest) {
    stop(guest);
    const Keys state = state_of(guest, now);
    ended = ended && state != Keys::ending;
    if (state == Keys::ended) guest.told.clear();
  });
  return ended;
}

// Notes that the peer is told a key of this memory. Returns false if as many peers are noted as can
// be, or as much memory of this one.
bool PassivePairs::note_told(PeerId peer, const Eid& eid, Memory memory) {
  Guest* guest = find(peer);
  if (guest == nullptr) {
    guest = guests_.create();
    if (guest == nullptr) return false;
    *guest = {.peer = peer, .eid = eid, .told = {}, .end = {}};
    guest->told.reserve(most_told);
  }
  const bool known = std::ranges::any_of(guest->told, [&](const Memory& one) {
    return one.data() == memory.data() && one.size() == memory.size();
  });
  if (known) return true;
  if (guest->told.size() == most_told) return false;
  guest->told.push_back(memory);
  return true;
}

// A peer that guesses tokens is not answered for a while.
void PassivePairs::tell_key(PeerId from, const PairMessage& question, Time now) {
  const Eid asker = uses_.transport.eid(from);
  if (!uses_.judge.admits(asker, now)) return;
  const auto opened = open(from, asker, question.range, now);
  if (!opened) return send(from, {.kind = Kind::unkeyed, .number = question.number});
  send(from, {.kind = Kind::keyed, .number = question.number, .opened = *opened});
}

std::optional<drivers::RemoteAccess::Opened> PassivePairs::open(PeerId from, const Eid& asker,
                                                                const MemoryRange& range,
                                                                Time now) {
  const memseg::SegmentTable::Access access =
      uses_.segments.access(range.id, range.token, range.address, range.bytes, range.wanted);
  if (access.at == nullptr) {
    if (!uses_.segments.names(range.id, range.token)) {
      uses_.judge.wrong(asker, range.id, range.token, now);
    }
    return std::nullopt;
  }
  // The device knows memory by its address in this process, and so must the peer.
  const memseg::SegmentTable::Segment* const segment =
      uses_.segments.segment_of(range.id, range.address);
  const bool same = range.address == reinterpret_cast<uintptr_t>(access.at);
  const bool unmapped = access.guarded && !AcceleratorMemory::has(access.at);
  if (unmapped || !same || segment == nullptr) return std::nullopt;
  const Memory memory(segment->base, segment->bytes);
  const auto opened = uses_.access.opened(memory, segment->rights, range.wanted);
  if (!opened || !note_told(from, asker, memory)) return std::nullopt;
  return opened;
}

// ---- ends

bool PassivePairs::handle(const drivers::RemoteAccess::News& news) {
  Guest* guest = nullptr;
  guests_.for_each([&](Guest& one) {
    if (one.end == news.end) guest = &one;
  });
  if (guest == nullptr) return false;
  if (news.what == What::stopped) {
    send(guest->peer, {.kind = Kind::unpaired, .number = guest->number});
    guest->end = {};
    guest->stopping = guest->connected = false;
    guest->stopping_since = {};
  } else if (news.what == What::failed) {
    stop(*guest);
  } else if (news.what == What::made && !guest->stopping) {
    guest->own = news.own;
    if (const auto peer = uses_.transport.facts(guest->peer)) {
      uses_.access.connect(guest->end, guest->other, peer->at.address);
    } else {
      stop(*guest);
    }
  } else if (news.what == What::connected && !guest->stopping) {
    guest->connected = true;
    send(guest->peer, {.kind = Kind::paired, .number = guest->number, .end = guest->own});
  }
  return true;
}

void PassivePairs::look() {
  guests_.for_each([&](Guest& guest) {
    if (uses_.transport.knows(guest.peer)) return;
    stop(guest);
    if (!guest.end) guests_.destroy(&guest);
  });
}

}  // namespace urma::engine
