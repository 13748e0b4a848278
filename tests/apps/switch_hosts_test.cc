// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/hosts.h"

#include "base/prng.h"
#include "tests/apps/switch_parts.h"

namespace urma::test {
namespace {

using apps::switches::Hosts;

constexpr Time beginning{1s};

Hosts hosts_with(uint32_t ports) { return Hosts({.ports = ports, .lease = 5s, .key = {1, 2}}); }

// Attaches as a device does: it returns the cookie.
Hosts::Outcome attach_host(Hosts& hosts, const FakeDevice& device, Time now = beginning) {
  const auto first = hosts.handle(device.asks(), device.at, now);
  REQUIRE(first.answer);
  if (first.answer->type != LinkMessage::challenge) return first;
  return hosts.handle(device.asks(first.answer->cookie), device.at, now);
}

void check_refused(const Hosts::Outcome& outcome, LinkRefusal why) {
  REQUIRE(outcome.answer);
  CHECK(outcome.answer->type == LinkMessage::refused);
  CHECK(outcome.answer->refusal == why);
  CHECK(outcome.opened == Hosts::none);
  CHECK(outcome.closed == Hosts::none);
}

TEST_CASE("a device gets a port and its CNA only after it has returned the cookie") {
  Hosts hosts = hosts_with(2);
  const FakeDevice device{host_at(1), 7};
  const auto challenge = hosts.handle(device.asks(), device.at, beginning);
  REQUIRE(challenge.answer);
  CHECK(challenge.answer->type == LinkMessage::challenge);
  CHECK(challenge.opened == Hosts::none);
  const uint64_t cookie = challenge.answer->cookie;
  // The cookie of another address, of another opening, or a guess.
  CHECK(hosts.handle(device.asks(cookie), host_at(2), beginning).opened == Hosts::none);
  CHECK(hosts.handle(device.asks(cookie), host_at(1, 5), beginning).opened == Hosts::none);
  CHECK(hosts.handle(device.asks(cookie + 2), device.at, beginning).opened == Hosts::none);
  const FakeDevice other{host_at(1), 7, 2};
  CHECK(hosts.handle(other.asks(cookie), other.at, beginning).opened == Hosts::none);
  CHECK(hosts.devices() == 0);

  const auto attached = hosts.handle(device.asks(cookie), device.at, beginning);
  REQUIRE(attached.answer);
  CHECK(attached.answer->type == LinkMessage::attached);
  CHECK(attached.answer->cna == 7);
  CHECK(attached.answer->lease_ms == 5000);
  CHECK(attached.answer->nonce == device.nonce);
  CHECK(attached.opened == 0);
  CHECK(hosts.port_of(device.at) == 0);
  CHECK(hosts.counters().challenged == 5);
}

TEST_CASE("a device learns how the ports of its switch meter, also when it asks again") {
  using congestion::Metering;
  for (const Metering metering : {Metering::none, Metering::increases, Metering::rates}) {
    Hosts hosts({.ports = 2, .metering = metering, .key = {1, 2}});
    const FakeDevice device{host_at(1), 7};
    const auto attached = attach_host(hosts, device);
    CHECK(metering_of(*attached.answer) == metering);
    const auto again = hosts.handle(device.asks(), device.at, beginning + 1s);
    CHECK(again.answer->type == LinkMessage::attached);
    CHECK(metering_of(*again.answer) == metering);
  }
}

TEST_CASE("a CNA that is claimed twice stays with the first device, and the claim is counted") {
  Hosts hosts = hosts_with(4);
  attach_host(hosts, {host_at(1), 7});
  check_refused(attach_host(hosts, {host_at(2), 7}), LinkRefusal::taken);
  CHECK(hosts.counters().refused_taken == 1);
  CHECK(hosts.host(0).at == host_at(1));
  // Also for one that is attached with another CNA, which it keeps.
  attach_host(hosts, {host_at(2), 8});
  check_refused(attach_host(hosts, {host_at(2), 7}), LinkRefusal::taken);
  CHECK(hosts.host(hosts.port_of(host_at(2))).cna == 8);
}

TEST_CASE("when all ports are in use, further devices are refused until one leaves") {
  Hosts hosts = hosts_with(1);
  const FakeDevice first{host_at(1), 1};
  attach_host(hosts, first);
  check_refused(attach_host(hosts, {host_at(2)}), LinkRefusal::no_port);
  CHECK(hosts.counters().refused_full == 1);
  CHECK(hosts.handle(first.leaves(), first.at, beginning).closed == 0);
  CHECK(attach_host(hosts, {host_at(2)}).opened == 0);
}

TEST_CASE("only the device itself can give its CNA back") {
  Hosts hosts = hosts_with(2);
  const FakeDevice device{host_at(1), 7, 5};
  attach_host(hosts, device);
  CHECK(hosts.handle(device.leaves(), host_at(2), beginning).closed == Hosts::none);
  const FakeDevice forger{host_at(1), 7, 6};
  CHECK(hosts.handle(forger.leaves(), forger.at, beginning).closed == Hosts::none);
  CHECK(hosts.devices() == 1);
  CHECK(hosts.handle(device.leaves(), device.at, beginning).closed == 0);
  CHECK(hosts.devices() == 0);
}

TEST_CASE("a lease ends unless the device asks again, which needs no cookie") {
  Hosts hosts = hosts_with(2);
  const FakeDevice quiet{host_at(1), 1}, lively{host_at(2), 2};
  attach_host(hosts, quiet);
  attach_host(hosts, lively);
  CHECK(hosts.age(beginning + 4s) == Hosts::none);
  const auto renewed = hosts.handle(lively.asks(), lively.at, beginning + 4s);
  REQUIRE(renewed.answer);
  CHECK(renewed.answer->type == LinkMessage::attached);
  CHECK(renewed.opened == Hosts::none);
  CHECK(hosts.age(beginning + 5s) == 0);
  CHECK(hosts.age(beginning + 5s) == Hosts::none);
  CHECK(hosts.counters().aged_out == 1);
  CHECK(hosts.port_of(quiet.at) == Hosts::none);
  // Its CNA is free.
  CHECK(attach_host(hosts, {host_at(3), 1}, beginning + 5s).opened == 0);
}

TEST_CASE("another opening at the same address takes the place of the one before") {
  Hosts hosts = hosts_with(2);
  attach_host(hosts, {host_at(1), 7, 1});
  const auto outcome = attach_host(hosts, {host_at(1), 7, 2});
  CHECK(outcome.closed == 0);
  CHECK(outcome.opened == 0);
  CHECK(outcome.answer->type == LinkMessage::attached);
  CHECK(hosts.devices() == 1);
  CHECK(hosts.host(0).nonce == 2);
}

TEST_CASE("the CNA that the switch chooses is free, and the same again after a restart") {
  Hosts hosts = hosts_with(300), restarted = hosts_with(300);
  std::vector<uint32_t> given;
  for (uint8_t i = 0; i < 200; ++i) {
    given.push_back(attach_host(hosts, {host_at(i)}).answer->cna);
    CHECK(given.back() >= 0x10000);
    CHECK(given.back() <= most_cna);
  }
  for (uint8_t i = 200; i-- > 0;) {
    CHECK(attach_host(restarted, {host_at(i)}).answer->cna == given[i]);
  }
  std::sort(given.begin(), given.end());
  CHECK(std::adjacent_find(given.begin(), given.end()) == given.end());
}

TEST_CASE("a switch gives and accepts only the CNAs that it was given") {
  Hosts hosts({.ports = 8, .first_cna = 100, .last_cna = 103, .key = {1, 2}});
  check_refused(attach_host(hosts, {host_at(1), 99}), LinkRefusal::elsewhere);
  check_refused(attach_host(hosts, {host_at(1), 104}), LinkRefusal::elsewhere);
  CHECK(hosts.counters().refused_elsewhere == 2);
  std::vector<uint32_t> given{attach_host(hosts, {host_at(1), 101}).answer->cna};
  for (uint8_t i = 2; i <= 4; ++i) given.push_back(attach_host(hosts, {host_at(i)}).answer->cna);
  std::sort(given.begin(), given.end());
  CHECK(given == std::vector<uint32_t>{100, 101, 102, 103});
  check_refused(attach_host(hosts, {host_at(5)}), LinkRefusal::no_port);
}

TEST_CASE("if the CNAs that a switch prefers to choose are in use, it chooses others") {
  Hosts hosts({.ports = 8, .first_cna = 0xfffe, .last_cna = 0x10001, .key = {1, 2}});
  std::vector<uint32_t> given;
  for (uint8_t i = 1; i <= 4; ++i) given.push_back(attach_host(hosts, {host_at(i)}).answer->cna);
  CHECK(given[0] >= 0x10000);
  CHECK(given[1] >= 0x10000);
  std::sort(given.begin(), given.end());
  CHECK(given == std::vector<uint32_t>{0xfffe, 0xffff, 0x10000, 0x10001});
  // A new incarnation of the device that has the CNA 0xfffe, or any other, gets a port again.
  for (uint8_t i = 1; i <= 4; ++i) {
    const auto again = attach_host(hosts, {host_at(i), 0, 77});
    CHECK(again.answer->type == LinkMessage::attached);
    CHECK(again.closed == again.opened);
  }
}

// A model: whatever arrives, no two ports have one address or one CNA, and the caller is told of
// each port that opens or closes.
TEST_CASE("after any messages each attached device has an address and a CNA of its own") {
  Prng prng(1);
  Hosts hosts(
      {.ports = 8, .last_cna = GENERATE(as<uint32_t>{}, most_cna, 6), .lease = 5s, .key = {1, 2}});
  std::vector<bool> open(hosts.ports());
  const auto note = [&](const Hosts::Outcome& outcome) {
    if (outcome.closed != Hosts::none) open[outcome.closed] = false;
    if (outcome.opened != Hosts::none) open[outcome.opened] = true;
  };
  Time now = beginning;
  for (int round = 0; round < 20'000; ++round) {
    now += 1ms * static_cast<int>(prng.below(1000));
    for (uint32_t port; (port = hosts.age(now)) != Hosts::none;) open[port] = false;
    const FakeDevice device{host_at(static_cast<uint8_t>(prng.below(12))),
                            static_cast<uint32_t>(prng.below(10)), prng.below(3)};
    if (prng.chance(0.3)) {
      note(hosts.handle(device.leaves(), device.at, now));
    } else {
      note(attach_host(hosts, device, now));
    }
    uint32_t used = 0;
    std::vector<uint32_t> cnas;
    for (uint32_t port = 0; port < hosts.ports(); ++port) {
      const Hosts::Host& host = hosts.host(port);
      REQUIRE(open[port] == (host.cna != 0));
      if (host.cna == 0) continue;
      ++used;
      cnas.push_back(host.cna);
      REQUIRE(hosts.port_of(host.at) == port);
    }
    REQUIRE(used == hosts.devices());
    std::sort(cnas.begin(), cnas.end());
    REQUIRE(std::adjacent_find(cnas.begin(), cnas.end()) == cnas.end());
  }
  CHECK(hosts.counters().refused_full > 0);
  CHECK(hosts.counters().refused_taken > 0);
  CHECK(hosts.counters().aged_out > 0);
}

}  // namespace
}  // namespace urma::test
