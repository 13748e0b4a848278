// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_aliases.h"

#include <atomic>
#include <thread>

#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::PeerAliases;

TEST_CASE("the name of a device is turned into those of its engines and back") {
  PeerAliases aliases(3, 16);
  const PeerId outer = PeerAliases::outer_name(2, {7, 3});
  CHECK(PeerAliases::engine_of(outer) == 2);
  CHECK(PeerAliases::name_there(outer) == PeerId{7, 3});
  CHECK(aliases.engines(outer) == 0);
  CHECK_FALSE(aliases.inner(outer, 0));
  aliases.add(outer, 2);
  aliases.add(outer, 0, {4, 1});
  CHECK(aliases.engines(outer) == 2);
  CHECK(aliases.inner(outer, 0) == PeerId{4, 1});
  CHECK_FALSE(aliases.inner(outer, 1));
  aliases.add(outer, 1, {5, 9});
  CHECK(aliases.inner(outer, 1) == PeerId{5, 9});
  aliases.add(outer, 2);  // changes nothing
  CHECK(aliases.inner(outer, 0) == PeerId{4, 1});
  CHECK(aliases.outer({4, 1}) == outer);
  CHECK(aliases.outer({5, 9}) == outer);
  CHECK_FALSE(aliases.outer({6, 1}));
}

TEST_CASE("a name of another generation, engine or table names nothing") {
  PeerAliases aliases(2, 16);
  const PeerId outer{3, 5};
  aliases.add(outer, 1);
  aliases.add(outer, 0, {3, 5});
  CHECK_FALSE(aliases.inner({3, 7}, 0));
  CHECK_FALSE(aliases.inner(PeerAliases::outer_name(1, {3, 5}), 0));
  CHECK_FALSE(aliases.inner(PeerAliases::outer_name(7, {3, 5}), 0));
  CHECK_FALSE(aliases.inner({16, 5}, 0));
  CHECK_FALSE(aliases.inner({}, 0));
  CHECK_FALSE(aliases.inner(outer, 7));
  CHECK_FALSE(aliases.inner(outer, 8));
  for (const PeerId wrong : {PeerId{16, 5}, PeerId{}}) {
    aliases.add(wrong, 1);
    aliases.add(wrong, 0, {1, 1});
    CHECK(aliases.engines(wrong) == 0);
  }
  CHECK_FALSE(aliases.outer({1, 1}));
  CHECK_FALSE(aliases.outer({3, 7}));
  CHECK_FALSE(aliases.outer({99, 1}));
}

// Events about the end of a peer may be read after the next one has come.
TEST_CASE("a peer keeps its name until the second one after it has its index") {
  PeerAliases aliases(1, 16);
  for (uint32_t generation = 1; generation < 20; generation += 2) {
    const PeerId outer{2, generation};
    aliases.add(outer, 1);
    aliases.add(outer, 0, {5, generation});
    CHECK(aliases.outer({5, generation}) == outer);
    if (generation > 1) CHECK(aliases.outer({5, generation - 2}) == PeerId{2, generation - 2});
    if (generation > 3) CHECK_FALSE(aliases.outer({5, generation - 4}));
    CHECK_FALSE(aliases.inner({2, generation - 2}, 0));
  }
}

TEST_CASE("a name is added to a device that is known, and can be taken away") {
  PeerAliases aliases(1, 16);
  aliases.add({3, 1}, 2);
  aliases.add({3, 1}, 1, {6, 1});
  aliases.add({3, 3}, 1, {7, 1});  // another generation, which is not known
  CHECK(aliases.inner({3, 1}, 1) == PeerId{6, 1});
  CHECK_FALSE(aliases.outer({7, 1}));
  aliases.add({3, 1}, 2, {8, 1});  // it has two engines
  CHECK_FALSE(aliases.outer({8, 1}));
  aliases.add({3, 1}, 1, {});
  CHECK_FALSE(aliases.inner({3, 1}, 1));
  aliases.add({3, 1}, 1, {9, 1}, false);
  CHECK(aliases.inner({3, 1}, 1) == PeerId{9, 1});
  CHECK_FALSE(aliases.outer({9, 1}));
}

TEST_CASE("a peer that was met before it was imported gets the name of its import") {
  PeerAliases aliases(2, 16);
  const PeerId met = PeerAliases::outer_name(1, {4, 1});
  aliases.call({4, 1}, met);
  CHECK(aliases.outer({4, 1}) == met);
  aliases.add({9, 3}, 2);
  aliases.add({9, 3}, 1, {4, 1});
  CHECK(aliases.outer({4, 1}) == PeerId{9, 3});
}

// A posting thread looks names up while others import.
TEST_CASE("a name that is being changed is that of its generation or none") {
  PeerAliases aliases(1, 4);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::thread reader([&] {
    while (!stop) {
      for (uint32_t generation = 1; generation < 64; generation += 2) {
        const PeerId inner = aliases.inner({2, generation}, 1);
        wrong += inner && inner.generation != generation;
        const PeerId outer = aliases.outer({1, generation});
        wrong += outer && outer.generation != generation;
      }
    }
  });
  for (uint32_t round = 0; round < 20000; ++round) {
    const uint32_t generation = round % 32 * 2 + 1;
    aliases.add({2, generation}, 2);
    aliases.add({2, generation}, 1, {1, generation});
  }
  stop = true;
  reader.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace urma::test
