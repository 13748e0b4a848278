// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/refusals.h"

namespace urma::jetty {

std::optional<Time> Refusals::note(PeerId from, const TaRequest& request, const OpcodeInfo& info,
                                   Time now) {
  auto complaint = executor_.complaint(request, info);
  if (!complaint) return std::nullopt;
  complaint->event.peer = from;
  events_.raise(complaint->event);
  if (!complaint->guessed) return std::nullopt;
  // Unknown senders, which name themselves, count as one.
  const auto until = guesses_.wrong(from ? channels_.eid(from) : Eid{}, now);
  if (until) events_.raise({.kind = EventKind::guessing, .peer = from});
  return until;
}

}  // namespace urma::jetty
