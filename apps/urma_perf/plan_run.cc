// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/plan_run.h"

#include <algorithm>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/progress.h"

namespace urma::apps::perf {

PlanRun::PlanRun(Side& side, const Plan& plan, Jfc& completions, bool polls)
    : side_(side), completions_(completions), taker_(polls) {
  const uint32_t entries = side.what().plan.entries;
  blocks_ = entries == 0 ? plan.blocks() : plan.gathered().blocks();
  for (const std::vector<Gather>& works : lists_of(blocks_, entries)) {
    lists_.push_back({.begin = gathers_.size(), .end = gathers_.size() + works.size()});
    gathers_.insert(gathers_.end(), works.begin(), works.end());
  }
  works_.reserve(std::max<size_t>(gathers_.size(), works_of_one_write(side.what().bytes)));
  pieces_.reserve(blocks_.size());
}

void PlanRun::run(const Stop& stop, Outcome& outcome) {
  outcome.begin = outcome.end = now();
  note_blocks();
  ProgressWriter progress(stop.progress, outcome.begin);
  do {
    write_once(outcome);
    move(outcome);
    progress.at(outcome.end, outcome.messages);
  } while (outcome.end < stop.at && outcome.messages < stop.count && !interrupted());
}

// Writes as many bytes as the blocks have, in one piece.
void PlanRun::write_once(Outcome& outcome) {
  next_window();
  works_.clear();
  const uint64_t all = side_.what().bytes;
  for (uint64_t at = 0; at < all; at += max_write_bytes) {
    const uint64_t part = std::min(all - at, max_write_bytes);
    works_.push_back(urma::write(source(at, part), side_.other(), target(at)).unsignalled());
  }
  works_.back().signalled = true;
  const int64_t begin = now();
  post(works_);
  await();
  outcome.plan.one_write.record(static_cast<uint64_t>(now() - begin));
}

void PlanRun::move(Outcome& outcome) {
  next_window();
  const int64_t building = outcome.builds.begin();
  const int64_t begin = now();
  prepare();
  const int64_t prepared = now();
  outcome.builds.end(building, works_.size());
  int64_t posting = 0;
  for (const List& list : lists_) {
    const int64_t at = now();
    post(std::span(works_).subspan(list.begin, list.end - list.begin));
    posting += now() - at;
    await();
  }
  outcome.end = now();
  outcome.plan.prep.record(static_cast<uint64_t>(prepared - begin));
  outcome.plan.post.record(static_cast<uint64_t>(posting));
  outcome.times.record(static_cast<uint64_t>(outcome.end - prepared));
  outcome.within_calls += outcome.end - prepared;
  ++outcome.messages;
  side_.ledger()[0] = window_;
}

// Only the last work of each list has a completion, which says that the others have succeeded, too.
void PlanRun::prepare() {
  works_.clear();
  pieces_.clear();
  const auto piece = [from = source(0, side_.what().plan.source_bytes)](const Block& block) {
    const auto bytes = from.subspan(block.source, block.bytes);
    return Buffer{const_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  const uint64_t to = target(0);
  const Order order = side_.what().ordering.order->order;
  for (const Gather& gather : gathers_) {
    const Block& first = blocks_[gather.begin];
    if (gather.end - gather.begin == 1) {
      // A copy of a finished work would take as long again.
      works_.emplace_back(Operation::write, piece(first), side_.other(), to + first.target);
    } else {
      const size_t begin = pieces_.size();
      for (size_t i = gather.begin; i < gather.end; ++i) pieces_.push_back(piece(blocks_[i]));
      works_.emplace_back(Operation::write, std::span<const Buffer>(pieces_).subspan(begin),
                          side_.other(), to + first.target);
    }
    works_.back().order = order;
    works_.back().signalled = false;
  }
  for (const List& list : lists_) works_[list.end - 1].signalled = true;
}

void PlanRun::post(std::span<const Work> works) { post_all(side_.jetties().front(), works); }

// Waits for the completion of the only signalled work.
void PlanRun::await() {
  constexpr uint32_t look_at_clock_every = 1024;
  const int64_t begin = now();
  for (uint32_t looks = 1;; ++looks) {
    const auto taken = taker_.take(completions_);
    for (const Completion& completion : taken) {
      if (!completion.ok()) throw failed_work(side_.what().test->name, completion.status);
    }
    if (!taken.empty()) return;
    spin();
    if (looks % look_at_clock_every == 0) check_progress(side_.what(), begin);
  }
}

void PlanRun::note_blocks() {
  const auto words = side_.ledger();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const size_t at = 1 + i * Layout::words_of_block;
    words[at] = blocks_[i].target;
    words[at + 1] = blocks_[i].source;
    words[at + 2] = blocks_[i].bytes;
  }
}

std::span<const std::byte> PlanRun::source(uint64_t offset, uint64_t bytes) const {
  return side_.posted(
      side_.source().subspan(uint64_t{window_} * Pattern::window_bytes + offset, bytes));
}

uint64_t PlanRun::target(uint64_t offset) const { return side_.layout().landing_begin() + offset; }

// The bytes of each transfer differ from those of the one before, at every place.
void PlanRun::next_window() { window_ = window_ + 1 == Pattern::windows ? 0 : window_ + 1; }

}  // namespace urma::apps::perf
