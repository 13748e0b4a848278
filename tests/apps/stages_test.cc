// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/stages.h"

#include "apps/urma_perf/messages.h"
#include "apps/urma_perf/result.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

using namespace std::chrono_literals;

SideProfile example() {
  Profile begin{.at = Time(1s), .cost_ns = 10};
  Profile end{.at = Time(1s + 1ms), .cost_ns = 10};
  begin[Stage::post] = {100, 5000ns};
  end[Stage::post] = {300, 25'000ns};
  end[Stage::poll_nothing] = {1000, 100'000ns};
  end[Stage::send] = {50, 50'000ns};
  end[Stage::take] = {2, 210'000ns, 1, 200'000ns};
  end[Stage::settle] = {50, 100ns};  // less than what measuring it takes
  SideProfile out = between(begin, end, 2);
  out.build = {200, 4000ns};
  return out;
}

const StageRow& row(const std::vector<StageRow>& rows, std::string_view name) {
  for (const StageRow& one : rows) {
    if (one.stage == name) return one;
  }
  FAIL(name);
  return rows.front();
}

double sum(const std::vector<StageRow>& rows) {
  double all = 0;
  for (const StageRow& one : rows) all += one.total_ns;
  return all;
}

bool about(double a, double b) { return std::abs(a - b) <= 1e-6 * b; }

}  // namespace

TEST_CASE("what lies between two moments is the difference of their sums") {
  const SideProfile profile = example();
  CHECK(about(profile.seconds, .001));
  CHECK(profile.threads == 2);
  const StageTime& post = profile.stages[static_cast<uint8_t>(Stage::post)];
  CHECK(post.times == 200);
  CHECK(post.total == 20'000ns);
}

TEST_CASE("the rows of each part add up, and measuring is subtracted from each stage") {
  const StageRows rows = rows_of(example());
  CHECK(about(row(rows.calls, "build").total_ns, 4000));
  CHECK(about(row(rows.calls, "post").total_ns, 20'000 - 200 * 10));
  CHECK(about(row(rows.calls, "poll_nothing").total_ns, 100'000 - 1000 * 10));
  CHECK(about(row(rows.calls, "timing").total_ns, 1200 * 10));
  CHECK(row(rows.calls, "timing").times == 1200);
  // Two threads had a millisecond each.
  CHECK(about(sum(rows.calls), 2e6));
  CHECK(about(row(rows.calls, "elsewhere").total_ns, 2e6 - 4000 - 120'000));
  CHECK(about(row(rows.calls, "post").share, 18'000 / 2e6));

  CHECK(about(row(rows.device, "send").total_ns, 50'000 - 500));
  CHECK(row(rows.device, "settle").total_ns == 0);
  CHECK(about(row(rows.device, "take").total_ns, 10'000 - 2 * 10));
  CHECK(row(rows.device, "over_1ms").times == 1);
  CHECK(about(row(rows.device, "over_1ms").total_ns, 200'000));
  CHECK(about(row(rows.device, "timing").total_ns, 500 + 100 + 20));
  CHECK(about(sum(rows.device), 1e6));
  CHECK(about(row(rows.device, "no_pass").share, (1e6 - 260'100) / 1e6));
}

TEST_CASE("a long wait is a wait, while the thread of another long stage had no processor") {
  SideProfile profile{.seconds = .01};
  profile.stages[static_cast<uint8_t>(Stage::wait)] = {1, 5ms, 1, 5ms};
  profile.stages[static_cast<uint8_t>(Stage::post)] = {1, 3ms, 1, 3ms};
  const StageRows rows = rows_of(profile);
  CHECK(about(row(rows.calls, "wait").total_ns, 5e6));
  CHECK(row(rows.calls, "post").total_ns == 0);
  CHECK(about(row(rows.calls, "over_1ms").total_ns, 3e6));
  CHECK(about(row(rows.calls, "elsewhere").total_ns, 2e6));
}

TEST_CASE("the building of works is timed if it is asked for") {
  Builds builds(true);
  for (int i = 0; i < 3; ++i) builds.end(builds.begin(), 2);
  CHECK(builds.time().times == 6);
  CHECK(builds.time().total >= 0ns);
  Builds all(true);
  all.add(builds);
  all.add(builds);
  CHECK(all.time().times == 12);
  all.clear();
  CHECK(all.time().times == 0);
  Builds off(false);
  off.end(off.begin(), 1);
  CHECK(off.time().times == 0);
}

TEST_CASE("a server's report has its stages, if its device is profiled") {
  Report report{.messages = 3, .windows = 4, .verdict = {}, .profile = example()};
  const auto sent = nlohmann::json(report);
  const auto got = body_of<Report>({.id = 1, .type = "report", .body = sent});
  CHECK(got.messages == 3);
  REQUIRE(got.profile);
  CHECK(nlohmann::json(*got.profile) == nlohmann::json(*report.profile));
  report.profile.reset();
  const auto without = nlohmann::json(report);
  CHECK_FALSE(without.contains("profile"));
  CHECK_FALSE(body_of<Report>({.id = 1, .type = "report", .body = without}).profile);
}

TEST_CASE("stages that a peer of another version lacks took no time, and nonsense is refused") {
  auto sent = nlohmann::json(example());
  sent["stages"].erase("post");
  sent["stages"]["of_a_later_version"] = {1, 2};
  const auto got = sent.get<SideProfile>();
  CHECK(got.stages[static_cast<uint8_t>(Stage::post)].times == 0);
  CHECK(got.stages[static_cast<uint8_t>(Stage::send)].times == 50);
  for (const auto& [field, value] :
       {std::pair("stages", nlohmann::json{{"post", "often"}}),
        std::pair("build", nlohmann::json{"a", 3}), std::pair("seconds", nlohmann::json("long"))}) {
    INFO(field);
    auto bad = nlohmann::json(example());
    bad[field] = value;
    CHECK_THROWS_AS(bad.get<SideProfile>(), NotUnderstood);
  }
}

TEST_CASE("only the rounds that count are in a result's profile") {
  Result result;
  for (const double waited : {0.0, 0.0, 50.0}) {
    Round round{.messages = 10, .waited_percent = waited, .times = {}};
    round.profiles.client = example();
    result.rounds.push_back(round);
  }
  result.settle(2);
  CHECK(result.messages() == 20);
  REQUIRE(result.profiles.client);
  CHECK(about(result.profiles.client->seconds, .002));
  CHECK(result.profiles.client->stages[static_cast<uint8_t>(Stage::post)].times == 400);
  CHECK(result.profiles.client->build.times == 400);
  CHECK_FALSE(result.profiles.server);
}

}  // namespace urma::apps::perf
