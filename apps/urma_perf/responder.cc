// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/responder.h"

#include <fmt/format.h>

namespace urma::apps::perf {

namespace {

// Into mapped memory the client writes by itself, so that a later message may overwrite one before
// this side checks it: unless it is a send, or the client waits for the answer.
bool stays_until_checked(const Case& what) {
  return what.own_memory || what.test->sends() || what.test->ping_pong();
}

}  // namespace

Responder::Responder(Side& side, bool check_each)
    : side_(side),
      check_each_(check_each && stays_until_checked(side.what())),
      bounce_windows_(side.jetties().size()),
      bounced_(side.jetties().size()),
      owed_(side.jetties().size()) {
  for (uint32_t i = 0; i < side.jetties().size(); ++i) {
    by_id_.emplace(number(side.jetties()[i].id()), i);
    if (side.what().test->ping_pong()) works_.push_back(side.work(i, 0, 0));
  }
}

std::optional<uint32_t> Responder::find(JettyId id) {
  if (number(id) == latest_id_) return latest_;
  const auto found = by_id_.find(number(id));
  if (found == by_id_.end()) return std::nullopt;
  latest_id_ = found->first;
  return latest_ = found->second;
}

bool Responder::handle(const Completion& completion) {
  const auto jetty = find(completion.jetty);
  if (!jetty) return false;
  if (!completion.ok()) {
    // The client notices by itself: its own work or wait ends, too.
    report_.verdict.count(
        fmt::format("a work or message of the server ended as {}", name(completion.status)));
  } else if (completion.operation == Operation::receive) {
    handle_message(*jetty, completion);
  }
  if (owed_[*jetty]) bounce(*jetty);
  return true;
}

// All that a client says about its message is checked before it is used.
void Responder::handle_message(uint32_t jetty, const Completion& completion) {
  const Case& what = side_.what();
  const bool sends = what.test->sends();
  const auto slot = static_cast<uint32_t>(sends ? completion.tag : completion.immediate >> 32);
  uint32_t window = static_cast<uint32_t>(completion.immediate);
  if (sends) window = what.verify ? side_.window_in(jetty, slot).value_or(Pattern::windows) : 0;
  ++report_.messages;
  if (completion.bytes != what.bytes || slot >= side_.layout().slots() ||
      window >= Pattern::windows) {
    report_.verdict.count(
        fmt::format("Jetty {}: a message of {} bytes, immediate 0x{:x}, is none "
                    "of this test",
                    jetty, completion.bytes, completion.immediate));
    window = 0;
  } else {
    report_.windows += window;
    if (what.verify && check_each_) side_.check(jetty, slot, window, report_.verdict);
  }
  if (sends) side_.receive(jetty, slot);
  if (!what.test->ping_pong()) return;
  bounce_windows_[jetty] = window;
  // The engine runs meanwhile, so an acknowledgement that wakes the client wakes it early.
  if (what.test->asleep) side_.beat_for(rest_before_send);
  bounce(jetty);
}

// The round trip orders the messages, but their acknowledgements may be late.
void Responder::bounce(uint32_t jetty) {
  const int64_t begin = builds_.begin();
  side_.aim(works_[jetty], jetty, 0, bounce_windows_[jetty]);
  works_[jetty].signalled = bounced_[jetty] % side_.what().signal_every == 0;
  builds_.end(begin, 1);
  owed_[jetty] = side_.jetties()[jetty].post(works_[jetty]) == 0;
  if (!owed_[jetty]) ++bounced_[jetty];
}

void Responder::begin(bool profiled) {
  report_ = {};
  builds_ = Builds(profiled);
}

Report report_of(const Side& side, std::span<const Responder> responders) {
  Report report;
  for (const Responder& responder : responders) report.add(responder.arrivals());
  const Case& what = side.what();
  if (what.verify && what.test->lands_unseen()) side.check_ledger(report.verdict);
  return report;
}

}  // namespace urma::apps::perf
