// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include "apps/common/failure.h"
#include "apps/urma_perf/plan_run.h"
#include "apps/urma_perf/responder.h"
#include "tests/catch.h"
#include "tests/drivers/window_file.h"
#include "tests/temporary_directory.h"

namespace urma::apps::perf {
namespace {

Plan plan_of(const std::string& text) {
  std::istringstream in(text);
  return Plan::parse(in, "test");
}

std::string refusal_of_plan(const std::string& text) {
  try {
    plan_of(text);
    return "";
  } catch (const Failure& failure) {
    REQUIRE(failure.exit() == Exit::usage);
    return failure.what();
  }
}

// Both sides of a plan in one process, on one device.
struct PlanSides {
  explicit PlanSides(const Plan& blocks, uint32_t entries = 0)
      : window("plan"),
        device(open(window.device("?size=64M")).value()),
        completions(device.jfc(1024).value()),
        plan(blocks),
        what(case_of(plan, entries)),
        client(device, what, Place::client, std::array{&completions}),
        run(client, plan, completions, true) {
    server.emplace(device, what, Place::server, std::array{&completions});
    client.meet(device, server->describe());
    server->meet(device, client.describe());
    REQUIRE(client.other().mapped());
  }

  static Case case_of(const Plan& plan, uint32_t entries) {
    const Plan moved = entries == 0 ? plan : plan.gathered();
    Case out{.test = find_test("kv"), .bytes = moved.bytes()};
    out.plan = moved.shape(entries);
    out.depth = out.plan.works_at_once;
    return out;
  }

  Outcome round(uint64_t count) {
    std::ranges::fill(client.ledger(), Side::never_written);
    Outcome outcome;
    run.run({.at = INT64_MAX, .count = count}, outcome);
    return outcome;
  }

  // Checks the server's memory as it does at the end of a round.
  Verdict verdict() {
    Responder responder(*server, true);
    responder.begin(false);
    std::ranges::copy(client.ledger(), server->ledger().begin());
    return report_of(*server, std::span(&responder, 1)).verdict;
  }

  std::span<std::byte> arrived(const Block& block) const {
    return server->landing().subspan(block.target, block.bytes);
  }

  test::WindowFile window;
  Device device;
  Jfc completions;
  const Plan plan;
  const Case what;
  Side client;
  std::optional<Side> server;
  PlanRun run;
};

}  // namespace

TEST_CASE("blocks of equal size lie in the reverse order at the server") {
  const Plan plan = Plan::of(100, 3);
  REQUIRE(plan.blocks().size() == 3);
  CHECK(plan.bytes() == 300);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(plan.blocks()[i].source == i * 104);
    CHECK(plan.blocks()[i].target == (2 - i) * 104);
    CHECK(plan.blocks()[i].bytes == 100);
  }
  const PlanShape shape = plan.shape(0);
  CHECK(shape.blocks == 3);
  CHECK(shape.block_bytes == 100);
  CHECK(shape.works == 3);
  CHECK(shape.works_at_once == 3);
  CHECK(shape.source_bytes == 2 * 104 + 100);
  CHECK(shape.target_bytes == 2 * 104 + 100);
}

TEST_CASE("a file describes single blocks and blocks of equal size") {
  const Plan plan = plan_of(
      "# target source bytes\n"
      "\n"
      "8K 0 4096   # the first one\n"
      " 0\t64 100\r\n"
      "1K 2");
  constexpr std::array<std::array<uint64_t, 3>, 4> blocks = {
      {{8192, 0, 4096}, {0, 64, 100}, {13312, 4096, 1024}, {12288, 5120, 1024}}};
  REQUIRE(plan.blocks().size() == blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = plan.blocks()[i];
    CHECK(std::array{block.target, block.source, block.bytes} == blocks[i]);
  }
}

TEST_CASE("a list of blocks is cut into works of 16, and into none longer than a write") {
  const Plan plan = Plan::of(4096, 40);
  for (const auto& [entries, works, at_once] : {std::array<uint32_t, 3>{0, 40, 40},
                                                {1, 40, 1},
                                                {16, 3, 1},
                                                {17, 5, 2},
                                                {32, 3, 2},
                                                {128, 3, 3}}) {
    CAPTURE(entries);
    const PlanShape shape = plan.gathered().shape(entries);
    CHECK(shape.works == works);
    CHECK(shape.works_at_once == at_once);
  }
  const Plan large = Plan::of(400 << 20, 5);
  const auto lists = lists_of(large.blocks(), 5);
  REQUIRE(lists.size() == 1);
  const std::vector<Gather>& works = lists.front();
  REQUIRE(works.size() == 3);
  CHECK(works[0].end == 2);
  CHECK(works[2].begin == 4);
  CHECK(works_of_one_write(max_write_bytes) == 1);
  CHECK(works_of_one_write(max_write_bytes + 1) == 2);
}

TEST_CASE("lists gather the blocks into one range, in the order of the server") {
  const Plan plan = plan_of("100K 0 10\n0 16 100\n50K 4K 7\n").gathered();
  REQUIRE(plan.blocks().size() == 3);
  CHECK(plan.blocks()[0].source == 16);
  CHECK(plan.blocks()[1].source == 4096);
  CHECK(plan.blocks()[1].target == 100);
  CHECK(plan.blocks()[2].source == 0);
  CHECK(plan.blocks()[2].target == 107);
  CHECK(plan.shape(2).target_bytes == 117);
  CHECK(plan.shape(2).block_bytes == 0);
}

TEST_CASE("a hostile plan is refused with its line, why, and a fix") {
  const std::string many = "64 16384\n";
  struct Wrong {
    std::string text;
    std::string why;
  };
  for (const Wrong& wrong : {
           Wrong{"", "has no blocks"},
           Wrong{"# nothing\n\n", "has no blocks"},
           Wrong{"\n4096\n", "line 2: \"4096\" does not describe blocks"},
           Wrong{"1 2 3 4\n", "line 1: \"1 2 3 4\" does not describe blocks"},
           Wrong{"4096 0\n", "line 1: \"0\" is not a number of blocks"},
           Wrong{"4096 16385\n", "line 1: \"16385\" is not a number of blocks"},
           Wrong{"0 5\n", "line 1: \"0\" is not the size of a block"},
           Wrong{"2G 1\n", "line 1: \"2G\" is not the size of a block"},
           Wrong{"-1 5\n", "line 1: \"-1\" is not the size of a block"},
           Wrong{"0x10 5\n", "line 1: \"0x10\" is not the size of a block"},
           Wrong{"99999999999999999999 1\n", "is not the size of a block"},
           Wrong{"0 0 4K\nx 0 8\n", "line 2: \"x\" is not an offset"},
           Wrong{"9G 0 8\n", "line 1: \"9G\" is not an offset"},
           Wrong{"0 18446744073709551615 8\n", "is not an offset"},
           Wrong{"0 4 8\n", "line 1: the offset at the client, 4, is not a multiple of 8"},
           Wrong{"8G 0 8\n", "line 1: with this line the blocks need more than 8G on a side"},
           Wrong{"0 8G 8\n", "line 1: with this line the blocks need more than 8G on a side"},
           Wrong{"1G 8\n8 1\n", "line 2: with this line the blocks need more than 8G on a side"},
           Wrong{many + "64 1\n", "line 2: with this line there are more than 16384 blocks"},
           Wrong{"0 0 100\n200 0 8\n99 0 8\n",
                 "line 3: its block at 99 overlaps at the server with one of line 1"},
           Wrong{"0 0 8\n\n0 8 8\n", "line 3: its block at 0 overlaps"},
           Wrong{"1K 4\n0 0 1\n",
                 "line 2: its block at 0 overlaps at the server with one of line 1"},
           Wrong{std::string("\0\x01\x1b[2J", 7), "line 1: "},
           Wrong{std::string(Plan::most_file_bytes + 1, '#'), "larger than 1M"},
       }) {
    CAPTURE(wrong.text.substr(0, 60));
    const std::string why = refusal_of_plan(wrong.text);
    CAPTURE(why);
    CHECK(why.starts_with("--plan test"));
    CHECK(why.find(wrong.why) != why.npos);
    CHECK(why.find("Fix: ") != why.npos);
    CHECK(why.find('\x1b') == why.npos);
  }
  CHECK(refusal_of_plan(many).empty());
  CHECK(refusal_of_plan(std::string(Plan::most_file_bytes - 5, '#') + "\n8 1\n").empty());
}

TEST_CASE("each block of a transfer is at its place, and is timed") {
  const std::string scattered =
      "300K 0 100001\n"
      "0 256K 64K\n"
      "128K 8 1\n"
      "131077 0 77\n"  // source ranges may overlap, and targets have any offset
      "100 40\n";
  for (const std::string& text : {std::string("4096 37"), scattered}) {
    for (const uint32_t entries : {0, 1, 5, 16, 17, 128}) {
      CAPTURE(text, entries);
      PlanSides sides(plan_of(text), entries);
      for (const uint64_t count : {1, 3}) {
        const Outcome outcome = sides.round(count);
        CHECK(outcome.messages == count);
        CHECK(outcome.times.count() == count);
        for (const Histogram* times :
             {&outcome.plan.prep, &outcome.plan.post, &outcome.plan.one_write}) {
          CHECK(times->count() == count);
        }
        CHECK(outcome.within_calls > 0);
        CHECK(outcome.within_calls <= outcome.end - outcome.begin);
        CHECK(sides.client.ledger()[0] < Pattern::windows);
        const Verdict verdict = sides.verdict();
        CHECK(verdict.wrong == 0);
        CHECK(verdict.first.empty());
      }
    }
  }
}

TEST_CASE("a block that is missing, wrong or at another place is counted") {
  PlanSides sides(Plan::of(1000, 20));
  (void)sides.round(2);
  REQUIRE(sides.verdict().wrong == 0);
  const Block& one = sides.plan.blocks()[7];
  const Block& other = sides.plan.blocks()[8];
  for (const size_t at : {size_t{0}, size_t{500}, size_t{999}}) {
    sides.arrived(one)[at] ^= std::byte{1};
    CHECK(sides.verdict().wrong == 1);
    sides.arrived(one)[at] ^= std::byte{1};
  }
  std::ranges::swap_ranges(sides.arrived(one), sides.arrived(other));
  const Verdict swapped = sides.verdict();
  CHECK(swapped.wrong == 2);
  CHECK(swapped.first.starts_with("block 7: byte 0 of 1000 is"));
  std::ranges::swap_ranges(sides.arrived(one), sides.arrived(other));
  // The bytes of the transfer before.
  const std::vector<std::byte> before(sides.arrived(one).begin(), sides.arrived(one).end());
  (void)sides.round(1);
  REQUIRE(sides.verdict().wrong == 0);
  std::ranges::copy(before, sides.arrived(one).begin());
  CHECK(sides.verdict().wrong == 1);
}

TEST_CASE("a server reads no bytes outside of its memory, whatever blocks a client names") {
  PlanSides sides(Plan::of(1000, 4));
  (void)sides.round(1);
  const auto words = sides.client.ledger();
  const std::vector<uint64_t> right(words.begin(), words.end());
  for (const size_t word : {1, 2, 3}) {
    for (const uint64_t wrong : {UINT64_MAX, UINT64_MAX - 999, uint64_t{1} << 40, uint64_t{4033}}) {
      CAPTURE(word, wrong);
      words[word] = wrong;
      CHECK(sides.verdict().wrong == 1);
      std::ranges::copy(right, words.begin());
    }
  }
  words[2] = 4;  // not a word of the pattern
  CHECK(sides.verdict().wrong == 1);
  words[0] = Pattern::windows;  // nothing was moved
  CHECK(sides.verdict().wrong == 0);
}

TEST_CASE("the memory of a plan holds its blocks, and the one write beside them") {
  // Ten blocks of one place at the client: the write needs more bytes than they have there.
  std::string text;
  for (int i = 0; i < 10; ++i) text += std::to_string(i * 1000) + " 0 1000\n";
  const Case what = PlanSides::case_of(plan_of(text), 0);
  CHECK(what.plan.source_bytes == 1000);
  const Layout layout(what);
  CHECK(layout.source_bytes() >= 10'000 + (Pattern::windows - 1) * Pattern::window_bytes);
  CHECK(layout.landing_bytes() >= 10'000);
  CHECK(layout.source_begin() >= layout.ledger_bytes());
  CHECK(layout.ledger_bytes() == (1 + 10 * Layout::words_of_block) * sizeof(uint64_t));
  CHECK(layout.bytes() >= layout.source_begin() + layout.source_bytes());
}

TEST_CASE("a plan that is not a file is refused") {
  const test::TemporaryDirectory place("/tmp/urma-plan-XXXXXX");
  for (const std::string& path : {place.path().string(), place.path().string() + "/none"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(Plan::read(path), Failure);
  }
}

}  // namespace urma::apps::perf
