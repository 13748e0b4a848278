// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/ping_pong.h"

#include <algorithm>

#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/urma_perf/machine.h"
#include "apps/urma_perf/progress.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t patience = 10 * second;
// After this time an unreliable message counts as lost, and another one is sent.
constexpr int64_t lost_after = second / 10;

}  // namespace

PingPong::PingPong(Side& side, std::vector<uint32_t> jetties, Jfc& completions, bool polls)
    : side_(side),
      jetties_(std::move(jetties)),
      completions_(completions),
      taker_(polls && !side.what().test->asleep) {
  for (const uint32_t jetty : jetties_) works_.push_back(side.work(jetty, 0, 0));
}

void PingPong::run(const Stop& stop, Outcome& outcome) {
  const int64_t rested = side_.what().test->asleep ? rest_before_send : 0;
  int64_t last = now();
  outcome.begin = last;
  ProgressWriter progress(stop.progress, last);
  for (size_t turn = 0; last < stop.at && outcome.messages < stop.count && !interrupted(); ++turn) {
    const auto number = static_cast<uint32_t>(turn % jetties_.size());
    if (rested > 0) last = rest(rested);
    send(number, next_window_, outcome.builds);
    int64_t sent = last;
    while (!await(jetties_[number], next_window_, last, outcome.verdict)) {
      ++outcome.lost;
      sent = now();
      send(number, next_window_, outcome.builds);
    }
    if (interrupted()) break;  // perhaps in the middle of a round trip
    const int64_t time = now();
    // A lost message has no round trip.
    last = sent;
    const int64_t took = time - last - rested - clock_cost();
    outcome.times.record(static_cast<uint64_t>(std::max<int64_t>(took, 0)) / 2);
    last = time;
    ++outcome.messages;
    outcome.windows += next_window_;
    progress.at(last, outcome.messages);
    next_window_ = next_window_ + 1 == Pattern::windows ? 0 : next_window_ + 1;
  }
  outcome.end = last;
}

// Sleeps as an idle application does: in a call of the library, which acknowledges what came.
int64_t PingPong::rest(int64_t time) {
  const int64_t end = now() + time;
  for (int64_t at = now(); at < end; at = now()) {
    for (const Completion& completion : completions_.wait(std::chrono::nanoseconds(end - at))) {
      if (!completion.ok()) throw failed_work(side_.what().test->name, completion.status);
    }
  }
  return now();
}

void PingPong::send(uint32_t number, uint32_t window, Builds& builds) {
  Work& work = works_[number];
  const uint32_t jetty = jetties_[number];
  const int64_t begin = builds.begin();
  side_.aim(work, jetty, 0, window);
  work.signalled = ++sent_ % side_.what().signal_every == 0;
  builds.end(begin, 1);
  if (side_.jetties()[jetty].post(work) == 0) post_late(side_.jetties()[jetty], work);
}

// Berths return with the acknowledgements of earlier messages, which may be late.
void PingPong::post_late(Jetty& jetty, const Work& work) {
  for (const int64_t begin = now(); jetty.post(work) == 0;) {
    for (const Completion& completion : taker_.take(completions_)) {
      if (!completion.ok()) throw failed_work(side_.what().test->name, completion.status);
    }
    if (now() - begin < patience) continue;
    throw Failure(Exit::peer_lost,
                  "no message was acknowledged for 10 s. Fix: check whether the "
                  "server still runs; if not, start it again");
  }
}

// Returns false if the message was lost, which is allowed in some cases.
bool PingPong::await(uint32_t jetty, uint32_t window, int64_t since, Verdict& verdict) {
  constexpr uint32_t look_at_clock_every = 1024;
  const int64_t begin = now();
  for (uint32_t looks = 1;; ++looks) {
    bool here = false;
    for (const Completion& completion : taker_.take(completions_)) {
      here = handle(completion, jetty, window, verdict) || here;
    }
    if (here) return true;
    spin();
    if (looks % look_at_clock_every != 0) continue;
    if (interrupted()) return true;
    const int64_t time = now();
    if (time - since < patience) {
      if (side_.what().ordering.unreliable() && time - begin > lost_after) return false;
      continue;
    }
    throw Failure(Exit::peer_lost,
                  "no message has come back for 10 s. Fix: check whether the "
                  "server still runs; if not, start it again");
  }
}

// Returns true if the completion is that of the expected message.
bool PingPong::handle(const Completion& completion, uint32_t jetty, uint32_t window,
                      Verdict& verdict) {
  if (!completion.ok()) throw failed_work(side_.what().test->name, completion.status);
  if (completion.operation != Operation::receive) return false;
  const bool sends = side_.what().test->sends();
  const uint32_t slot = sends ? static_cast<uint32_t>(completion.tag) : 0;
  if (sends && is_late(jetty, slot, window)) {
    side_.receive(jetty, slot);
    return false;
  }
  if (side_.what().verify) side_.check(jetty, slot, window, verdict);
  if (completion.bytes != side_.what().bytes) verdict.count("a message of another length");
  if (sends) side_.receive(jetty, slot);
  return true;
}

// Returns whether the message answers an earlier one, which had counted as lost.
bool PingPong::is_late(uint32_t jetty, uint32_t slot, uint32_t window) const {
  if (!side_.what().ordering.unreliable() || !side_.what().verify) return false;
  return side_.window_in(jetty, slot).value_or(window) != window;
}

}  // namespace urma::apps::perf
