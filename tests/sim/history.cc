// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/history.h"

#include "jetty/slice_table.h"

namespace urma::test {
namespace {

bool fetches(const History::Work& work) {
  return work.kind == History::Kind::reads || work.kind == History::Kind::adds;
}
// Returns whether the run can observe that this work was executed.
bool is_seen(const History::Work& work) {
  return work.kind == History::Kind::tells || work.kind == History::Kind::writes;
}
std::string both(size_t a, size_t b) {
  return "works " + std::to_string(a) + " and " + std::to_string(b);
}

}  // namespace

// Returns whether `before` must be executed before `after`; `before` was posted first.
bool History::must_precede(size_t before, size_t after) const {
  const Work& first = works[before];
  const Work& second = works[after];
  if (order_of(second) == Order::strong && first.order != Order::none) return true;
  for (size_t i = before + 1; i <= after; ++i) {
    if (works[i].status == Status::flushed)
      continue;  // the work was cancelled, and its fence with it
    if (works[i].fence == Fence::all) return true;
    if (works[i].fence == Fence::reads && fetches(first)) return true;
  }
  return false;
}

std::string History::of_reads(size_t i) const {
  const Work& work = works[i];
  const Work& wrote = works[work.cell];
  if (*work.status != Status::ok || wrote.status != Status::ok || wrote.peer != work.peer)
    return {};
  const bool saw = work.read == work.cell + 1;
  if (work.read != 0 && !saw)
    return "work " + std::to_string(i) + " read a value that was never written";
  if (work.cell < i && must_precede(work.cell, i) && !saw) {
    return both(work.cell, i) + ": read too early";
  }
  if (work.cell > i && must_precede(i, work.cell) && saw) {
    return both(i, work.cell) + ": written too early";
  }
  return {};
}

std::string History::of_pair(size_t before, size_t after) const {
  const Work& first = works[before];
  const Work& second = works[after];
  const bool shown = first.signalled || *first.status != Status::ok;
  if (in_order && shown && first.completed > second.completed) {
    return both(before, after) + ": completions out of order";
  }
  const bool same = first.peer == second.peer && first.kind == second.kind;
  // The value that an unsignalled work fetched is not reported.
  const bool told = first.status == Status::ok && first.signalled && second.signalled;
  if (first.kind == Kind::adds && same && told && second.status == Status::ok) {
    if (first.read == second.read) return both(before, after) + ": added at once";
    if (first.read > second.read && must_precede(before, after)) {
      return both(before, after) + ": added out of order";
    }
  }
  if (!is_seen(first) || !is_seen(second) || !must_precede(before, after)) return {};
  if (second.times == 0 || first.times == 0 || *first.status != Status::ok) return {};
  const bool placed = same && first.kind == Kind::tells;
  const bool out_of_order = placed ? first.place > second.place : first.round > second.round;
  return out_of_order ? both(before, after) + ": executed out of order" : "";
}

std::string History::contradiction() const {
  for (size_t i = 0; i < works.size(); ++i) {
    const Work& work = works[i];
    const std::string it = "work " + std::to_string(i);
    if (!work.status) return it + " did not complete";
    if (work.times > 1) return it + " was executed twice";
    const bool ok = *work.status == Status::ok;
    if (is_seen(work) && ok && work.times == 0) {
      return it + " completed as done and never arrived";
    }
    const bool refused =
        jetty::claims_not_executed(*work.status) || *work.status == Status::remote_access;
    if (refused && work.times > 0) return it + " arrived, and completed as not executed";
    if (work.fails && ok) return it + " should have been refused";
    if (!ok && !work.fails && !work.troubled) {
      return it + " ended as " + std::to_string(static_cast<int>(*work.status)) +
             " without a reason";
    }
    if (work.kind == Kind::reads) {
      if (const std::string wrong = of_reads(i); !wrong.empty()) return wrong;
    }
    // At most 64 works are outstanding, so works further back have ended.
    for (size_t j = i > 64 ? i - 64 : 0; j < i; ++j) {
      if (const std::string wrong = of_pair(j, i); !wrong.empty()) return wrong;
    }
  }
  return {};
}

std::string History::contradiction_of_sum(uint32_t peer, uint64_t sum) const {
  uint64_t least = 0;
  uint64_t most = 0;
  for (const Work& work : works) {
    if (work.kind != Kind::adds || work.peer != peer || !work.status) continue;
    least += *work.status == Status::ok;
    most += *work.status == Status::ok || *work.status == Status::unknown;
  }
  if (sum >= least && sum <= most) return {};
  return "a sum is " + std::to_string(sum) + ", and not " + std::to_string(least) + " to " +
         std::to_string(most);
}

}  // namespace urma::test
