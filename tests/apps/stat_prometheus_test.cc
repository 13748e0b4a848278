// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "apps/urma_stat/prometheus.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using apps::stat::Look;
using apps::stat::prometheus_text;

Look look_at(std::vector<ObservedChannel> channels, uint64_t more) {
  Look look;
  apps::stat::Row& row = look.rows.emplace_back();
  row.device.pid = 4711;
  row.device.uid = geteuid();
  row.channel_rates.resize(channels.size());
  row.device.channels = ObservedChannels{std::move(channels), more};
  return look;
}

ObservedChannel channel(const std::string& peer, const std::string& state) {
  ObservedChannel out;
  out.peer = peer;
  out.state = state;
  return out;
}

// Returns the value of the only line that contains all of these parts; empty if there is none.
std::string value(const std::string& text, const std::vector<std::string>& parts) {
  std::string found;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    bool all = line[0] != '#';
    for (const std::string& part : parts) all = all && line.find(part) != line.npos;
    if (!all) continue;
    CHECK(found.empty());
    found = line.substr(line.rfind(' ') + 1);
  }
  return found;
}

TEST_CASE("a channel that carries nothing says in which state it is") {
  const std::string text = prometheus_text(look_at(
      {channel("A", "up"), channel("B", "silent"), channel("C", "lost"), channel("D", "odd")}, 0));
  for (const auto& [peer, state] : {std::pair("A", "up"), std::pair("B", "silent"),
                                    std::pair("C", "lost"), std::pair("D", "odd")}) {
    const std::string label = "peer=\"" + std::string(peer) + '"';
    CHECK(value(text, {"urma_channel_up{", label}) == (state == std::string("up") ? "1" : "0"));
    for (const std::string one : {"up", "silent", "lost"}) {
      CHECK(value(text, {"urma_channel_state{", label, "state=\"" + one + '"'}) ==
            (one == state ? "1" : "0"));
    }
  }
  CHECK(value(text, {"urma_channel_state{", "state=\"odd\""}) == "1");
}

TEST_CASE("channels that are left out are counted") {
  const std::string text =
      prometheus_text(look_at({channel("A", "up"), channel("A", "lost"), channel("B", "up")}, 3));
  // A second channel with the same labels would make the whole text invalid.
  CHECK(value(text, {"urma_device_channels_left_out{"}) == "4");
  CHECK(value(text, {"urma_channel_up{", "peer=\"A\""}) == "1");
}

TEST_CASE("other users cannot crowd out this user's devices, however large their pages are") {
  Look look;
  for (int i = 0; i < 30; ++i) {
    apps::stat::Row& row = look.rows.emplace_back();
    row.device.uid = geteuid() + 1;
    row.device.pid = static_cast<uint64_t>(i);
    row.device.device.assign(1000, 'x');
    for (int metric = 0; metric < 100; ++metric) {
      row.device.metrics.push_back({.name = "m" + std::to_string(metric),
                                    .unit = "",
                                    .window = "now",
                                    .part = "",
                                    .meaning = ""});
    }
  }
  look.rows.push_back(look_at({}, 0).rows[0]);
  look.unread = 5;
  const std::string text = prometheus_text(look, 500'000);
  CHECK(text.size() < 700'000);
  CHECK(std::stoul(value(text, {"urma_devices_left_out "})) > 10);
  CHECK(value(text, {"urma_devices "}) == "31");
  CHECK(value(text, {"urma_pages_left_out "}) == "5");
  CHECK_FALSE(value(text, {"urma_device_opened_seconds{", "pid=\"4711\""}).empty());
}

}  // namespace
}  // namespace urma::test
