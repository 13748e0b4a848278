// SPDX-License-Identifier: Apache-2.0
#include "engine/device_counters.h"

#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using engine::Engine;

// A port that has counted.
class CountingPort final : public IdlePort {
 public:
  drivers::PortCounters counters() const override {
    return {.frames_sent = 1,
            .frames_received = 2,
            .calls_sent = 3,
            .calls_received = 4,
            .send_failures = 5,
            .unreachable = 6,
            .malformed = 7,
            .refused = 8,
            .ignored = 9,
            .injected = 10,
            .latest_failure = 11,
            .uncaptured = 12,
            .shortage = Ways::Shortage::none};
  }
};

struct Counted {
  Engine engine{std::make_unique<CountingPort>(), idle_settings(),
                std::make_unique<SeededEntropy>(1)};
};

TEST_CASE("the counters of a device include those of its port") {
  Counted counted;
  const Statistics out = statistics_of(counted.engine);
  CHECK(out.frames_sent == 1);
  CHECK(out.frames_received == 2);
  CHECK(out.send_calls == 3);
  CHECK(out.receive_calls == 4);
  CHECK(out.send_failures == 5);
  CHECK(out.unreachable == 6);
  CHECK(out.dropped_malformed == 7);
  CHECK(out.refused == 8);
  CHECK(out.ignored == 9);
  CHECK(out.faults_injected == 10);
  CHECK(out.uncaptured == 12);
  CHECK(engine::snapshot_of(counted.engine).send_failure == 11);
}

TEST_CASE("passes, segments and Jetties are counted, and unknown peers have no paths") {
  Counted counted;
  const Statistics before = statistics_of(counted.engine);
  counted.engine.pass<engine::NoStages>(Time{std::chrono::seconds(1)}, nullptr, {});
  std::array<std::byte, 64> memory{};
  memseg::SegmentTable::Made made;
  counted.engine.registrations().add(
      {.base = memory.data(), .bytes = memory.size(), .rights = Rights::read},
      TokenPolicy::plain_text, {}, made);
  const Statistics after = statistics_of(counted.engine);
  CHECK(after.passes == before.passes + 1);
  CHECK(after.segments == before.segments + 1);
  CHECK(after.jetties == before.jetties);
  std::array<Path, most_paths> paths;
  CHECK_FALSE(paths_to(counted.engine, PeerId{}, paths));
}

}  // namespace
}  // namespace urma::test
