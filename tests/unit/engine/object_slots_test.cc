// SPDX-License-Identifier: Apache-2.0
#include "engine/object_slots.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "engine/stats_page.h"
#include "tests/catch.h"
#include "urma/core/order.h"

namespace urma::test {
namespace {

using engine::ObjectKind;
using engine::ObjectSlots;
using engine::ObjectView;
using engine::ObjectViews;
using engine::StatsPage;

// The objects of a device, all of whose numbers differ.
std::unique_ptr<ObjectViews> some_objects() {
  auto objects = std::make_unique<ObjectViews>();
  objects->views[0] = {.kind = ObjectKind::jetty,
                       .state = 1,
                       .weight = 7,
                       .id = 2001,
                       .sends = 128,
                       .jfc = 31,
                       .receives_jfc = 32,
                       .jfr = 2003,
                       .outstanding = 5,
                       .urgent = 1};
  objects->views[1] = {.kind = ObjectKind::jfs,
                       .state = 3,
                       .weight = 1,
                       .how = static_cast<uint8_t>(ServiceMode::unreliable),
                       .id = 2002,
                       .sends = 64,
                       .jfc = 31};
  objects->views[2] = {.kind = ObjectKind::jfr, .state = 1, .id = 2003, .receives = 16, .jfc = 32};
  objects->views[3] = {.kind = ObjectKind::jfc, .id = 31, .receives = 512};
  objects->views[4] = {.kind = ObjectKind::segment,
                       .how = static_cast<uint8_t>(Rights::read | Rights::write),
                       .id = 77,
                       .address = 0x7f00'1234'5000,
                       .bytes = 1 << 20};
  objects->count = 5;
  objects->more_jetties = 9;
  objects->more_segments = 10;
  objects->more_jfcs = true;
  return objects;
}

// The page of a device, as its process writes it.
struct ObjectsPage {
  ObjectsPage() { bytes.assign(page.bytes().begin(), page.bytes().end()); }
  void write(const StatsPage::Write& next) {
    std::copy(next.bytes.begin(), next.bytes.end(),
              bytes.begin() + static_cast<ptrdiff_t>(next.offset));
  }
  ObservedObjects read() const { return StatsPage::parse(bytes)->objects.value(); }

  StatsPage page{ObservedDevice{}};
  std::vector<std::byte> bytes;
};

TEST_CASE("a page shows the Jetties, queues and segments of a device") {
  ObjectsPage page;
  CHECK(page.read().jetties.empty());
  page.write(page.page.next_objects(*some_objects()));
  const ObservedObjects seen = page.read();
  REQUIRE(seen.jetties.size() == 3);
  const ObservedJetty& jetty = seen.jetties[0];
  CHECK(jetty.kind == "jetty");
  CHECK(jetty.id == 2001);
  CHECK(jetty.state == "ready");
  CHECK((jetty.sends == 128 && jetty.receives == 0));
  CHECK((jetty.jfc == 31 && jetty.receives_jfc == 32u && jetty.jfr == 2003u));
  CHECK((jetty.weight == 7 && jetty.urgent && jetty.outstanding == 5 && !jetty.unreliable));
  CHECK(seen.jetties[1].kind == "jfs");
  CHECK(seen.jetties[1].state == "error");
  CHECK((seen.jetties[1].unreliable && !seen.jetties[1].urgent));
  CHECK_FALSE((seen.jetties[1].jfr || seen.jetties[1].receives_jfc));
  CHECK(seen.jetties[2].kind == "jfr");
  CHECK(seen.jetties[2].receives == 16);
  REQUIRE(seen.jfcs.size() == 1);
  CHECK((seen.jfcs[0].number == 31 && seen.jfcs[0].depth == 512));
  REQUIRE(seen.segments.size() == 1);
  CHECK((seen.segments[0].token_id == 77 && seen.segments[0].address == 0x7f00'1234'5000));
  CHECK((seen.segments[0].bytes == 1 << 20 &&
         seen.segments[0].rights == (Rights::read | Rights::write)));
  CHECK((seen.more_jetties == 9 && seen.more_segments == 10 && seen.more_jfcs));
}

TEST_CASE("if a writer stops in the middle of its objects, the page has those from before") {
  ObjectsPage page;
  auto objects = some_objects();
  page.write(page.page.next_objects(*objects));
  objects->views[0].id = 3000;
  const StatsPage::Write next = page.page.next_objects(*objects);
  for (size_t stopped_after = 0; stopped_after < next.bytes.size(); ++stopped_after) {
    ObjectsPage torn = page;
    torn.write({next.bytes.first(stopped_after), next.offset});
    const bool all_there = std::equal(next.bytes.begin(), next.bytes.end(),
                                      torn.bytes.begin() + static_cast<ptrdiff_t>(next.offset));
    REQUIRE(torn.read().jetties.at(0).id == (all_there ? 3000 : 2001));
  }
}

TEST_CASE("objects of other versions are read as far as both versions know them") {
  auto objects = some_objects();
  std::vector<std::byte> slots(ObjectSlots::bytes());
  ObjectSlots::fill(slots, 1, *objects);
  ObjectSlots known;
  REQUIRE(known.read_format(ObjectSlots::format()));
  CHECK(known.total_bytes() == ObjectSlots::bytes());
  CHECK(known.parse(slots)->jetties.size() == 3);

  // A kind, a state and rights of a later version.
  objects->views[0].state = 77;
  objects->views[1].kind = static_cast<ObjectKind>(77);
  objects->views[4].how = 255;
  ObjectSlots::fill(slots, 2, *objects);
  const ObservedObjects strange = known.parse(slots).value();
  REQUIRE(strange.jetties.size() == 2);
  CHECK(strange.jetties[0].state == "?");
  CHECK(strange.segments.at(0).rights == Rights::local_only);

  for (const char* bad : {"", "\t", "96", "96\t", "0\t48", "96\t15", "x\t48", "96\t48x",
                          "99999\t48", "96\t99999", "-1\t48"}) {
    INFO(bad);
    CHECK_FALSE(ObjectSlots().read_format(bad));
  }
}

TEST_CASE("objects with any wrong bytes are those that were written, or are refused") {
  std::vector<std::byte> slots(ObjectSlots::bytes());
  const auto objects = some_objects();
  const size_t used = ObjectSlots::fill(slots, 2, *objects).size();
  ObjectSlots known;
  REQUIRE(known.read_format(ObjectSlots::format()));
  for (size_t bit = 0; bit < used * 8; ++bit) {
    std::vector<std::byte> wrong = slots;
    wrong[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    REQUIRE(known.parse(wrong).status() == Status::would_block);
  }
}

}  // namespace
}  // namespace urma::test
