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
