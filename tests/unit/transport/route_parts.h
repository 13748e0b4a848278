// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/rtp/routes.h"

// Shared by the tests of the parts of `Routes`.

namespace urma::test {

using namespace std::chrono_literals;

inline Endpoint address(uint8_t net, uint8_t host) { return {ipv4(10, 0, net, host), ub_port}; }

// Returns a list of addresses of which the n-th is in the n-th network.
inline PathList addresses(uint8_t count, uint8_t host) {
  PathList out;
  for (uint8_t i = 0; i < count; ++i) out.set(i, address(i, host));
  return out;
}

inline Time moment(Duration since) { return Time{} + 1s + since; }

// Answers each question that is due until `until`, except those on the routes in `silent`.
inline void ask(transport::RouteHealth& health, Duration from, Duration until, uint8_t silent = 0) {
  for (Duration now = from; now < until; now += 1ms) {
    health.used(moment(now));
    uint64_t nonce = static_cast<uint64_t>(now.count()) + 1;
    while (const auto question = health.question(moment(now), nonce++)) {
      if ((silent >> question->route & 1) == 0) {
        health.answered(question->route, question->nonce, moment(now + 100us));
      }
    }
  }
}
inline void ask(transport::Routes& routes, Duration from, Duration until, uint8_t silent = 0) {
  ask(routes.health(), from, until, silent);
}

// A table of this many routes. The n-th leads from the n-th address here to the peer's n-th
// address.
struct TableOf {
  explicit TableOf(uint8_t count) {
    table.lead(addresses(count, 1), addresses(count, 2), Time{}, moment(0s));
  }

  transport::RouteTable table{nullptr};
};

}  // namespace urma::test
