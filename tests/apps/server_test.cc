// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/server.h"

#include "apps/urma_notify/capacity.h"
#include "tests/apps/stalled_peers.h"

namespace urma::apps {
namespace {

TEST_CASE("a client gets its answer, though all other clients of the server are stalled") {
  test::check_that_stalled_peers_do_not_stall_another(
      "sim:server-stalled", perf::Server::most_clients - 1,
      [](Jfc& completions) { return perf::Server::dialogue_options(completions); });
}

TEST_CASE("a sender gets its answer, though all other senders of a receiver are stalled") {
  const Wording wording{.program = "urma_notify", .most_bytes = 32 * 1024};
  test::check_that_stalled_peers_do_not_stall_another(
      "sim:receiver-stalled", notify::most_transfers - 1,
      [&](Jfc& completions) { return notify::receiver_options(wording, &completions); });
}

}  // namespace
}  // namespace urma::apps
