// SPDX-License-Identifier: Apache-2.0
#include "engine/channel_slots.h"

#include <algorithm>
#include <cstring>

#include "engine/stats_page.h"
#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::ChannelSlots;
using engine::StatsPage;
using transport::ChannelView;

Endpoint channel_end(uint8_t host) { return {ipv4(10, 0, 0, host), ub_port}; }

// A channel all of whose values differ from those of any other number.
ChannelView channel_view(uint8_t number) {
  const uint64_t base = number * 1000;
  return {.from = channel_end(1),
          .to = channel_end(number),
          .path = 3,
          .congestion = "caqm_r",
          .rtt = Duration(base + 1),
          .least_rtt = Duration(base + 2),
          .age = Duration(base + 3),
          .unheard = Duration(base + 4),
          .window_bytes = base + 5,
          .inflight_bytes = base + 6,
          .bytes_per_second = base + 7,
          .sent = base + 8,
          .lost = base + 9,
          .retransmitted = base + 10,
          .spurious = base + 11,
          .not_ready = base + 12,
          .acknowledged_bytes = base + 13};
}

// The page of a device, as its process writes it.
struct ChannelsPage {
  explicit ChannelsPage(const ObservedDevice& facts = {}) : page(facts) {
    bytes.assign(page.bytes().begin(), page.bytes().end());
  }
  void write(std::span<const ChannelView> rows, uint32_t more = 0) {
    write(page.next_channels(rows, more));
  }
  void write(const StatsPage::Write& next) {
    std::copy(next.bytes.begin(), next.bytes.end(),
              bytes.begin() + static_cast<ptrdiff_t>(next.offset));
  }
  ObservedChannels read() const { return StatsPage::parse(bytes)->channels.value(); }

  StatsPage page;
  std::vector<std::byte> bytes;
};

TEST_CASE("a page has a row for each channel, with all that its process knows") {
  ChannelsPage page;
  CHECK(page.read().shown.empty());
  CHECK(page.read().more == 0);
  for (uint8_t number = 2; number < 6; ++number) {
    const ChannelView rows[] = {channel_view(number), channel_view(number + 1)};
    page.write(std::span(rows).first(number % 2 == 0 ? 2 : 1));
    const ObservedChannels seen = page.read();
    REQUIRE(seen.shown.size() == (number % 2 == 0 ? 2 : 1));
    const ObservedChannel& one = seen.shown[0];
    const int64_t base = number * 1000;
    CHECK(one.peer == to_string(channel_end(number)));
    CHECK(one.from == to_string(channel_end(1)));
    CHECK(one.path == 3);
    CHECK(one.state == "up");
    CHECK(one.congestion == "caqm_r");
    CHECK(one.why.empty());
    CHECK(one.rtt == Duration(base + 1));
    CHECK(one.least_rtt == Duration(base + 2));
    CHECK(one.age == Duration(base + 3));
    CHECK(one.unheard == Duration(base + 4));
    CHECK(one.window_bytes == static_cast<uint64_t>(base + 5));
    CHECK(one.inflight_bytes == static_cast<uint64_t>(base + 6));
    CHECK(one.bytes_per_second == static_cast<uint64_t>(base + 7));
    CHECK(one.sent == static_cast<uint64_t>(base + 8));
    CHECK(one.lost == static_cast<uint64_t>(base + 9));
    CHECK(one.retransmitted == static_cast<uint64_t>(base + 10));
    CHECK(one.spurious == static_cast<uint64_t>(base + 11));
    CHECK(one.not_ready == static_cast<uint64_t>(base + 12));
    CHECK(one.acknowledged_bytes == static_cast<uint64_t>(base + 13));
  }
}

TEST_CASE("values that are not known are not set") {
  ChannelsPage page;
  const ChannelView row{.to = channel_end(2), .state = ChannelView::State::silent};
  page.write(std::span(&row, 1));
  const ObservedChannel one = page.read().shown.at(0);
  CHECK(one.state == "silent");
  CHECK(one.congestion == "none");
  CHECK(one.from.empty());
  CHECK_FALSE((one.rtt || one.least_rtt || one.age || one.unheard));
  CHECK_FALSE((one.window_bytes || one.inflight_bytes || one.bytes_per_second));
  CHECK_FALSE((one.sent || one.lost || one.retransmitted || one.spurious || one.not_ready));
  CHECK_FALSE(one.acknowledged_bytes);
}

TEST_CASE("a channel says why its congestion control is not the one that was asked for") {
  ObservedDevice facts;
  facts.congestion = "caqm_w";
  facts.congestion_used = "ldcp";
  facts.congestion_why = "caqm_w needs switches";
  ChannelsPage page(facts);
  ChannelView rows[] = {channel_view(2), channel_view(3), channel_view(4)};
  rows[1].instead = ChannelView::Instead::not_reported;
  rows[2].instead = ChannelView::Instead::lossless;
  page.write(rows);
  const auto seen = page.read().shown;
  CHECK(seen[0].why == "caqm_w needs switches");
  CHECK(mentions(seen[1].why, "caqm_w needs switches; the peer does not report what ldcp needs"));
  CHECK(mentions(seen[2].why, "the medium loses nothing"));
  ChannelsPage unasked;
  unasked.write(std::span(rows).last(1));
  CHECK(unasked.read().shown.at(0).why.empty());
  const ObservedDevice device = StatsPage::parse(page.bytes).value();
  CHECK(device.congestion == "caqm_w");
  CHECK(device.congestion_used == "ldcp");
  CHECK(device.congestion_why == "caqm_w needs switches");
}

TEST_CASE("a page continues the count of acknowledged bytes, which channels have modulo 2^32") {
  constexpr uint64_t round = uint64_t{1} << 32;
  ChannelsPage page;
  ChannelView rows[] = {channel_view(2), channel_view(3)};
  const auto counts = [&](uint64_t first, uint64_t second) {
    rows[0].acknowledged_bytes = first;
    rows[1].acknowledged_bytes = second;
    page.write(rows);
    const auto seen = page.read().shown;
    return std::pair(*seen.at(0).acknowledged_bytes, *seen.at(1).acknowledged_bytes);
  };
  CHECK(counts(100, round - 10) == std::pair<uint64_t, uint64_t>(100, round - 10));
  CHECK(counts(50, 5) == std::pair<uint64_t, uint64_t>(round + 50, round + 5));
  std::swap(rows[0], rows[1]);
  CHECK(counts(7, 60) == std::pair<uint64_t, uint64_t>(round + 7, round + 60));
  // Another channel to the same peer.
  rows[0].age = Duration(1);
  CHECK(counts(3, 61) == std::pair<uint64_t, uint64_t>(3, round + 61));
}

TEST_CASE("a page says how many channels it has no room for") {
  ChannelsPage page;
  std::vector<ChannelView> rows(ChannelSlots::most_rows + 5, channel_view(7));
  page.write(rows, 12);
  CHECK(page.read().shown.size() == ChannelSlots::most_rows);
  CHECK(page.read().more == 12);
}

TEST_CASE("if a writer stops in the middle of its channels, the page has those from before") {
  ChannelsPage page;
  const ChannelView before = channel_view(2), after = channel_view(3);
  page.write(std::span(&before, 1));
  const StatsPage::Write next = page.page.next_channels(std::span(&after, 1), 0);
  for (size_t stopped_after = 0; stopped_after < next.bytes.size(); ++stopped_after) {
    ChannelsPage torn = page;
    torn.write({next.bytes.first(stopped_after), next.offset});
    const ObservedChannels seen = torn.read();
    REQUIRE(seen.shown.size() == 1);
    const bool all_there = std::equal(next.bytes.begin(), next.bytes.end(),
                                      torn.bytes.begin() + static_cast<ptrdiff_t>(next.offset));
    REQUIRE(seen.shown[0].peer == to_string(channel_end(all_there ? 3 : 2)));
  }
}

TEST_CASE("while both slots of the channels are written, the page is to be read again") {
  ChannelsPage page;
  const ChannelView row = channel_view(2);
  for (int slot = 0; slot < 2; ++slot) {
    const StatsPage::Write next = page.page.next_channels(std::span(&row, 1), 0);
    page.write({next.bytes.first(next.bytes.size() / 2), next.offset});
  }
  CHECK(StatsPage::parse(page.bytes).status() == Status::would_block);
}

TEST_CASE("channels of other versions are read as far as both versions know them") {
  const ChannelView row = channel_view(2);
  std::vector<std::byte> slots(ChannelSlots::bytes());
  ChannelSlots::fill(slots, 1, std::span(&row, 1), 0);
  ChannelSlots known;
  REQUIRE(known.read_format(ChannelSlots::format()));
  CHECK(known.total_bytes() == ChannelSlots::bytes());
  CHECK(known.parse(slots, {})->shown.at(0).acknowledged_bytes == 2013);

  // Rows without the last value. The checksum covers one row, so it still has to match.
  const std::string format = ChannelSlots::format();
  const size_t row_bytes = (ChannelSlots::bytes() / 2 - 24) / ChannelSlots::most_rows;
  ChannelSlots shorter;
  REQUIRE(shorter.read_format("64\t" + std::to_string(row_bytes - 8)));
  CHECK(shorter.parse(slots, {}).status() == Status::would_block);

  // A state and a reason of a later version.
  ChannelView strange = row;
  strange.state = static_cast<ChannelView::State>(77);
  strange.instead = static_cast<ChannelView::Instead>(77);
  ChannelSlots::fill(slots, 2, std::span(&strange, 1), 0);
  const ObservedChannel seen = known.parse(slots, {})->shown.at(0);
  CHECK(seen.state == "?");
  CHECK(mentions(seen.why, "does not know"));

  for (const char* bad : {"", "\t", "64", "64\t", "0\t152", "64\t0", "x\t152", "64\t152x",
                          "99999\t152", "64\t99999", "-1\t152"}) {
    INFO(bad);
    CHECK_FALSE(ChannelSlots().read_format(bad));
  }
}

}  // namespace
}  // namespace urma::test
