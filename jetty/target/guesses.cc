// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/guesses.h"

#include <algorithm>

namespace urma::jetty {

Guesses::Suspect& Guesses::suspect(const Eid& address, Time now) {
  Suspect* quietest = &suspects_[0];
  for (Suspect& one : suspects_) {
    if (one.count > 0 && one.address == address && now - one.latest < forgiven) return one;
    if (one.count == 0 || (quietest->count > 0 && one.latest < quietest->latest)) quietest = &one;
  }
  *quietest = {.address = address, .since = now, .count = 0, .next = shortest};
  return *quietest;
}

std::optional<Time> Guesses::wrong(const Eid& address, Time now) {
  Suspect& one = suspect(address, now);
  if (now - one.since >= std::chrono::seconds(1)) {
    one.since = now;
    one.count = 0;
  }
  ++one.count;
  one.latest = now;
  // A peer that returns as another incarnation is remembered by its address.
  if (one.count <= most_in_a_second && now >= one.until) return std::nullopt;
  one.until = now + one.next;
  one.next = std::min(2 * one.next, longest);
  one.latest = one.until;
  return one.until;
}

bool Guesses::ignores(const Eid& address, Time now) const {
  return std::ranges::any_of(suspects_, [&](const Suspect& one) {
    return one.count > 0 && one.address == address && now < one.until;
  });
}

}  // namespace urma::jetty
