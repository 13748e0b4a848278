// SPDX-License-Identifier: Apache-2.0
// How a mode of retransmission is chosen for a device or for a peer, and that each mode delivers.

#include <set>

#include "tests/catch.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

// Writes over a bad wire. Checks that the peer's memory has the data, and how much was sent again.
void write_megabyte(SimHosts& hosts, SimHosts::Host& from, SimHosts::Host& to,
                    const Imported& target) {
  const auto bytes = bytes_like(1'000'000);
  REQUIRE(status_of(from.jetty, write(bytes, target.segment), 60s) == Status::ok);
  CHECK(same(bytes, std::span(to.memory).first(bytes.size())));
  hosts.run_for(1ms);
}

const std::string& error_of(const Result<Device>& opened) {
  REQUIRE_FALSE(opened);
  CHECK(opened.error().status == Status::invalid_argument);
  return opened.error().message;
}

TEST_CASE("each mode delivers over a wire that loses, duplicates and corrupts in both directions") {
  for (const NamedRetransmission& named : named_retransmissions()) {
    INFO(named.name);
    SimHosts hosts("mode-" + std::string(named.name));
    auto here =
        hosts.start("", {.berths = 64}, {.operation_timeout = 30s, .retransmission = named.mode});
    auto there = hosts.start("retransmit=" + std::string(named.name));
    CHECK(here.device.description().find(named.name) != std::string::npos);
    CHECK(there.device.description().find(named.name) != std::string::npos);
    const Imported target = here.device.import(there.line).value();
    const auto bytes = bytes_like(100);
    REQUIRE(status_of(here.jetty, write(bytes, target.segment), 1s) == Status::ok);
    hosts.network().faults.impairment = {
        .loss = 0.02, .duplicate = 0.01, .corrupt = 0.01, .delay = 10us};
    write_megabyte(hosts, here, there, target);
    CHECK(here.device.stats().value().retransmitted > 0);
    std::vector<std::byte> back(500'000);
    REQUIRE(status_of(here.jetty, read(back, target.segment), 60s) == Status::ok);
    CHECK(same(back, std::span(there.memory).first(back.size())));
  }
}

TEST_CASE("a mode given to import applies to that peer, and the device's mode to the others") {
  SimHosts hosts("mode-of-peer");
  auto here = hosts.start();
  auto one = hosts.start();
  auto other = hosts.start();
  // The behaviour of the peer as a receiver shows which mode it was asked for.
  const Imported timeout = here.device.import(one.line, {.retransmission = gbn_timeout}).value();
  const Imported usual = here.device.import(other.line).value();
  hosts.network().faults.impairment = {.loss = 0.05};
  write_megabyte(hosts, here, other, usual);
  const uint64_t of_rack = here.device.stats().value().retransmission_timeouts;
  write_megabyte(hosts, here, one, timeout);
  CHECK(here.device.stats().value().retransmission_timeouts > of_rack + 3);

  CHECK(timeout.warning.find("stops the channel for a time-out") != std::string::npos);
  CHECK(usual.warning.empty());
}

TEST_CASE("choosing another mode replaces the channel, and nothing executes twice") {
  SimHosts hosts("mode-late");
  auto here = hosts.start("", {.berths = 64, .receives = 4});
  auto there = hosts.start("", {.berths = 4, .receives = 64});
  const auto bytes = bytes_like(9000);
  // The other end has made the existing channel.
  const Imported back = there.device.import(here.line).value();
  REQUIRE(status_of(there.jetty, write(bytes, back.segment), 1s) == Status::ok);

  const Imported target = here.device.import(there.line).value();
  hosts.network().faults.impairment = {.loss = 0.02, .delay = 20us};
  std::vector<std::vector<std::byte>> inbox(64, std::vector<std::byte>(bytes.size()));
  for (const NamedRetransmission& named : named_retransmissions()) {
    INFO(named.name);
    const bool other = !(named.mode == sel_rack);  // the mode that the device has
    const uint64_t made = here.device.stats().value().channels_made;
    for (size_t i = 0; i < 20; ++i) REQUIRE(there.jetty.receive(inbox[i], i));
    REQUIRE(here.jetty.post(std::vector<Work>(10, send(bytes, target.jetty))) == 10);
    hosts.run_for(50us);
    CHECK(here.device.import(there.line, {.retransmission = named.mode}));
    CHECK(here.device.import(
        there.line,
        {.retransmission = named.mode}));  // choosing the same mode again changes nothing
    REQUIRE(here.jetty.post(std::vector<Work>(10, send(bytes, target.jetty))) == 10);
    for (size_t done = 0; done < 20;) {
      const auto completions = here.jetty.wait(10s);
      REQUIRE_FALSE(completions.empty());
      done += completions.size();
      for (const Completion& completion : completions) REQUIRE(completion.status == Status::ok);
    }
    hosts.run_for(100ms);  // the question may be lost
    CHECK(here.device.stats().value().channels_made == made + other);
    std::set<uint64_t> arrived;
    for (auto arrivals = there.jetty.wait(1ms); !arrivals.empty();
         arrivals = there.jetty.wait(1ms)) {
      for (const Completion& arrival : arrivals) REQUIRE(arrived.insert(arrival.tag).second);
    }
    CHECK(arrived.size() == 20);
  }
}

// UB 4.4.11
TEST_CASE("a mode that does not suit the medium is refused, or logged, with the reason") {
  const std::string sim = "sim:mode-wrong";
  for (const std::string many_paths : {"jitter=20us", "reorder=1%"}) {
    const std::string device = sim + "?" + many_paths;
    CHECK(error_of(open(device, {.retransmission = gbn_fast})).find("overtake") !=
          std::string::npos);
    const std::string fast = open(device + "&retransmit=sel-fast").value().description();
    CHECK(fast.find("warning: packets overtake") != std::string::npos);
    for (const auto& mode : {sel_rack, sel_timeout, gbn_timeout}) {
      CHECK(open(device, {.retransmission = mode}));
    }
  }
  CHECK(open(sim, {.retransmission = gbn_fast}));
  const std::string window = open("cxl:?retransmit=sel-fast").value().description();
  CHECK(window.find("warning: this medium loses nothing") != std::string::npos);
  CHECK(open(sim).value().description().find("retransmission sel-rack") != std::string::npos);
}

TEST_CASE("an invalid mode is refused, and the error names what is possible") {
  const std::string sim = "sim:mode-refused";
  CHECK(error_of(open(sim + "?retransmit=fast")).find("gbn-timeout") != std::string::npos);
  using Mode = Retransmission;
  for (const auto& [mode, why] : {
           std::pair(Mode{.scope = Mode::Scope::go_back_n}, "sel-rack"),
           {Mode{.keeps_out_of_order = false}, "keeps_out_of_order"},
           {Mode{.rto = Mode::Rto::fixed, .rto_base = 4s}, "4 us to 200 ms"},
           {Mode{.rto = Mode::Rto::doubled, .rto_base = 1us}, "4 us to 200 ms"},
           {Mode{.rto = Mode::Rto::doubled, .rto_exponent = 9, .rto_base = 1ms}, "0 to 8"},
           {Mode{.window_packets = 0}, "1 to 2048"},
           {Mode{.window_packets = 2049}, "1 to 2048"},
           {Mode{.bitmap_bits = 96}, "64, 128"},
           {Mode{.bitmap_bits = 2048}, "64, 128"},
           {Mode{.ack_packets = 0}, "1 to 1024"},
           {Mode{.ack_delay = 11ms}, "10 ms"},
       }) {
    INFO(why);
    CHECK(error_of(open(sim, {.retransmission = mode})).find(why) != std::string::npos);
  }
}

}  // namespace
}  // namespace urma::test
