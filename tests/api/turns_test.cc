// SPDX-License-Identifier: Apache-2.0
// Ordered messages that arrive before their turn, because an older one found no receive.
#include <vector>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Messages behind one that found no receive are repeated less often than that one. Otherwise the
// target would spend its time refusing them.
TEST_CASE("ordered messages that wait for receives are repeated when their turn comes") {
  constexpr size_t outstanding = 512;
  constexpr size_t receives = 32;
  constexpr size_t messages = 4000;
  for (const std::string_view driver : media) {
    INFO(driver);
    UserAndOwner both(driver);
    Jetty target = both.owner.device.jetty({.berths = 1, .receives = receives}).value();
    Jetty sender =
        both.user.device
            .jetty({.berths = outstanding + 1, .receiver_timeout = Duration::max(), .chain = true})
            .value();
    const RemoteJetty to = both.user.device.import(target.descriptor()).value().jetty;
    std::array<std::byte, 8> bytes{};
    for (size_t i = 0; i < receives; ++i) REQUIRE(target.receive(bytes, 0));
    std::array<Completion, 16> out;
    size_t posted = 0;
    size_t arrived = 0;
    size_t ended = 0;
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (ended < messages && std::chrono::steady_clock::now() < until) {
      Work message = send(std::span(bytes), to).immediate(posted);
      message.strong();
      while (posted < messages && sender.post(message) == 1) message.immediate(++posted);
      for (const Completion& one : std::span(out).first(target.poll(out))) {
        REQUIRE(one.immediate == arrived++);
        REQUIRE(target.receive(bytes, 0));
      }
      ended += sender.poll(out);
    }
    REQUIRE(ended == messages);
    const Statistics stats = both.user.device.stats().value();
    INFO(stats.retries << " repeated");
    CHECK(stats.retries < 16 * messages);
  }
}

}  // namespace
}  // namespace urma::test
