// SPDX-License-Identifier: Apache-2.0
#include "urma/core/setting.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("numbers are written in the largest unit of which they are multiples") {
  CHECK(size_text(0) == "0");
  CHECK(size_text(1023) == "1023");
  CHECK(size_text(1024) == "1K");
  CHECK(size_text(1536) == "1536");
  CHECK(size_text(3 << 20) == "3M");
  CHECK(size_text(uint64_t{5} << 30) == "5G");
  CHECK(size_text(UINT64_MAX) == "18446744073709551615");
  CHECK(duration_text(Duration{}) == "0s");
  CHECK(duration_text(2s) == "2s");
  CHECK(duration_text(1500us) == "1500us");
  CHECK(duration_text(1ns) == "1ns");
  CHECK(fraction_text(0.05) == "5%");
  CHECK(fraction_text(0.001) == "0.1%");
  CHECK(yes_or_no(true) == "yes");
}

TEST_CASE("a setting that is set again keeps its place") {
  SettingList settings;
  set(settings, {.name = "mtu", .value = "8K"});
  set(settings, {.name = "eid", .value = "::1"});
  set(settings, {.name = "mtu", .value = "4K", .origin = Origin::system});
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].name == "mtu");
  CHECK(settings[0].value == "4K");
  CHECK(settings[0].origin == Origin::system);
  CHECK(settings[1].value == "::1");
}

TEST_CASE("each origin has a name of its own") {
  for (unsigned a = 0; a <= static_cast<unsigned>(Origin::drawn); ++a) {
    CHECK_FALSE(name(static_cast<Origin>(a)).empty());
    for (unsigned b = 0; b < a; ++b)
      CHECK(name(static_cast<Origin>(a)) != name(static_cast<Origin>(b)));
  }
}

}  // namespace
}  // namespace urma::test
