// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/urma_feed/backlog.h"
#include "apps/urma_feed/options.h"
#include "apps/urma_feed/splitter.h"
#include "apps/urma_feed/streams.h"
#include "apps/urma_feed/wake_ups.h"
#include "base/prng.h"
#include "tests/catch.h"

namespace urma::apps::feed {
namespace {

using Words = std::vector<std::string>;

// Cuts the text, which comes in pieces of these sizes in turn.
Words cut(const std::string& text, uint64_t record_bytes, size_t piece) {
  Splitter splitter(record_bytes);
  Words messages;
  for (size_t at = 0; at < text.size(); at += piece) {
    splitter.add(std::string_view(text).substr(at, piece));
    while (auto message = splitter.next()) messages.push_back(*message);
  }
  if (auto message = splitter.rest()) messages.push_back(*message);
  return messages;
}

TEST_CASE("standard input is cut into lines and records, however it arrives") {
  for (const size_t piece : {1, 2, 3, 100}) {
    CHECK(cut("", 0, piece).empty());
    CHECK(cut("a\n\nbc\n", 0, piece) == Words{"a", "", "bc"});
    CHECK(cut("a\nbc", 0, piece) == Words{"a", "bc"});
    CHECK(cut(std::string("\0\r\n\n", 4), 0, piece) == Words{std::string("\0\r", 2), ""});
    CHECK(cut("abcdef", 3, piece) == Words{"abc", "def"});
    CHECK(cut("a\nb\n", 1, piece) == Words{"a", "\n", "b", "\n"});
    CHECK_THROWS_AS(cut("abcd", 3, piece), Failure);
  }
  const std::string longest(most_payload_bytes, 'x');
  CHECK(cut(longest + "\ny", 0, 70'000) == Words{longest, "y"});
  CHECK_THROWS_AS(cut(longest + "x\n", 0, 70'000), Failure);
  CHECK_THROWS_AS(cut(longest + "x", 0, 1000), Failure);
}

TEST_CASE("quantiles of wake-ups are at most a 32nd too large, and never too small") {
  Prng prng(5);
  WakeUps wakes;
  std::vector<uint64_t> all;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t took = prng.below(2) != 0 ? prng.below(100) : prng.below(1U << 30);
    all.push_back(took);
    wakes.add({.nanoseconds = 1000, .host = 7}, {.nanoseconds = 1000 + took, .host = 7});
  }
  std::ranges::sort(all);
  for (const double share : {0.001, 0.5, 0.9, 0.99, 1.0}) {
    const auto exact = static_cast<double>(
        all[static_cast<size_t>(std::ceil(share * static_cast<double>(all.size()))) - 1]);
    CHECK(static_cast<double>(wakes.quantile(share)) >= exact);
    CHECK(static_cast<double>(wakes.quantile(share)) <= exact * (1 + 1.0 / 32) + 1);
  }
  CHECK(wakes.quantile(1) == all.back());
  CHECK(wakes.foreign() == 0);
  wakes.add({.nanoseconds = 1, .host = 8}, {.nanoseconds = 2, .host = 7});
  wakes.add({.nanoseconds = 3, .host = 7}, {.nanoseconds = 2, .host = 7});
  wakes.add({.nanoseconds = 1, .host = 0}, {.nanoseconds = 2, .host = 0});
  CHECK(wakes.foreign() == 3);
  CHECK(wakes.count() == all.size());
  CHECK(WakeUps().quantile(0.5) == 0);
  WakeUps longest;
  longest.add({.nanoseconds = 0, .host = 1}, {.nanoseconds = UINT64_MAX, .host = 1});
  CHECK(longest.quantile(0.5) == UINT64_MAX);
}

TEST_CASE("a backlog keeps messages until each consumer has acknowledged them or has left") {
  int woken = 0;
  Backlog backlog({[&] { ++woken; }, [&] { ++woken; }});
  const auto never = [] { return false; };
  for (int i = 0; i < 3; ++i) CHECK(backlog.add(std::to_string(i), never));
  CHECK(woken == 6);
  CHECK(backlog.count() == 3);
  CHECK(backlog.at(3) == nullptr);
  backlog.acknowledge(0, 2);
  CHECK(*backlog.at(0) == "0");
  backlog.acknowledge(1, 1);
  CHECK(backlog.at(0) == nullptr);
  CHECK(*backlog.at(1) == "1");
  backlog.leave(1);
  CHECK(backlog.at(1) == nullptr);
  CHECK(*backlog.at(2) == "2");
  CHECK_FALSE(backlog.ended());
  backlog.end();
  CHECK(backlog.ended());
  CHECK(backlog.count() == 3);
}

TEST_CASE("a full backlog waits for room, or until the caller gives up") {
  Backlog backlog({[] {}});
  for (size_t i = 0; i < Backlog::most_messages; ++i) {
    REQUIRE(backlog.add("x", [] { return false; }));
  }
  CHECK_FALSE(backlog.add("y", [] { return true; }));
  std::jthread consumer([&] { backlog.acknowledge(0, 1); });
  CHECK(backlog.add("y", [] { return false; }));
}

Options parsed(Words words) {
  words.insert(words.begin(), "urma_feed");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST_CASE("urma_feed: which options belong together") {
  const Options lines = parsed({"produce", "a", "--lines", "--to", "b"});
  CHECK(lines.input);
  CHECK(lines.hosts == Words{"a", "b"});
  CHECK(parsed({"produce", "--records", "4K"}).record_bytes == 4096);
  CHECK(parsed({"consume", "--print"}).print);
  for (const Words& words : {Words{"produce", "--to", "b"},
                             {"produce", "--patience", "3"},
                             {"produce", "--print"},
                             {"produce", "--lines", "--records", "8"},
                             {"produce", "--records", "0"},
                             {"produce", "--records", "65521"},
                             {"produce", "--records", "x"},
                             {"produce", "--lines", "--to", "a/b"},
                             {"produce", "--lines", "--to", ""},
                             {"produce", "a", "--lines", "--to", "a"},
                             {"consume", "--lines"},
                             {"consume", "a"},
                             {"consume", "--to", "a"},
                             {"consume", "--patience", "1"}}) {
    INFO(words[1]);
    CHECK_THROWS_AS(parsed(words), Failure);
  }
}

// The text of a message with this payload.
std::vector<std::byte> text_of(const std::string& payload) {
  const Stamp stamp{.nanoseconds = 5, .host = 6};
  std::vector<std::byte> text(sizeof stamp + payload.size());
  std::memcpy(text.data(), &stamp, sizeof stamp);
  std::memcpy(text.data() + sizeof stamp, payload.data(), payload.size());
  return text;
}

std::string hello_of(const std::string& jetty, uint64_t feed, uint64_t first, int speaks) {
  const Hello hello{.speaks = speaks, .version = "0", .jetty = jetty, .feed = feed, .first = first};
  return to_text({.id = 0, .type = "hello", .body = hello}, wording());
}

TEST_CASE("payloads are delivered once and in order, and strange ones are dropped") {
  Device device = open("sim:feed_parts_test").value();
  Jetty jetty = device.jetty({.receives = 4}).value();
  Streams streams(false);
  const Origin from{0, 1, 1, JettyId(1)}, stranger{0, 2, 1, JettyId(1)};
  const auto say = [&](const Origin& who, uint64_t number) {
    streams.payload(who, immediate_of(3, number), text_of("abc"));
  };
  streams.hello(from, device, hello_of(jetty.descriptor(), 9, 10, protocol));
  say(from, 11);
  CHECK_FALSE(streams.deliver(from));
  say(from, 10);
  for (int i = 0; i < 2; ++i) {
    const auto delivered = streams.deliver(from);
    REQUIRE(delivered);
    CHECK(delivered->topic == 3);
    CHECK(delivered->posted.host == 6);
  }
  CHECK_FALSE(streams.deliver(from));
  say(from, 11);  // repeated
  say(from, 13);
  say(from, 13);  // repeated
  CHECK(streams.sums().repeated == 2);
  CHECK(streams.sums().dropped == 0);
  // The same feed through another connection goes on; the first connection is over.
  const Origin again{0, 1, 1, JettyId(2)};
  streams.hello(again, device, hello_of(jetty.descriptor(), 9, 12, protocol));
  say(from, 12);
  CHECK(streams.sums().dropped == 1);
  say(again, 12);
  CHECK(streams.deliver(again));
  CHECK(streams.deliver(again));
  CHECK(streams.sums().messages == 4);
  CHECK(streams.sums().bytes == 12);
  CHECK(streams.sums().before == 10);

  say(stranger, 0);
  say(again, uint64_t{1} << 40);
  streams.payload(again, immediate_of(3, 14), std::span<const std::byte>());
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("\xff"),
        hello_of("not a descriptor", 1, 0, protocol), hello_of(jetty.descriptor(), 1, 0, 99),
        std::string(R"({"id":0,"type":"hello","body":{"speaks":1,"version":"0","first":-1}})"),
        std::string(R"({"id":0,"type":"bye","body":{}})")}) {
    streams.hello(stranger, device, text);
  }
  CHECK(streams.sums().dropped == 1 + 3 + 8);
  CHECK(streams.sums().feeds == 1);

  CHECK_FALSE(streams.ended(stranger, 1));
  CHECK(streams.whole());
  CHECK(streams.ended(again, 20));
  CHECK_FALSE(streams.whole());
  CHECK(streams.sums().missing == 6);
}

}  // namespace
}  // namespace urma::apps::feed
