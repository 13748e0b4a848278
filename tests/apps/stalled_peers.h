// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/common/dialogue.h"
#include "apps/common/failure.h"
#include "tests/catch.h"

namespace urma::test {

// Fills what a service keeps for `stalled` peers, which post no buffers and so take no message, and
// checks that another peer still gets its message. `options_of` is called with the completion queue
// of the service.
template <class OptionsOf>
void check_that_stalled_peers_do_not_stall_another(const std::string& network, size_t stalled,
                                                   OptionsOf options_of) {
  using namespace std::chrono_literals;
  struct StalledPeer {
    Device device;
    Jetty jetty;
    RemoteJetty to;
  };
  Device device = urma::open(network).value();
  Jfc completions = device.jfc(1 << 14).value();
  apps::Dialogue service(device, options_of(completions));
  const apps::Message message{.id = 1, .type = "welcome", .body = nullptr};
  std::vector<StalledPeer> peers;
  while (peers.size() < stalled) {
    Device own = urma::open(network).value();
    Jetty jetty = own.jetty({.receives = 4}).value();
    const RemoteJetty to = device.import(jetty.descriptor()).value().jetty;
    peers.push_back({std::move(own), std::move(jetty), to});
    REQUIRE_THROWS_AS(
        [&] {
          for (int i = 0; i < 1000; ++i) service.send(to, message);
        }(),
        apps::Failure);
  }
  Device other = urma::open(network).value();
  apps::Dialogue client(other, {.wording = service.wording()});
  service.send(device.import(client.jetty().descriptor()).value().jetty, message);
  bool answered = false;
  while (!answered) {
    for (const Completion& completion : completions.wait(5ms)) {
      REQUIRE(completion.ok());  // no message to a stalled peer has timed out yet
      service.handle(completion);
    }
    for (const Completion& completion : client.jetty().wait(5ms)) {
      answered = client.handle(completion).has_value() || answered;
    }
  }
  CHECK(answered);
}

}  // namespace urma::test
