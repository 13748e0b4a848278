// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/progress.h"

namespace urma::apps::perf {

void Outcome::clear() {
  times.clear();
  plan.clear();
  messages = lost = unsent = windows = 0;
  begin = end = within_calls = 0;
  builds.clear();
  verdict = {};
}

void Outcome::add(const Outcome& other) {
  begin = messages == 0 ? other.begin : std::min(begin, other.begin);
  end = std::max(end, other.end);
  messages += other.messages;
  lost += other.lost;
  unsent += other.unsent;
  windows += other.windows;
  within_calls += other.within_calls;
  times.merge(other.times);
  plan.add(other.plan);
  builds.add(other.builds);
  verdict.add(other.verdict);
}

void post_all(Jetty& jetty, std::span<const Work> works) {
  if (jetty.post(works) == works.size()) return;
  throw Failure(
      Exit::error,
      "a work was not accepted although a berth is vacant. Fix: report this as a fault of "
      "liburma");
}

void check_progress(const Case& what, int64_t since) {
  // Allows for paths as slow as 10 MB/s.
  const auto patience = static_cast<int64_t>(10 * second + what.bytes * 100);
  if (now() - since < patience) return;
  throw Failure(Exit::peer_lost,
                fmt::format("no work has completed for {} s. Fix: check whether the server still "
                            "runs; if not, start it again",
                            patience / second));
}

Stream::Stream(Side& side, const std::vector<uint32_t>& jetties, Jfc& completions, bool polls,
               const std::optional<Timetable>& timetable)
    : side_(side),
      completions_(completions),
      taker_(polls),
      group_(side.what().signal_every),
      fence_every_(side.what().ordering.fence_every),
      words_(side.what().atomic->atomic, side.what().bytes,
             side.what().test->atomics() ? side.ledger().size() : 0),
      timetable_(timetable) {
  const uint32_t groups = side.what().depth / group_;
  for (uint32_t g = 0; g < groups; ++g) {
    for (const uint32_t jetty : jetties) lanes_.push_back({jetty, g * group_, 0});
  }
  for (uint32_t i = 0; i < lanes_.size(); ++i) vacant_.push_back(i);
  works_.resize(side.what().depth);
  built_for_.assign(side.what().depth, UINT32_MAX);
}

void Stream::run(const Stop& stop, Outcome& outcome) {
  outcome.begin = outcome.end = now();
  posted_ = 0;
  read_words();
  if (timetable_) return run_by_timetable(stop, outcome);
  ProgressWriter progress(stop.progress, outcome.begin);
  while (outcome.end < stop.at && posted_ < stop.count && !interrupted()) {
    post_vacant(stop.count - posted_, outcome);
    await(outcome);
    progress.at(outcome.end, outcome.messages);
  }
  while (vacant_.size() < lanes_.size()) await(outcome);
}

// A work that cannot be posted when it is due is posted later, and waits longer: its latency shows
// that. Works that are due at the end of the round are posted for as long again, and at least as
// long as a busy machine may keep this process from a processor; those that are not posted even
// then count as unsent.
void Stream::run_by_timetable(const Stop& stop, Outcome& outcome) {
  timetable_->begin(outcome.begin);
  const bool counted = stop.count != UINT64_MAX;
  const int64_t end = counted ? std::min(stop.at, timetable_->time_of(stop.count)) : stop.at;
  constexpr int64_t longest_without_processor = second / 10;
  const int64_t last_post = end + std::max(end - outcome.begin, longest_without_processor);
  int64_t moved = outcome.begin;  // when works completed, or when the first one was posted
  ProgressWriter progress(stop.progress, outcome.begin);
  for (int64_t at = outcome.begin; !interrupted(); at = now()) {
    const int64_t next = timetable_->time_of(posted_);
    if (at >= end && (next >= end || at >= last_post)) break;
    if (vacant_.size() == lanes_.size()) moved = at;
    post_due(at, end, outcome);
    const int64_t until = vacant_.empty() ? INT64_MAX : timetable_->time_of(posted_);
    if (finish_all(taker_.take_before(completions_, until), outcome)) {
      moved = at;
    } else {
      spin();
      check_progress(side_.what(), moved);
    }
    progress.at(at, outcome.messages);
  }
  if (!interrupted()) outcome.unsent = timetable_->due_before(end) - posted_;
  while (vacant_.size() < lanes_.size()) await(outcome);
  outcome.end = std::max(outcome.end, std::min(end, now()));
}

// The words were copied from the server before.
void Stream::read_words() {
  if (!side_.what().test->atomics()) return;
  for (const Lane& lane : lanes_) {
    for (uint32_t slot = lane.first_slot; slot < lane.first_slot + group_; ++slot) {
      words_.set(place(lane.jetty, slot), Words::load(side_.slot(lane.jetty, slot)));
    }
  }
}

// Posts all that is vacant, with one reading of the clock and one post for each Jetty.
void Stream::post_vacant(uint64_t most, Outcome& outcome) {
  const int64_t at = now();
  for (; !vacant_.empty() && most > 0; most -= std::min<uint64_t>(most, group_)) {
    const uint32_t number = vacant_.back();
    vacant_.pop_back();
    lanes_[number].posted = at;
    if (lanes_[number].jetty != staged_for_) post_staged();
    stage(number, outcome);
  }
  post_staged();
}

// Posts the works that are due at this time, and before the end of the round.
void Stream::post_due(int64_t at, int64_t end, Outcome& outcome) {
  for (int64_t due = timetable_->time_of(posted_); due <= at && due < end && !vacant_.empty();
       due = timetable_->time_of(posted_)) {
    const uint32_t number = vacant_.back();
    vacant_.pop_back();
    lanes_[number].posted = due;
    if (lanes_[number].jetty != staged_for_) post_staged();
    stage(number, outcome);
  }
  post_staged();
}

void Stream::stage(uint32_t number, Outcome& outcome) {
  const Lane& lane = lanes_[number];
  staged_for_ = lane.jetty;
  const uint32_t end = lane.first_slot + group_;
  const int64_t begin = outcome.builds.begin();
  for (uint32_t slot = lane.first_slot; slot < end; ++slot) {
    Work& work = works_[staged_];
    if (std::exchange(built_for_[staged_++], lane.jetty) != lane.jetty) {
      work = side_.work(lane.jetty, slot, next_window_);
    }
    side_.aim(work, lane.jetty, slot, next_window_);
    work.tag(number).signalled = slot + 1 == end;
    if (fence_every_ != 0)
      work.fence = staged_works_++ % fence_every_ == 0 ? Fence::all : Fence::none;
    window_at(lane.jetty, slot) = next_window_;
    if (side_.what().test->atomics()) {
      words_.aim(work, place(lane.jetty, slot));
      window_at(lane.jetty, slot) = words_.value(place(lane.jetty, slot));
    }
    outcome.windows += next_window_;
    next_window_ = next_window_ + 1 == Pattern::windows ? 0 : next_window_ + 1;
  }
  posted_ += group_;
  outcome.builds.end(begin, group_);
}

void Stream::post_staged() {
  const auto staged = std::span(works_).first(std::exchange(staged_, 0));
  if (staged.empty()) return;
  post_all(side_.jetties()[staged_for_], staged);  // there are as many berths as slots
}

// Waits for completions and takes them.
void Stream::await(Outcome& outcome) {
  constexpr uint32_t look_at_clock_every = 1024;
  for (uint32_t looks = 1;; ++looks) {
    if (finish_all(taker_.take(completions_), outcome)) return;
    spin();
    if (looks % look_at_clock_every == 0) check_progress(side_.what(), outcome.end);
  }
}

// Returns false if there were no completions.
bool Stream::finish_all(std::span<const Completion> taken, Outcome& outcome) {
  if (taken.empty()) return false;
  const int64_t at = now();
  for (const Completion& completion : taken) finish(completion, at, outcome);
  // The latency of a read does not include reading its bytes, but the time of all works does.
  outcome.end = side_.what().test->reads() ? now() : at;
  return true;
}

void Stream::finish(const Completion& completion, int64_t at, Outcome& outcome) {
  if (!completion.ok()) throw failed_work(side_.what().test->name, completion.status);
  const auto number = static_cast<uint32_t>(completion.tag);
  const Lane& lane = lanes_[number];
  const int64_t took = at - lane.posted - clock_cost();
  outcome.times.record(static_cast<uint64_t>(std::max<int64_t>(took, 0)), group_);
  outcome.messages += group_;
  vacant_.push_back(number);
  if (!side_.what().verify) return;
  if (side_.what().test->atomics()) {
    // Only the last work of the group is signalled and checked here. The server checks the words of
    // the others.
    const uint32_t slot = lane.first_slot + group_ - 1;
    words_.check(place(lane.jetty, slot), completion.fetched(), outcome.verdict);
    window_at(lane.jetty, slot) = words_.value(place(lane.jetty, slot));
  }
  if (!side_.what().test->reads()) return;
  for (uint32_t slot = lane.first_slot; slot < lane.first_slot + group_; ++slot) {
    const auto window = static_cast<uint32_t>(window_at(lane.jetty, slot));
    side_.check(lane.jetty, slot, window, outcome.verdict);
  }
}

size_t Stream::place(uint32_t jetty, uint32_t slot) const {
  return size_t{jetty} * side_.layout().slots() + slot;
}

uint64_t& Stream::window_at(uint32_t jetty, uint32_t slot) {
  return side_.ledger()[place(jetty, slot)];
}

}  // namespace urma::apps::perf
