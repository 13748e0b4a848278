// SPDX-License-Identifier: Apache-2.0
#include "engine/profiler.h"

#include <set>
#include <string>
#include <thread>

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace engine;

uint64_t all_ticks(const StageTimes& times) {
  uint64_t sum = 0;
  for (const StageInfo& info : all_stages()) sum += times.sum(info.stage).ticks;
  return sum;
}

TEST_CASE("each stage has its own row with texts, in the order of the enumeration") {
  REQUIRE(all_stages().size() == stage_count);
  std::set<std::string_view> names;
  uint8_t number = 0;
  for (const StageInfo& info : all_stages()) {
    INFO(info.name);
    CHECK(static_cast<uint8_t>(info.stage) == number++);
    CHECK(names.insert(info.name).second);
    CHECK(info.meaning.ends_with('.'));
  }
  CHECK(is_call(Stage::wait));
  CHECK_FALSE(is_call(Stage::copy_in_post));
}

TEST_CASE("the times of a stage add up, and other stages stay as they are") {
  StageTimes times;
  times.add(Stage::send, 100, 130);
  times.add(Stage::send, 1000, 1004);
  times.add(Stage::take, 130, 130);
  CHECK(times.sum(Stage::send).times == 2);
  CHECK(times.sum(Stage::send).ticks == 34);
  CHECK(times.sum(Stage::take).times == 1);
  CHECK(all_ticks(times) == 34);
  times.add_shared(Stage::send, 1, 7);
  CHECK(times.sum(Stage::send).times == 3);
  CHECK(times.sum(Stage::send).ticks == 40);
}

TEST_CASE("a stage that seems to end before it began takes no time") {
  StageTimes times;
  times.add(Stage::settle, 100, 99);
  CHECK(times.sum(Stage::settle).times == 1);
  CHECK(times.sum(Stage::settle).ticks == 0);
}

TEST_CASE("stages of more than a millisecond are counted apart, too") {
  StageTimes times;
  const uint64_t millisecond = Ticks::of_this_machine().ticks_in(std::chrono::milliseconds(1));
  times.add(Stage::send, 5, 5 + millisecond);
  CHECK(times.sum(Stage::send).long_times == 0);
  times.add(Stage::send, 5, 6 + millisecond);
  times.add(Stage::send, 5, 6 + 2 * millisecond);
  CHECK(times.sum(Stage::send).times == 3);
  CHECK(times.sum(Stage::send).ticks == 4 * millisecond + 2);
  CHECK(times.sum(Stage::send).long_times == 2);
  CHECK(times.sum(Stage::send).long_ticks == 3 * millisecond + 2);
}

TEST_CASE("stages that follow one another account for all the time between their ends") {
  StageTimes times;
  const uint64_t before = times.now();
  StageTimer timer(times);
  const uint64_t begun = times.now();
  for (const Stage stage : {Stage::receive, Stage::commands, Stage::receive, Stage::finish})
    timer.ended(stage);
  const uint64_t last = times.now();
  timer.ended(Stage::finish);
  const uint64_t after = times.now();
  CHECK(times.sum(Stage::receive).times == 2);
  CHECK(times.sum(Stage::commands).times == 1);
  CHECK(times.sum(Stage::finish).times == 2);
  CHECK(all_ticks(times) >= last - begun);
  CHECK(all_ticks(times) <= after - before);
}

TEST_CASE("a profile has the sums of the passes and of the calls of all threads") {
  Profiler profiler;
  const double ns_per_tick = Ticks::of_this_machine().ns_per_tick();
  constexpr uint64_t many = 1'000'000;
  profiler.passes().add(Stage::send, 0, many);
  const auto post = [&](uint64_t ticks) { profiler.calls().add_shared(Stage::post, 0, ticks); };
  post(many);
  for (int i = 0; i < 2; ++i) std::thread(post, many + many / 2).join();
  profiler.calls().add_shared(Stage::poll_found, 0, many);
  const Profile profile = profiler.read();
  CHECK(profile.cost_ns > 0);
  CHECK(profile[Stage::post].times == 3);
  const double ns = static_cast<double>(many) * ns_per_tick;
  CHECK(std::abs(static_cast<double>(profile[Stage::post].total.count()) - 4 * ns) < 2);
  CHECK(std::abs(static_cast<double>(profile[Stage::poll_found].total.count()) - ns) < 2);
  CHECK(std::abs(static_cast<double>(profile[Stage::send].total.count()) - ns) < 2);
  CHECK(profile[Stage::send].times == 1);
  const auto millisecond = Ticks::of_this_machine().ticks_in(std::chrono::milliseconds(1));
  profiler.calls().add_shared(Stage::wait, 0, 2 * millisecond);
  profiler.passes().add(Stage::take, 0, 3 * millisecond);
  CHECK(profile[Stage::settle].times == 0);
  const Profile later = profiler.read();
  CHECK(later.at >= profile.at);
  CHECK(later[Stage::post].total == profile[Stage::post].total);
  CHECK(later[Stage::wait].long_times == 1);
  CHECK(later[Stage::wait].long_total == later[Stage::wait].total);
  CHECK(later[Stage::take].long_total > std::chrono::microseconds(2990));
  CHECK(later[Stage::take].long_total <= std::chrono::milliseconds(3));
}

}  // namespace
}  // namespace urma::test
