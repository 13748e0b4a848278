#include <algorithm>
#include <array>
#include <set>

#include "base/prng.h"
#include "congestion/controller.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using congestion::Acknowledged;
using congestion::Controller;
using congestion::ControllerKind;
using congestion::controllers;
using congestion::find_controller;
using congestion::Lost;
using congestion::Settings;

// A controller in memory as in a channel, with guard bytes on both sides.
class Place {
 public:
  Place(const ControllerKind& kind, const Settings& settings) {
    bytes_.fill(guard);
    controller_ = kind.make(bytes_.data() + Controller::storage, settings);
  }
  ~Place() { controller_->~Controller(); }
  Controller& operator*() { return *controller_; }
  bool intact() const {
    const auto is_guard = [](std::byte byte) { return byte == guard; };
    return std::all_of(bytes_.begin(), bytes_.begin() + Controller::storage, is_guard) &&
           std::all_of(bytes_.end() - Controller::storage, bytes_.end(), is_guard);
  }

 private:
  static constexpr std::byte guard{0xa5};
  alignas(8) std::array<std::byte, 3 * Controller::storage> bytes_;
  Controller* controller_;
};

TEST_CASE("controllers are found by their names, which differ; the first one reacts to loss") {
  std::set<std::string_view> names;
  for (const ControllerKind& kind : controllers()) {
    CHECK(names.insert(kind.name).second);
    CHECK_FALSE(kind.summary.empty());
    CHECK(find_controller(kind.name) == &kind);
  }
  CHECK(names.contains("aimd"));
  CHECK(names.contains("fixed"));
  CHECK(controllers().front().name == "aimd");
  CHECK(find_controller("") == nullptr);
  CHECK(find_controller("AIMD") == nullptr);
}

// Reports an event as a channel might report it, plausible or not.
void random_event(Controller& controller, Prng& prng, Time now, uint64_t limit) {
  const Duration rtt(static_cast<int64_t>(prng.below(uint64_t{1} << prng.between(1, 32))));
  if (prng.chance(0.8)) {
    controller.handle(Acknowledged{.now = now,
                                   .rtt = rtt,
                                   .bytes = prng.between(1, 1 << 20),
                                   .inflight_bytes = prng.below(2 * limit + 2)});
  } else {
    controller.handle(
        Lost{.now = now, .rtt = rtt, .bytes = prng.below(1 << 20), .timed_out = prng.chance(0.2)});
  }
}

TEST_CASE("a window never exceeds the receiver's buffer, and is never zero") {
  for (const ControllerKind& kind : controllers()) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      INFO(kind.name << " seed " << seed);
      Prng prng(seed);
      const Settings settings{.packet_bytes = static_cast<uint32_t>(prng.between(1, 9000)),
                              .limit_bytes = prng.between(1, uint64_t{1} << prng.between(1, 32))};
      Place place(kind, settings);
      Controller& controller = *place;
      const uint64_t least = std::min<uint64_t>(4 * settings.packet_bytes, settings.limit_bytes);
      Time now{};
      for (int i = 0; i < 1000; ++i) {
        REQUIRE(controller.window_bytes() <= settings.limit_bytes);
        REQUIRE(controller.window_bytes() >= least);
        now += Duration(static_cast<int64_t>(prng.below(uint64_t{1} << prng.between(1, 34))));
        random_event(controller, prng, now, settings.limit_bytes);
      }
      REQUIRE(place.intact());
    }
  }
}

TEST_CASE("the fixed window is the receiver's buffer, whatever happens") {
  Place place(*find_controller("fixed"), {.packet_bytes = 1000, .limit_bytes = 12'345});
  Prng prng(1);
  for (int i = 0; i < 100; ++i) {
    CHECK((*place).window_bytes() == 12'345);
    random_event(*place, prng, Time(Duration(i)), 12'345);
  }
}

}  // namespace
}  // namespace urma::test
