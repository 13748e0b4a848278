// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/assemblies.h"

#include <array>
#include <map>
#include <set>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using jetty::Assemblies;
using jetty::Assembly;
using jetty::ExecutionRecord;
using Mark = ExecutionRecord::Mark;

PeerId peer_at(uint32_t index) { return {.index = index, .generation = 1}; }

std::set<uint32_t> slices_of(Assemblies& assemblies, const jetty::PeerState& state) {
  std::set<uint32_t> slices;
  for (Assembly* one = assemblies.first_of(state); one != nullptr; one = assemblies.next_of(*one)) {
    REQUIRE(slices.insert(one->slice).second);
  }
  return slices;
}

TEST_CASE("assemblies: a slice is found by its channel and number, and by its peer") {
  constexpr uint32_t peer_count = 3;
  constexpr uint32_t capacity = 24;
  jetty::PeerStates peers(peer_count);
  Assemblies assemblies(capacity, peers);
  // By peer, which has the channel of that number, and by slice.
  std::map<std::pair<uint32_t, uint32_t>, Assembly*> model;
  Prng prng(1);
  for (int step = 0; step < 20'000; ++step) {
    const auto of = static_cast<uint32_t>(prng.below(peer_count));
    const auto slice = static_cast<uint32_t>(prng.below(16));
    Assembly* const found = assemblies.find({.peer = peer_at(of), .channel = of, .slice = slice});
    const auto known = model.find({of, slice});
    REQUIRE(found == (known == model.end() ? nullptr : known->second));
    if (found != nullptr) {
      assemblies.erase(*found);
      model.erase(known);
    } else if (assemblies.room() > 0) {
      model[{of, slice}] = &assemblies.create({.peer = peer_at(of), .channel = of, .slice = slice});
    }
    REQUIRE(assemblies.room() == capacity - model.size());
    std::set<uint32_t> expected;
    for (const auto& [name, assembly] : model) {
      REQUIRE(&assemblies.at(assemblies.index_of(*assembly)) == assembly);
      if (name.first == of) expected.insert(name.second);
    }
    REQUIRE(slices_of(assemblies, peers.at(peer_at(of))) == expected);
    REQUIRE(peers.at(peer_at(of)).assemblies == expected.size());
  }
}

// Two Jetties, of which the second one has lent its receives to the first one, and one slice that
// fills a receive slot.
struct Receiving {
  Receiving() {
    const Buffer buffer{memory.data(), memory.size()};
    REQUIRE(lender.queues->receive({&buffer, 1}, 1) == 1);
    REQUIRE(lender.take_receive(assembly.receive));
    assembly.hold(target, lender);
    record.see(number);
    record.set(number, Mark::executing);
    assembly.record = &record;
    assembly.number = number;
  }
  jetty::Jetty& create(uint32_t id) {
    return *jetties.create(JettyId(id), TokenValue(id), {jetty::Queues::with_own_jfc(4, 4, 0), {}});
  }
  // The slice holds nothing any more, and may be executed when it arrives again.
  void require_given_back(Assembly::Verdict verdict) const {
    CHECK(assembly.verdict == verdict);
    CHECK(target.assemblies == 0);
    CHECK(lender.assemblies == 0);
    CHECK(lender.recycled_count == 1);
    CHECK(record.mark(number) == Mark::none);
    CHECK(assembly.jetty == nullptr);
    CHECK(assembly.record == nullptr);
  }
  void require_held() const {
    CHECK(assembly.verdict == Assembly::Verdict::run);
    CHECK(target.assemblies == 1);
    CHECK(lender.assemblies == 1);
    CHECK(lender.recycled_count == 0);
    CHECK(record.mark(number) == Mark::executing);
  }

  std::array<std::byte, 64> memory{};
  jetty::PeerStates peers{1};
  jetty::Jetties jetties{4};
  jetty::Jetty& target = create(1);
  jetty::Jetty& lender = create(2);
  jetty::Jetty& other = create(3);
  ExecutionRecord record{7};
  Tassn number = Tassn::first(7);
  Assemblies assemblies{4, peers};
  Assembly& assembly = assemblies.create({.peer = peer_at(0)});
};

TEST_CASE("assemblies: a slice is refused when its Jetty ends, or the JFR that it uses") {
  SECTION("its Jetty") {
    Receiving slice;
    slice.assemblies.detach(slice.other);
    slice.require_held();
    slice.assemblies.detach(slice.target);
    slice.require_given_back(Assembly::Verdict::refuse);
  }
  SECTION("its JFR") {
    Receiving slice;
    slice.assemblies.detach(slice.lender);
    slice.require_given_back(Assembly::Verdict::no_receives);
  }
}

TEST_CASE("assemblies: a message is refused when the memory that it fills is flushed") {
  Receiving slice;
  const std::byte* const begin = slice.memory.data();
  slice.assemblies.flush(begin + slice.memory.size(), 8);
  slice.assemblies.flush(begin - 8, 8);
  slice.require_held();
  slice.assemblies.flush(begin + slice.memory.size() - 1, 1);
  slice.require_given_back(Assembly::Verdict::refuse);
}

TEST_CASE("assemblies: a permit for an immediate is given back") {
  Receiving slice;
  slice.assembly.receive = jetty::Queues::none;
  slice.assembly.permit = true;
  ++slice.lender.immediates_raised;
  slice.assembly.give_back();
  CHECK(slice.lender.immediates_raised == 0);
  CHECK(slice.lender.recycled_count == 0);
  CHECK(slice.lender.assemblies == 0);
  slice.assembly.give_back();
  CHECK(slice.lender.assemblies == 0);
}

}  // namespace
}  // namespace urma::test
