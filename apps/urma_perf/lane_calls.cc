// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/lane_calls.h"

#include <algorithm>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/urma_perf/progress.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t pass_every = millisecond / 10;

// Calls until a status is not ok.
template <class Calls, class Make>
Status make_each(Calls calls, Make&& make_one) {
  for (auto& call : calls) {
    if (const Status status = make_one(call); status != Status::ok) return status;
  }
  return Status::ok;
}

}  // namespace

LaneCalls::LaneCalls(Side& side, uint32_t jetty, Jfc& completions)
    : side_(side),
      jetty_(jetty),
      completions_(completions),
      words_(side.what().atomic->atomic, side.what().bytes,
             side.what().test->atomics() ? side.ledger().size() : 0),
      draw_(side.what().seed + jetty),
      calls_(side.layout().slots()) {}

void LaneCalls::run(const Stop& stop, Outcome& outcome) {
  urma::Lane lane = must(side_.jetties()[jetty_].lane(side_.other()), side_.what().test->name);
  outcome.begin = outcome.end = now();
  read_words();
  ProgressWriter progress(stop.progress, outcome.begin);
  int64_t next_pass = outcome.begin;
  while (outcome.end < stop.at && outcome.messages < stop.count && !interrupted()) {
    const uint64_t most = stop.count - outcome.messages;
    const auto calls = std::span(calls_).first(std::min<uint64_t>(calls_.size(), most));
    for (uint32_t slot = 0; slot < calls.size(); ++slot) stage(slot);
    const int64_t begin = now();
    const Status status = make(lane, calls);
    outcome.end = now();
    if (status != Status::ok) {
      throw failed_work(side_.what().test->name, status, "a call of the lane");
    }
    record(outcome.end - begin - clock_cost(), calls, outcome);
    if (side_.what().verify) {
      for (uint32_t slot = 0; slot < calls.size(); ++slot) check(slot, outcome.verdict);
    }
    progress.at(outcome.end, outcome.messages);
    if (outcome.end < next_pass) continue;
    // The calls of a lane do not run the device, which must answer its peers, and notices here that
    // the server has ended.
    (void)completions_.poll({});
    next_pass = outcome.end + pass_every;
  }
}

// The words were copied from the server before.
void LaneCalls::read_words() {
  if (!side_.what().test->atomics()) return;
  for (uint32_t slot = 0; slot < calls_.size(); ++slot) {
    words_.set(place(slot), Words::load(side_.slot(jetty_, slot)));
  }
}

// Chooses what a call does. The clock is not running, so that a random place costs the call
// nothing.
void LaneCalls::stage(uint32_t slot) {
  const Layout& layout = side_.layout();
  Call& call = calls_[slot];
  uint64_t& latest = side_.ledger()[place(slot)];
  latest = next_window_;
  if (side_.what().test->reads()) {
    call.to = side_.slot(jetty_, slot);
    const uint64_t source = layout.sources() == 1 ? 0 : draw_.of(layout.sources());
    call.offset = layout.source_at(next_window_, static_cast<uint32_t>(source));
  } else {
    call.offset = layout.slot_at(jetty_, slot);
    call.from =
        side_.source().subspan(size_t{next_window_} * Pattern::window_bytes, side_.what().bytes);
  }
  if (side_.what().test->atomics()) {
    call.operands = words_.advance(place(slot));
    latest = words_.value(place(slot));
  }
  next_window_ = next_window_ + 1 == Pattern::windows ? 0 : next_window_ + 1;
}

Status LaneCalls::make(urma::Lane& lane, std::span<Call> calls) const {
  const Test& test = *side_.what().test;
  if (test.reads()) {
    return make_each(calls, [&](Call& call) { return lane.read(call.to, call.offset); });
  }
  if (!test.atomics()) {
    return make_each(calls, [&](Call& call) { return lane.write(call.from, call.offset); });
  }
  switch (side_.what().bytes) {
    case 1:
      return change<uint8_t>(lane, calls);
    case 2:
      return change<uint16_t>(lane, calls);
    case 4:
      return change<uint32_t>(lane, calls);
    default:
      return change<uint64_t>(lane, calls);
  }
}

template <class Word>
Status LaneCalls::change(urma::Lane& lane, std::span<Call> calls) const {
  if (side_.what().atomic->atomic == Atomic::compare_swap) {
    return make_each(calls, [&](Call& call) {
      Word previous = 0;
      const Status status =
          lane.compare_swap<Word>(call.offset, static_cast<Word>(call.operands.expected),
                                  static_cast<Word>(call.operands.operand), previous);
      call.fetched = previous;
      return status;
    });
  }
  return make_each(calls, [&](Call& call) {
    Word previous = 0;
    const Status status =
        lane.fetch_add<Word>(call.offset, static_cast<Word>(call.operands.operand), previous);
    call.fetched = previous;
    return status;
  });
}

// If the calls took no longer than reading the clock, the smallest step is recorded.
void LaneCalls::record(int64_t took, std::span<const Call> calls, Outcome& outcome) const {
  const int64_t time = std::max<int64_t>(took, 1);
  constexpr uint64_t picoseconds = 1000;
  outcome.times.record(static_cast<uint64_t>(time) * picoseconds / calls.size(), calls.size());
  outcome.within_calls += time;
  outcome.messages += calls.size();
}

// The server checks the bytes of writes at the end of a round.
void LaneCalls::check(uint32_t slot, Verdict& verdict) {
  uint64_t& latest = side_.ledger()[place(slot)];
  if (side_.what().test->reads()) {
    side_.check(jetty_, slot, static_cast<uint32_t>(latest), verdict);
  } else if (side_.what().test->atomics()) {
    words_.check(place(slot), calls_[slot].fetched, verdict);
    latest = words_.value(place(slot));
  }
}

size_t LaneCalls::place(uint32_t slot) const {
  return size_t{jetty_} * side_.layout().slots() + slot;
}

}  // namespace urma::apps::perf
