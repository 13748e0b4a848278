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
  messages = lost = windows = 0;
  begin = end = within_calls = 0;
  builds.clear();
  verdict = {};
}

void Outcome::add(const Outcome& other) {
  begin = messages == 0 ? other.begin : std::min(begin, other.begin);
  end = std::max(end, other.end);
  messages += other.messages;
  lost += other.lost;
  windows += other.windows;
  within_calls += other.within_calls;
  times.merge(other.times);
  builds.add(other.builds);
  verdict.add(other.verdict);
}

Stream::Stream(Side& side, const std::vector<uint32_t>& jetties, Jfc& completions, bool polls)
    : side_(side),
      completions_(completions),
      taker_(polls),
      group_(side.what().signal_every),
      fence_every_(side.what().ordering.fence_every),
      words_(side.what().atomic->atomic, side.what().bytes,
             side.what().test->atomics() ? side.ledger().size() : 0) {
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
  ProgressWriter progress(stop.progress, outcome.begin);
  while (outcome.end < stop.at && posted_ < stop.count && !interrupted()) {
    post_vacant(stop.count - posted_, outcome);
    await(outcome);
    progress.at(outcome.end, outcome.messages);
  }
  while (vacant_.size() < lanes_.size()) await(outcome);
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
  const bool all = side_.jetties()[staged_for_].post(staged) == staged.size();
  // There are as many berths as slots.
  if (all) return;
  throw Failure(Exit::error,
                "a work was not accepted although a berth is vacant. Fix: report this "
                "as a fault of liburma");
}

// Waits for completions and takes them.
void Stream::await(Outcome& outcome) {
  constexpr uint32_t look_at_clock_every = 1024;
  // Allows for paths as slow as 10 MB/s.
  const auto patience = static_cast<int64_t>(10 * second + side_.what().bytes * 100);
  for (uint32_t looks = 1;; ++looks) {
    const auto taken = taker_.take(completions_);
    if (!taken.empty()) {
      const int64_t at = now();
      for (const Completion& completion : taken) finish(completion, at, outcome);
      // The latency of a read does not include reading its bytes, but the time of all works does.
      outcome.end = side_.what().test->reads() ? now() : at;
      return;
    }
    spin();
    if (looks % look_at_clock_every != 0 || now() - outcome.end < patience) continue;
    throw Failure(Exit::peer_lost,
                  fmt::format("no work has completed for {} s. Fix: check whether the server "
                              "still runs; if not, start it again",
                              patience / second));
  }
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
