// What one peer may take from others: their EIDs, their room, their memory.

#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/sim/pair.h"
#include "tests/sim/stranger.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

Status status_of(Jetty& jetty, const Work& work, Duration limit = 5s) {
  REQUIRE(jetty.post({&work, 1}) == 1);
  const auto completions = jetty.wait(limit);
  REQUIRE(completions.size() == 1);
  return completions[0].status;
}

Eid address(const std::string& text) { return parse_address(text).value(); }

TEST_CASE("an EID that is an address is had by nobody at another address") {
  SimHosts hosts("claimed-address");
  auto server = hosts.start();
  auto victim = hosts.start("address=2001:db8::2");
  const Imported target = victim.device.import(server.line).value();
  const auto bytes = some_bytes(100);
  REQUIRE(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);

  Stranger thief(hosts, "2001:db8::66", address("2001:db8::2"));
  CHECK_FALSE(thief.connect(server.device.endpoint()));
  Stranger itself(hosts, "2001:db8::67");
  CHECK(itself.connect(server.device.endpoint()));
  CHECK(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);
  const Statistics statistics = server.device.statistics().value();
  CHECK(statistics.peers == 3);  // itself, the victim, and who came as itself
  CHECK(victim.device.statistics().value().channels_made == 1);
}

TEST_CASE("a drawn EID with a living channel is had by nobody else, even if that channel is idle") {
  SimHosts hosts("claimed-draw");
  auto server = hosts.start();
  auto victim = hosts.start("address=fd77::1:0:1");
  const Imported target = victim.device.import(server.line).value();
  const auto bytes = some_bytes(100);
  REQUIRE(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);

  Stranger thief(hosts, "2001:db8::66", address("fd77::1:0:1"));
  for (const Duration silence : {1ms, 1500ms, 5000ms}) {
    hosts.run_for(silence);
    CHECK_FALSE(thief.connect(server.device.endpoint()));
  }
  CHECK(status_of(victim.jetty, write(bytes, target.segment)) == Status::ok);
  CHECK(victim.device.statistics().value().channels_made == 1);

  // Who has gone has nothing to lose: the same process may have moved.
  hosts.kill(std::move(victim));
  CHECK_FALSE(thief.connect(server.device.endpoint()));
  hosts.run_for(1100ms);
  CHECK(thief.connect(server.device.endpoint()));
}

}  // namespace
}  // namespace urma::test
