#include "apps/urma_perf/server.h"

#include <vector>

#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

using namespace std::chrono_literals;

// A client that posts no buffers, so it takes no message.
struct StalledClient {
  explicit StalledClient(Device& server)
      : device(urma::open("sim:server-stalled").value()),
        jetty(device.jetty({.receives = 4}).value()),
        to(server.import(jetty.descriptor()).value().jetty) {}
  Device device;
  Jetty jetty;
  RemoteJetty to;
};

TEST_CASE("a client gets its answer, though all other clients of the server are stalled") {
  Device device = urma::open("sim:server-stalled").value();
  Jfc completions = device.jfc(4096).value();
  Dialogue server(device, Server::dialogue_options(completions));
  const Message message{.id = 1, .type = "welcome", .body = nullptr};
  std::vector<std::unique_ptr<StalledClient>> stalled;
  while (stalled.size() + 1 < Server::most_clients) {
    const auto& client = stalled.emplace_back(std::make_unique<StalledClient>(device));
    REQUIRE_THROWS_AS(
        [&] {
          for (int i = 0; i < 1000; ++i) server.send(client->to, message);
        }(),
        Failure);
  }
  Device other = urma::open("sim:server-stalled").value();
  Dialogue client(other, {.wording = server.wording()});
  server.send(device.import(client.jetty().descriptor()).value().jetty, message);
  bool answered = false;
  while (!answered) {
    for (const Completion& completion : completions.wait(5ms)) {
      REQUIRE(completion.ok());  // no message to a stalled client has timed out yet
      server.handle(completion);
    }
    for (const Completion& completion : client.jetty().wait(5ms)) {
      answered = client.handle(completion).has_value() || answered;
    }
  }
  CHECK(answered);
}

}  // namespace
}  // namespace urma::apps::perf
