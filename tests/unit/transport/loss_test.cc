#include "transport/loss.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::is_lost;
using transport::LossEvidence;

const Psn acknowledged = Psn::first(2);  // its predecessors lie on the other side of the wrap

TEST_CASE("a packet sent once is lost when the third after it has been acknowledged") {
  const LossEvidence evidence{.highest_acknowledged = acknowledged,
                              .newest_acknowledged_sent = Time(1ms),
                              .reorder_window = 1s};
  for (uint64_t behind = 0; behind < 10; ++behind) {
    INFO(behind << " behind");
    CHECK(is_lost(acknowledged - behind, Time(1ms), false, evidence) == (behind >= 3));
  }
  for (uint64_t ahead = 1; ahead < 10; ++ahead) {
    CHECK_FALSE(is_lost(acknowledged + ahead, Time(1ms), false, evidence));
  }
}

TEST_CASE("of a packet sent again its number says nothing") {
  const LossEvidence evidence{.highest_acknowledged = acknowledged,
                              .newest_acknowledged_sent = Time(1ms),
                              .reorder_window = 1s};
  CHECK_FALSE(is_lost(acknowledged - 1000, Time(1ms), true, evidence));
}

TEST_CASE("a packet is lost when one sent later than the reorder window has been acknowledged") {
  const LossEvidence evidence{.highest_acknowledged = acknowledged,
                              .newest_acknowledged_sent = Time(10ms),
                              .reorder_window = 4ms};
  for (const bool again : {false, true}) {
    CHECK(is_lost(acknowledged - 1, Time(6ms - 1ns), again, evidence));
    CHECK_FALSE(is_lost(acknowledged - 1, Time(6ms), again, evidence));
    CHECK_FALSE(is_lost(acknowledged + 5, Time(10ms), again, evidence));
    CHECK_FALSE(is_lost(acknowledged + 5, Time(11ms), again, evidence));
  }
}

TEST_CASE("more evidence never makes a lost packet whole again") {
  for (int64_t behind = 0; behind < 6; ++behind) {
    for (int64_t sent = 0; sent < 6; ++sent) {
      for (const bool again : {false, true}) {
        bool lost = false;
        for (uint64_t news = 0; news < 8; ++news) {
          const bool now_lost =
              is_lost(acknowledged - static_cast<uint64_t>(behind), Time(Duration(sent)), again,
                      {.highest_acknowledged = acknowledged + news,
                       .newest_acknowledged_sent = Time(Duration(static_cast<int64_t>(news))),
                       .reorder_window = 2ns});
          REQUIRE((now_lost || !lost));
          lost = now_lost;
        }
      }
    }
  }
}

}  // namespace
}  // namespace urma::test
