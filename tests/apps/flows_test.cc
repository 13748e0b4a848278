// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/flows.h"

#include <cmath>
#include <set>
#include <utility>

#include "apps/common/values.h"
#include "apps/urma_perf/ping.h"
#include "apps/urma_perf/result.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

std::set<std::pair<uint32_t, uint32_t>> pairs_of(const char* name, uint32_t processes) {
  const Traffic* const traffic = OneOf{all_traffic}.read(name).value();
  std::set<std::pair<uint32_t, uint32_t>> out;
  for (const Flow& flow : traffic->flows(processes, *find_test("send_bw"))) {
    CHECK(flow.test->name == "send_bw");
    CHECK(out.insert({flow.from, flow.to}).second);
  }
  return out;
}

Result flow_result(int64_t begin, double seconds, uint64_t messages, uint64_t ns) {
  Result result;
  result.what = {.test = find_test("write_bw"), .bytes = 1000};
  Round round{.begin = begin, .seconds = seconds, .messages = messages, .times = {}};
  round.messages_per_second = static_cast<double>(messages) / seconds;
  round.times.record(ns, messages);
  result.times = round.times;
  result.rounds.push_back(std::move(round));
  return result;
}

}  // namespace

TEST_CASE("a pattern says which process sends to which") {
  using Pairs = std::set<std::pair<uint32_t, uint32_t>>;
  CHECK(pairs_of("one_to_one", 4) == Pairs{{0, 2}, {1, 3}});
  CHECK(pairs_of("incast", 4) == Pairs{{1, 0}, {2, 0}, {3, 0}});
  CHECK(pairs_of("all_to_all", 3) == Pairs{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}});
  CHECK(pairs_of("all_to_all", 16).size() == 240);
}

TEST_CASE("a pattern refuses numbers of processes that it does not have") {
  const Traffic* const pairs = OneOf{all_traffic}.read("one_to_one").value();
  const Traffic* const all = OneOf{all_traffic}.read("all_to_all").value();
  CHECK(objection(*pairs, 4).empty());
  CHECK(objection(*pairs, 5).find("Fix: --processes 6") != std::string::npos);
  CHECK(objection(*all, 16).empty());
  CHECK(objection(*all, 17).find("Fix: --processes 16 or fewer") != std::string::npos);
}

TEST_CASE("the sum of flows has the sum of their rates, and the latencies of all messages") {
  Result sum;
  sum.what = {.test = find_test("write_bw"), .bytes = 1000};
  sum.add_flow({0, 1, find_test("write_bw")}, flow_result(0, 1, 300, 1000));
  CHECK(sum.overlap_percent == 100);
  sum.add_flow({1, 0, find_test("read_bw")}, flow_result(0, 1, 100, 5000));
  CHECK(sum.messages() == 400);
  CHECK(sum.messages_per_second() == 400);
  CHECK(sum.us(0.5) < 1.01);
  CHECK(sum.us(0.99) > 4.9);
  CHECK(sum.overlap_percent == 100);
  REQUIRE(sum.flows.size() == 2);
  CHECK(sum.flows[1].bytes_per_second == 100'000);
  // The third one begins after half of the time, and runs as long as the others.
  sum.add_flow({2, 0, find_test("read_bw")}, flow_result(500'000'000, 1, 100, 5000));
  CHECK(sum.overlap_percent > 33);
  CHECK(sum.overlap_percent < 34);
  CHECK(sum.seconds() == 1.5);
  // And this one ran when the first two had ended.
  sum.add_flow({3, 0, find_test("read_bw")}, flow_result(2'000'000'000, 1, 100, 5000));
  CHECK(sum.overlap_percent == 0);
}

TEST_CASE("round trips have a least, a mean, a largest and a standard deviation") {
  RoundTrips times;
  CHECK(times.mean_us() == 0);
  CHECK(times.deviation_us() == 0);
  for (const double us : {10.0, 20.0, 30.0, 40.0}) times.add(us);
  CHECK(times.count() == 4);
  CHECK(times.least_us() == 10);
  CHECK(times.most_us() == 40);
  CHECK(times.mean_us() == 25);
  CHECK(std::abs(times.deviation_us() - 11.18) < 0.01);
}

}  // namespace urma::apps::perf
