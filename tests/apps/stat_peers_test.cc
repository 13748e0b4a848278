// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "apps/urma_stat/peers.h"
#include "apps/urma_stat/text.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using apps::stat::Look;
using apps::stat::peers_table;

ObservedChannel busy_channel(const std::string& peer) {
  return {.peer = peer,
          .from = "10.0.0.1:4792",
          .state = "up",
          .congestion = "caqm_r",
          .why = "",
          .rtt = 123us,
          .least_rtt = 45us,
          .age = 2h,
          .unheard = 1ms,
          .window_bytes = 1 << 20,
          .inflight_bytes = 65536,
          .bytes_per_second = 1'000'000'000,
          .sent = {},
          .lost = {},
          .retransmitted = 123,
          .spurious = 45,
          .not_ready = 6,
          .acknowledged_bytes = uint64_t{1} << 40};
}

ObservedChannel idle_channel() {
  ObservedChannel channel = busy_channel("10.0.0.2:4792");
  channel.unheard = 1min;
  channel.inflight_bytes = channel.retransmitted = channel.spurious = channel.not_ready = 0;
  return channel;
}

Look look_at(std::vector<ObservedChannel> channels, std::optional<double> rate) {
  Look look;
  apps::stat::Row& row = look.rows.emplace_back();
  row.device.pid = 4711;
  row.device.uid = geteuid();
  row.device.process = "service";
  row.device.device = "udp:10.0.0.1";
  row.channel_rates.assign(channels.size(), rate);
  row.device.channels = ObservedChannels{std::move(channels), 0};
  return look;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a channel is idle if it is up, and has no figure that is not 0") {
  const Look idle = look_at({idle_channel()}, 0);
  CHECK(peers_table(idle) == "1 row is not shown, because it is idle; --all shows it\n");
  CHECK(contains(peers_table(idle, {.room = {}, .all = true}), "10.0.0.2:4792"));
  CHECK_FALSE(contains(peers_table(idle, {.room = {}, .all = true}), "--all"));

  CHECK(contains(peers_table(look_at({idle_channel()}, 1)), "10.0.0.2:4792"));
  for (const auto figure :
       {&ObservedChannel::inflight_bytes, &ObservedChannel::lost, &ObservedChannel::retransmitted,
        &ObservedChannel::spurious, &ObservedChannel::not_ready}) {
    ObservedChannel channel = idle_channel();
    channel.*figure = 1;
    CHECK(contains(peers_table(look_at({channel}, 0)), "10.0.0.2:4792"));
  }
  ObservedChannel silent = idle_channel(), heard = idle_channel();
  silent.state = "silent";
  heard.unheard = 4s;
  const std::string both = peers_table(look_at({silent, heard, idle_channel(), idle_channel()}, 0));
  CHECK(contains(both, "silent"));
  CHECK(contains(both, "2 rows are not shown, because they are idle; --all shows them"));
}

TEST_CASE("without a limit each row is complete; 80 columns have what tells a channel's state") {
  const Look look = look_at({busy_channel("10.1.2.3:4792"), busy_channel("10.1.2.4:4801")}, 2e9);
  const std::string wide = peers_table(look);
  CHECK(contains(wide, "\n4711 udp:10.0.0.1 10.1.2.3:4792 up    caqm_r 2.00G"));
  CHECK(contains(wide, "123us    45.0us"));
  const std::string narrow = peers_table(look, {.room = 80});
  CHECK(contains(narrow, "4711 service, udp:10.0.0.1\n10.1.2.3 "));
  CHECK(contains(narrow, "\n10.1.2.4:4801 "));
  const std::string titles = narrow.substr(0, narrow.find('\n'));
  for (const char* const name : {"peer", "state", "rate", "window", "flight", "rtt", "least",
                                 "resent", "spur", "rnr", "age"}) {
    CHECK(contains(titles, name));
  }
  CHECK(contains(narrow, "too narrow for: "));
  for (size_t room = 40; room < 200; ++room) {
    const std::string text = peers_table(look, {.room = room});
    CHECK(std::min(text.find('\n'), text.size()) <= room);
  }
}

TEST_CASE("addresses do not take the room of what tells a channel's state") {
  // A window's address has its number, which says nothing here, and the slot.
  const Look look = look_at({busy_channel("[fd75:726d:61b3:312d:14de:4a4d:5100:2a]:4792"),
                             busy_channel("[2001:db8:1234:5678:9abc:def0:1234:5678]:4801")},
                            2e9);
  CHECK(contains(peers_table(look), "[fd75:726d:61b3:312d:14de:4a4d:5100:2a]:4792"));
  const std::string narrow = peers_table(look, {.room = 80});
  CHECK(contains(narrow, "\nslot 42 "));
  CHECK(contains(narrow, "\n[2001:~:5678]:4801 "));
  for (const char* const name : {"rate", "window", "flight", "rtt", "resent"}) {
    CHECK(contains(narrow.substr(0, narrow.find('\n')), name));
  }
}

TEST_CASE("notes below the table are as wide as the terminal") {
  ObservedChannel channel = busy_channel("10.0.0.2:4792");
  channel.why =
      "it needs switches that grant increases, and a reason may be long: " + std::string(100, 'x') +
      " end";
  const std::string narrow = peers_table(look_at({channel}, 1), {.room = 60});
  CHECK(contains(narrow, "\n* caqm_r instead of "));
  CHECK(contains(narrow, "\n  end\n"));  // a long word has a line of its own
  for (size_t at = 0; at < narrow.size(); at = narrow.find('\n', at) + 1) {
    const size_t length = narrow.find('\n', at) - at;
    CHECK((length <= 60 || narrow[at + 2] == 'x'));
  }
  CHECK(contains(peers_table(look_at({channel}, 1)), channel.why + '\n'));
}

TEST_CASE("the counters of a process fit a narrow terminal") {
  Look look;
  apps::stat::Row& row = look.rows.emplace_back();
  row.device.description = "socket " + std::string(60, 'd') + " and more";
  row.device.metrics.push_back({.name = "works",
                                .unit = "works",
                                .window = "since open",
                                .part = "own",
                                .meaning = "Works that the device has taken from Jetties."});
  row.device.metrics.back().value = 12;
  const std::string wide = apps::stat::details(look, false, false);
  CHECK(
      contains(wide, "12 works       since open  Works that the device has taken from Jetties.\n"));
  const std::string narrow = apps::stat::details(look, false, false, 80);
  CHECK_FALSE(contains(narrow, "since open"));
  CHECK(contains(narrow, "12 works       Works that the device has\n"));
  CHECK(contains(narrow, "\n" + std::string(54, ' ') + "taken from"));
  for (size_t at = 0; at < narrow.size(); at = narrow.find('\n', at) + 1) {
    CHECK(narrow.find('\n', at) - at <= 80);
  }
}

TEST_CASE("a table that is narrow gives the room that is left to names") {
  Look look;
  apps::stat::Row& row = look.rows.emplace_back();
  row.device.pid = 4711;
  row.device.uid = geteuid();
  row.device.process = "a_service";
  row.device.device = "udp:10.0.0.1?mtu=4096&gso=no";
  for (size_t room = 40; room < 200; ++room) {
    const std::string text = apps::stat::table(look, true, room);
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      CHECK(text.find('\n', at) - at <= room);
    }
    if (room >= 85) CHECK((contains(text, "4711 a_service ") && contains(text, " udp:10.")));
    if (room >= 101) CHECK(contains(text, " udp:10.0.0.1?mtu=4096&gso=no "));
  }
}

}  // namespace
}  // namespace urma::test
