// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <set>

#include "congestion/port_meter.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using congestion::find_port_meter;
using congestion::port_meters;
using congestion::PortMeter;
using congestion::PortMeterKind;
using congestion::Signal;

TEST_CASE("port meters are found by their names, which differ") {
  std::set<std::string_view> names;
  for (const PortMeterKind& kind : port_meters()) {
    CHECK(names.insert(kind.name).second);
    CHECK_FALSE(kind.summary.empty());
    CHECK(find_port_meter(kind.name) == &kind);
  }
  CHECK(names.contains("none"));
  CHECK(find_port_meter("") == nullptr);
}

TEST_CASE("each port meter reads hints of one kind, and packets with the other kind may not pass") {
  using congestion::Metering;
  CHECK(find_port_meter("none")->metering == Metering::none);
  CHECK(find_port_meter("caqm_w")->metering == Metering::increases);
  CHECK(find_port_meter("caqm_r")->metering == Metering::rates);
  for (const Metering asked : {Metering::increases, Metering::rates}) {
    CHECK(may_pass(asked, asked));
    CHECK(may_pass(asked, Metering::none));
    CHECK(may_pass(asked, Metering::unknown));
    CHECK_FALSE(may_pass(asked, Metering::other));
  }
  CHECK_FALSE(may_pass(Metering::increases, Metering::rates));
  CHECK_FALSE(may_pass(Metering::rates, Metering::increases));
}

// A packet may pass ports together if it may pass both.
TEST_CASE("ports that read hints in different ways let packets pass as if they were one") {
  using congestion::Metering;
  const Metering all[] = {Metering::unknown, Metering::none, Metering::increases, Metering::rates,
                          Metering::other};
  for (const Metering a : all) {
    for (const Metering b : all) {
      CHECK(together(a, b) == together(b, a));
      for (const Metering asked : {Metering::increases, Metering::rates}) {
        CHECK(may_pass(asked, together(a, b)) == (may_pass(asked, a) && may_pass(asked, b)));
      }
    }
  }
}

TEST_CASE("a switch without congestion control changes no signal") {
  alignas(8) std::array<std::byte, PortMeter::storage> place;
  PortMeter* const meter = find_port_meter("none")->make(place.data(), {});
  const Signal asked{.increase = true, .hint = 7, .switch_queue = 3};
  CHECK(meter->arrive(Time{}, 4096, 1 << 30, asked) == asked);
  CHECK(meter->depart(Time{}, 4096, 1 << 30, asked) == asked);
  meter->~PortMeter();
}

}  // namespace
}  // namespace urma::test
