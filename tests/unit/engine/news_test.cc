// SPDX-License-Identifier: Apache-2.0
#include "engine/news.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::all_news;
using engine::NewsKind;
using engine::Snapshot;

// Returns a snapshot in which each event has happened this often.
Snapshot everything(uint64_t times) {
  Snapshot out;
  for (const Metric& metric : all_metrics()) out.counts.*metric.value = times;
  const transport::PeerNews::Of often = {times, parse_endpoint("10.0.0.5:4792").value()};
  for (auto* of : {&out.peers.made, &out.peers.silent, &out.peers.path_lost, &out.peers.path_back,
                   &out.peers.path_added, &out.peers.path_removed}) {
    *of = often;
  }
  out.peers.down.fill(often);
  out.send_failure = EMSGSIZE;
  return out;
}

TEST_CASE("each piece of news is one line, with a count, and a fix for problems") {
  const Snapshot now = everything(7);
  std::set<std::string_view> names;
  for (const NewsKind& kind : all_news()) {
    INFO(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(std::ranges::find(log_layers, kind.layer) != log_layers.end());
    CHECK(kind.count(Snapshot{}) == 0);
    CHECK(kind.count(now) == 7);
    for (const uint64_t count : {1, 7}) {
      const std::string text = kind.text(now, count);
      CHECK(text.find('\n') == text.npos);
      CHECK(mentions(text, "Fix: ") == (kind.level < LogLevel::info));
      CHECK((count == 1 || mentions(text, "7 ")));
      CHECK((count != 1 || !mentions(text, "7 ")));
    }
  }
  CHECK(names.contains("peer_restarted"));
}

TEST_CASE("news says why a port does not send, if the port knows that better than the system") {
  Snapshot now = everything(3);
  now.send_failure_text = "the switch is full. Fix: another one";
  for (const NewsKind& kind : all_news()) {
    if (kind.name != "send_failed") continue;
    CHECK(kind.text(now, 3) == "3 frames were not forwarded: the switch is full. Fix: another one");
  }
}

TEST_CASE("news names the peer and the error of the system") {
  const Snapshot now = everything(3);
  for (const NewsKind& kind : all_news()) {
    const std::string text = kind.text(now, 3);
    if (kind.name.starts_with("peer_") || kind.name.starts_with("channel_")) {
      CHECK(mentions(text, "10.0.0.5"));
    }
    if (kind.name == "send_failed") CHECK(mentions(text, "Message too long"));
  }
}

}  // namespace
}  // namespace urma::test
