// SPDX-License-Identifier: Apache-2.0
#include "engine/stats_page.h"

#include <algorithm>
#include <cstring>

#include "base/crc32.h"
#include "base/prng.h"
#include "drivers/packet_port.h"
#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::StatsPage;
using Bytes = std::vector<std::byte>;

ObservedDevice facts() {
  ObservedDevice out;
  out.pid = 4711;
  out.process = "a process";
  out.process_started = 1000;
  out.opened = 2000;
  out.device = "udp:127.0.0.1";
  out.description = "socket\nwith \x1b[2J and \xff";
  out.endpoint = "127.0.0.1:4792";
  out.eid = "127.0.0.1";
  return out;
}

// Returns values all of which differ between any two seeds.
Statistics numbers(uint64_t seed) {
  Statistics out;
  uint64_t value = seed * 1'000'000;
  for (const Metric& metric : all_metrics()) out.*metric.value = ++value;
  return out;
}

// The file, as its process writes it.
struct File {
  StatsPage page{facts()};
  Bytes bytes{page.bytes().begin(), page.bytes().end()};

  void write(uint64_t seed) {
    const auto next = page.next(numbers(seed), Time(Duration(static_cast<int64_t>(seed))));
    std::copy(next.bytes.begin(), next.bytes.end(),
              bytes.begin() + static_cast<ptrdiff_t>(next.offset));
  }
};

bool of_moment(const ObservedDevice& device, uint64_t seed) {
  const Statistics wanted = numbers(seed);
  for (size_t i = 0; i < all_metrics().size(); ++i) {
    if (device.metrics[i].value != wanted.*all_metrics()[i].value) return false;
  }
  return device.moment == Time(Duration(static_cast<int64_t>(seed)));
}

TEST_CASE("the page of a device has the common metrics and those of its driver") {
  ObservedDevice one = facts();
  one.metrics = {{"path0_sent", "packets", "since open", "paths", "Sent."},
                 {"path0_rtt", "ns", "now", "paths", "Round trip."}};
  StatsPage page{one};
  std::vector<std::byte> bytes(page.bytes().begin(), page.bytes().end());
  for (const uint64_t value : {7, 8}) {
    Statistics statistics;
    statistics.works = value;
    const uint64_t own[] = {value + 100, value + 200, 1};
    const StatsPage::Write next = page.next(statistics, Time{std::chrono::seconds(1)}, own);
    std::copy(next.bytes.begin(), next.bytes.end(),
              bytes.begin() + static_cast<ptrdiff_t>(next.offset));
    const ObservedDevice seen = StatsPage::parse(bytes).value();
    CHECK(seen.metrics.size() == all_metrics().size() + 2);
    CHECK(*seen.find("works") == value);
    CHECK(*seen.find("path0_sent") == value + 100);
    CHECK(*seen.find("path0_rtt") == value + 200);
  }
}

TEST_CASE("a page has room for all metrics of a port and of its paths") {
  ObservedDevice one = facts();
  const ObservedMetric longest{std::string(70, 'n'), "packets", "since open", "port of DPDK",
                               std::string(100, 'm')};
  const size_t most = drivers::PacketPort::most_metrics + 3 * most_paths;
  one.metrics.assign(most, longest);
  for (size_t i = 0; i < most; ++i) one.metrics[i].name.replace(0, 3, std::to_string(100 + i));
  const StatsPage page{one};
  CHECK(StatsPage::parse(page.bytes()).value().metrics.size() == all_metrics().size() + most);
}

TEST_CASE("a page shows what its writer wrote, with explanations and without control characters") {
  File file;
  const ObservedDevice before = StatsPage::parse(file.bytes).value();
  CHECK(*before.find("works") == 0);
  CHECK(*before.find("past_caches_from") == UINT64_MAX);
  for (uint64_t seed = 1; seed < 5; ++seed) {
    file.write(seed);
    const ObservedDevice device = StatsPage::parse(file.bytes).value();
    CHECK(of_moment(device, seed));
    CHECK(device.reports == 1 + seed);
  }
  const ObservedDevice device = StatsPage::parse(file.bytes).value();
  CHECK(device.pid == 4711);
  CHECK(device.process == "a process");
  CHECK(device.process_started == 1000);
  CHECK(device.opened == 2000);
  CHECK(device.device == "udp:127.0.0.1");
  CHECK(device.description == "socket?with ?[2J and ?");
  CHECK(device.endpoint == "127.0.0.1:4792");
  CHECK(device.eid == "127.0.0.1");
  REQUIRE(device.metrics.size() == all_metrics().size());
  for (size_t i = 0; i < device.metrics.size(); ++i) {
    const Metric& metric = all_metrics()[i];
    CHECK(device.metrics[i].name == metric.name);
    CHECK(device.metrics[i].unit == metric.unit);
    CHECK(device.metrics[i].window == name(metric.window));
    CHECK(device.metrics[i].part == metric.part);
    CHECK(device.metrics[i].meaning == metric.meaning);
  }
  CHECK(device.find("nonsense") == nullptr);
}

TEST_CASE("texts of any length fit in a page") {
  ObservedDevice long_ones = facts();
  long_ones.description.assign(100'000, 'd');
  long_ones.device.assign(100'000, 'u');
  const StatsPage page(long_ones);
  CHECK(page.bytes().size() <= StatsPage::most_bytes);
  CHECK(StatsPage::parse(page.bytes())->description == std::string(1000, 'd'));
}

TEST_CASE("if a writer stops in the middle of a write, the page has the values from before") {
  for (uint64_t seed : {1, 2}) {
    File file;
    for (uint64_t i = 1; i <= seed; ++i) file.write(i);
    const auto next =
        file.page.next(numbers(seed + 1), Time(Duration(static_cast<int64_t>(seed) + 1)));
    for (size_t stopped_after = 0; stopped_after < next.bytes.size(); ++stopped_after) {
      Bytes torn = file.bytes;
      std::copy_n(next.bytes.begin(), stopped_after,
                  torn.begin() + static_cast<ptrdiff_t>(next.offset));
      // The last bytes of a number may have the same values as before.
      const bool all_there = std::equal(next.bytes.begin(), next.bytes.end(),
                                        torn.begin() + static_cast<ptrdiff_t>(next.offset));
      REQUIRE(of_moment(StatsPage::parse(torn).value(), all_there ? seed + 1 : seed));
    }
  }
}

TEST_CASE("a page that is cut off anywhere is refused with the reason") {
  File file;
  file.write(1);
  for (size_t bytes = 0; bytes < file.bytes.size(); ++bytes) {
    // Memory of exactly this size, so that the address sanitizer catches reads beyond it.
    const Bytes short_one(file.bytes.begin(), file.bytes.begin() + static_cast<ptrdiff_t>(bytes));
    const auto page = StatsPage::parse(short_one);
    REQUIRE_FALSE(page.ok());
    REQUIRE(mentions(page.error().message, "Fix: "));
  }
}

TEST_CASE("a page with any wrong bytes shows values as they were written, or an error") {
  File file;
  file.write(1);
  file.write(2);
  Prng prng(1);
  const auto check = [&](const Bytes& bytes) {
    const auto page = StatsPage::parse(bytes);
    if (!page) {
      REQUIRE(mentions(page.error().message, "Fix: "));
      return;
    }
    const bool one_of_them = of_moment(*page, 1) || of_moment(*page, 2);
    REQUIRE(one_of_them);
  };
  // Rows of channels and objects.
  const size_t unused = engine::ChannelSlots::bytes() + engine::ObjectSlots::bytes() - 64;
  for (size_t bit = 0; bit < (file.bytes.size() - unused) * 8; ++bit) {
    Bytes bytes = file.bytes;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    check(bytes);
  }
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = file.bytes;
    for (uint64_t changes = 1 + prng.below(8); changes > 0; --changes) {
      const size_t at = prng.below(static_cast<uint32_t>(bytes.size()));
      // Half of the changes are in the header, although it is small.
      bytes[prng.below(2) == 0 ? at : at % 32] = static_cast<std::byte>(prng.below(256));
    }
    bytes.resize(prng.below(4) == 0 ? prng.below(static_cast<uint32_t>(bytes.size()))
                                    : bytes.size());
    check(bytes);
  }
}

// Changes a text and makes the checksum match.
Bytes with_text(Bytes bytes, std::string_view old_one, std::string_view new_one) {
  REQUIRE(old_one.size() == new_one.size());
  const auto found =
      std::search(bytes.begin(), bytes.end(), old_one.begin(), old_one.end(),
                  [](std::byte byte, char c) { return byte == static_cast<std::byte>(c); });
  REQUIRE(found != bytes.end());
  std::transform(new_one.begin(), new_one.end(), found,
                 [](char c) { return static_cast<std::byte>(c); });
  uint32_t text_bytes = 0;
  std::memcpy(&text_bytes, bytes.data() + 12, sizeof text_bytes);
  const uint32_t head = crc32_update(crc32_start, bytes.data(), 20);
  const uint32_t sum = crc32_finish(crc32_update(head, bytes.data() + 24, text_bytes));
  std::memcpy(bytes.data() + 20, &sum, sizeof sum);
  return bytes;
}

TEST_CASE("a page of another version is shown as that version explains it") {
  File file;
  file.write(1);
  const ObservedDevice renamed =
      StatsPage::parse(with_text(file.bytes, "metric\tworks\tworks", "metric\tdeeds\tdeeds"))
          .value();
  CHECK(renamed.find("works") == nullptr);
  CHECK(*renamed.find("deeds") == numbers(1).works);
  CHECK(renamed.metrics[0].unit == "deeds");
  const ObservedDevice unknown_fact =
      StatsPage::parse(with_text(file.bytes, "eid\t", "xyz\t")).value();
  CHECK(unknown_fact.eid.empty());
  CHECK(unknown_fact.endpoint == "127.0.0.1:4792");

  const Bytes before_objects = with_text(file.bytes, "objects\t", "unknown\t");
  const ObservedDevice without_objects = StatsPage::parse(before_objects).value();
  CHECK_FALSE(without_objects.objects);
  CHECK(without_objects.channels);
  const ObservedDevice without_channels =
      StatsPage::parse(with_text(before_objects, "channels\t", "unknowns\t")).value();
  CHECK_FALSE(without_channels.channels);
  CHECK(*without_channels.find("works") == numbers(1).works);

  Bytes later = file.bytes;
  later[8] = std::byte{2};
  const Error error = StatsPage::parse(later).error();
  CHECK(error.status == Status::version_mismatch);
  CHECK(mentions(error.message, "layout 2"));
}

TEST_CASE("a page with an invalid text is damaged, even if its checksum is right") {
  File file;
  file.write(1);
  for (const auto& [old_one, new_one] :
       {std::pair("pid\t4711", "pid\t47x1"), std::pair("pid\t4711", "pid\t    "),
        std::pair("metric\tworks\tworks", "mettic\tworks\tworks"),
        std::pair("metric\tworks\t", "metric\t\t\t\t\t\t\t"), std::pair("eid\t1", "eid\t\x1b"),
        std::pair("channels\t64", "channels\t6x"), std::pair("channels\t64", "channels\t00"),
        std::pair("objects\t96", "objects\t9x"), std::pair("objects\t96", "objects\t00")}) {
    INFO(new_one);
    CHECK(StatsPage::parse(with_text(file.bytes, old_one, new_one)).status() == Status::io_error);
  }
}

TEST_CASE("a page that names a metric twice, or has very long texts, is refused or cut") {
  File file;
  file.write(1);
  const auto twice = StatsPage::parse(with_text(file.bytes, "metric\tretries", "metric\trefused"));
  REQUIRE(twice.status() == Status::invalid_argument);
  CHECK(mentions(twice.error().message, "names a counter twice"));
  CHECK(mentions(twice.error().message, "Fix: "));
  ObservedDevice long_ones = facts();
  long_ones.device.assign(1000, 'd');
  const StatsPage page(long_ones);
  const Bytes bytes(page.bytes().begin(), page.bytes().end());
  // The next line becomes a part of the text.
  const auto longer = StatsPage::parse(with_text(bytes, "\ndescription\t", " description "));
  REQUIRE(longer.ok());
  CHECK(longer->device == std::string(1000, 'd'));
}

}  // namespace
}  // namespace urma::test
