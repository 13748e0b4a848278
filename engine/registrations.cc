// SPDX-License-Identifier: Apache-2.0
#include "engine/registrations.h"

#include <algorithm>
#include <utility>

#include "base/accelerator_memory.h"

namespace urma::engine {
namespace {

// A copy of a slice takes microseconds: a peer that holds a segment for longer does not run.
constexpr Duration most_held = std::chrono::microseconds(500);
// How long to wait where moving the memory does not help: the peer may have to wait for a
// processor.
constexpr Duration most_awaited = std::chrono::milliseconds(20);

std::optional<Registrations::Lease> lease_of(const memseg::SegmentTable::Segment& segment) {
  if (segment.lease == memseg::SegmentTable::none) return std::nullopt;
  return Registrations::Lease{.number = segment.lease,
                              .address = segment.address,
                              .base = segment.base,
                              .bytes = segment.bytes};
}

}  // namespace

// ---- what the medium knows

void Registrations::grant_all(Handle handle) {
  const Segments::Token token = segments_.token(handle);
  segments_.for_each(segments_.root(handle), [&](const Segments::Segment& segment) {
    const std::optional<Lease> lease = lease_of(segment);
    if (!lease) return;
    memory_->grant(*lease, {.id = token.id,
                            .token = token.value,
                            .older = token.older,
                            .checked = token.checked,
                            .rights = segment.rights,
                            .atomics = segment.atomics});
  });
}

void Registrations::revoke(const Segments::Segment& segment) {
  if (const auto lease = lease_of(segment)) memory_->revoke(*lease);
}

// Checks several times, because the holder usually releases the memory in a moment.
bool Registrations::is_released(const Lease& lease) {
  constexpr int looks = 32;
  for (int i = 0; i < looks; ++i) {
    if (!memory_->held(lease)) return true;
  }
  return false;
}

std::optional<Registrations::Lease> Registrations::held(const Segments::Segment& segment) {
  const std::optional<Lease> lease = lease_of(segment);
  if (!lease || memory_->moved(*lease)) return std::nullopt;
  return memory_->loose(*lease) || !is_released(*lease) ? lease : std::nullopt;
}

// ---- segments

// Prepares to copy from and to the segment, if that takes preparation. Returns false if it failed.
bool Registrations::may_copy(const Segments::Segment& segment) {
  if (carriers_ != nullptr && AcceleratorMemory::has(segment.base)) carriers_->use_accelerators();
  return !segment.guarded || transactions_.staging().prepare({segment.base, segment.bytes});
}

Registrations::Segments::Added Registrations::follow(const Segments::Segment& segment,
                                                     const Segments::TokenPlan& plan, Handle with,
                                                     Segments::Made& made) {
  if (ended_) return Segments::Added::gone;
  if (!may_copy(segment)) return Segments::Added::no_guard;
  if (with) return segments_.join(with, segment, made);
  const Segments::Token drawn = made.token;
  return segments_.add(segment, plan, made, &drawn);
}

Registrations::Segments::Added Registrations::add(const Segments::Segment& segment,
                                                  const Segments::TokenPlan& plan, Handle with,
                                                  Segments::Made& made) {
  if (ended_) return Segments::Added::gone;
  if (!may_copy(segment)) return Segments::Added::no_guard;
  const Segments::Added added =
      with ? segments_.join(with, segment, made) : segments_.add(segment, plan, made);
  if (added == Segments::Added::added && segment.lease != Segments::none) grant_all(made.segment);
  return added;
}

template <class Function>
void Registrations::for_each_part(const Withdrawal& what, Function&& function) {
  if (what.withdrawn == Segments::none) return function(what.own);
  segments_.for_each(what.withdrawn, function);
}

// Calls function(base, bytes) for the memory of a withdrawn part that the application has in no
// other segment. What the device allocated goes away in any case, and what it reads by itself is
// mapped for each segment.
template <class Function>
void Registrations::for_each_ending(const Segments::Segment& part, Function&& function) {
  const std::byte* at = part.base;
  const std::byte* const end = part.base + part.bytes;
  const bool may_stay =
      part.lease == Segments::none && reads_ == nullptr && !AcceleratorMemory::has(part.base);
  while (at < end) {
    const std::byte* covered = at;
    const std::byte* next = end;
    segments_.for_each_below(may_stay ? UINT32_MAX : 0, [&](const auto& other, TokenId) {
      if (other.base > at) {
        next = std::min<const std::byte*>(next, other.base);
      } else if (other.base + other.bytes > at) {
        covered = std::max<const std::byte*>(covered, other.base + other.bytes);
      }
    });
    if (covered == at) function(at, static_cast<uint64_t>(next - at));
    at = covered == at ? next : covered;
  }
}

// No check succeeds from here on, and no new frame names the memory.
void Registrations::begin(Withdrawal& what, Time now) {
  what.begun = true;
  // Works posted before the call use the memory, too, though no pass has seen them yet.
  transactions_.jetties().for_each(
      [&](jetty::Jetty& jetty) { transactions_.initiator().note(jetty, now); });
  what.withdrawn = segments_.withdraw(what.segment, what.all);
  for_each_part(what, [&](const Segments::Segment& part) {
    revoke(part);
    if (reads_ != nullptr) reads_->revoke({part.base, part.bytes}, part.rights);
    for_each_ending(part, [&](const std::byte* base, uint64_t bytes) {
      transactions_.initiator().flush_memory(base, bytes, now);
      transactions_.target().flush_memory(base, bytes);
    });
  });
  what.fill = fills_.latest();
}

bool Registrations::is_used(const Withdrawal& what, Time now) {
  bool used = !fills_.has_settled(what.fill);
  for_each_part(what, [&](const Segments::Segment& part) {
    for_each_ending(part, [&](const std::byte* base, uint64_t bytes) {
      used = used || transactions_.initiator().using_memory(base, bytes, now);
    });
  });
  return used;
}

bool Registrations::end_keys(const Segments::Segment& segment, bool& fenced, Time now) {
  if (pairs() == nullptr) return true;
  const auto keys = pairs()->passive().end_keys({segment.base, segment.bytes}, now);
  if (keys == PassivePairs::Keys::stuck) fenced = false;
  return keys != PassivePairs::Keys::ending;
}

// After `begin`: frames that name the memory settle, works that use it end, and peers that map it
// finish their copies. A peer may have been stopped in the middle of a copy; `withdraw` does not
// wait for it any longer than `most_held`.
bool Registrations::withdraw(Withdrawal& what, Time now) {
  if (!what.begun) begin(what, now);
  if (is_used(what, now)) return false;
  bool keys_ended = true;
  for_each_part(what, [&](const Segments::Segment& part) {
    keys_ended = end_keys(part, what.fenced, now) && keys_ended;
  });
  if (!keys_ended) return false;
  if (what.since == Time{}) what.since = now;
  what.held = what.fenced && !what.all ? held(what.own) : std::nullopt;
  if (what.held) return memory_->loose(*what.held) || now - what.since > most_held;
  if (!what.fenced) ++not_fenced_;
  segments_.release(std::exchange(what.withdrawn, Segments::none));
  return true;
}

void Registrations::end() {
  ended_ = true;
  segments_.clear();
  if (memory_ != nullptr) memory_->revoke_all();
}

// ---- tokens

bool Registrations::rotate(Handle segment) {
  if (!segments_.rotate(segment)) return false;
  grant_all(segment);
  return true;
}

// Packets with the older value are refused from the first pass on, and answers to reads with it
// that were gathered before have left when this returns true. Peers that map the segment use
// packets while the medium's record of the segment is closed. The record stays closed until each
// peer has ended its hold, because a hold may have begun with the older value.
bool Registrations::retire(Retirement& what, Time now) {
  if (!what.begun) {
    what.begun = true;
    segments_.retire(what.segment);
    const bool renews = pairs() != nullptr && reads_ != nullptr;
    segments_.for_each(segments_.root(what.segment), [&](const Segments::Segment& part) {
      revoke(part);
      if (renews) reads_->revoke({part.base, part.bytes}, part.rights);
    });
    what.opened = renews;
    what.carried = transactions_.initiator().carried().latest();
    what.fill = fills_.latest();
  }
  if (what.since == Time{} && !fills_.has_settled(what.fill)) return false;
  if (transactions_.initiator().carried().at_device_up_to(what.carried)) return false;
  bool keys_ended = true;
  bool fenced = true;
  segments_.for_each(segments_.root(what.segment), [&](const Segments::Segment& part) {
    keys_ended = end_keys(part, fenced, now) && keys_ended;
  });
  if (!keys_ended) return false;
  if (what.since == Time{}) what.since = now;
  bool held = false;
  segments_.for_each(segments_.root(what.segment), [&](const Segments::Segment& part) {
    const auto lease = held ? std::nullopt : lease_of(part);
    held = held || (lease && !is_released(*lease));
  });
  if (held && now - what.since <= most_awaited) return false;
  what.fenced = !held && fenced;
  if (!what.fenced) ++not_fenced_;
  if (!ended_) grant_all(what.segment);
  return true;
}

}  // namespace urma::engine
