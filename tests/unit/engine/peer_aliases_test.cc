#include "engine/peer_aliases.h"

#include <atomic>
#include <thread>

#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::PeerAliases;
using Inner = PeerAliases::Inner;

TEST_CASE("a name is turned into that of its engine and back") {
  PeerAliases aliases(1, 3, 16);
  const PeerId outer = PeerAliases::outer_name(2, {7, 3});
  CHECK(PeerAliases::engine_of(outer) == 2);
  CHECK(PeerAliases::name_there(outer) == PeerId{7, 3});
  CHECK_FALSE(aliases.inner(outer).exact);
  aliases.add(outer, {.exact = {4, 1}, .nearest = {5, 9}, .life = Incarnation{77}}, true);
  CHECK(aliases.inner(outer).exact == PeerId{4, 1});
  CHECK(aliases.inner(outer).nearest == PeerId{5, 9});
  CHECK(aliases.inner(outer).life == Incarnation{77});
  CHECK(aliases.outer({4, 1}, true) == outer);
  CHECK(aliases.outer({4, 1}, false) == outer);
  CHECK(aliases.outer({5, 9}, false) == outer);
  // An answer to this name would reach another engine of the peer.
  CHECK(aliases.outer({5, 9}, true) == PeerAliases::outer_name(1, {5, 9}));
}

TEST_CASE("a name of another generation, engine or table names nothing") {
  PeerAliases aliases(0, 2, 16);
  const PeerId outer{3, 5};
  aliases.add(outer, {.exact = {3, 5}, .nearest = {3, 5}, .life = {}}, true);
  CHECK_FALSE(aliases.inner({3, 7}).exact);
  CHECK_FALSE(aliases.inner(PeerAliases::outer_name(1, {3, 5})).exact);
  CHECK_FALSE(aliases.inner(PeerAliases::outer_name(7, {3, 5})).exact);
  CHECK_FALSE(aliases.inner({16, 5}).exact);
  CHECK_FALSE(aliases.inner({}).exact);
  aliases.add({16, 5}, {.exact = {1, 1}, .nearest = {1, 1}, .life = {}}, true);
  aliases.add({}, {.exact = {1, 1}, .nearest = {1, 1}, .life = {}}, true);
  CHECK(aliases.outer({1, 1}, true) == PeerId{1, 1});
  CHECK(aliases.outer({3, 7}, true) == PeerId{3, 7});
  CHECK(aliases.outer({99, 1}, true) == PeerId{99, 1});
}

TEST_CASE("the latest of several names of a peer is shown, and all of them are understood") {
  PeerAliases aliases(0, 2, 16);
  aliases.add({3, 5}, {.exact = {2, 1}, .nearest = {4, 1}, .life = {}}, true);
  const PeerId later = PeerAliases::outer_name(1, {3, 5});
  aliases.add(later, {.exact = {2, 1}, .nearest = {2, 1}, .life = {}}, false);
  CHECK(aliases.outer({2, 1}, true) == PeerId{3, 5});
  aliases.add(later, {.exact = {2, 1}, .nearest = {2, 1}, .life = {}}, true);
  CHECK(aliases.outer({2, 1}, true) == later);
  CHECK(aliases.outer({4, 1}, false) == PeerId{3, 5});
  CHECK(aliases.inner({3, 5}).exact == PeerId{2, 1});
  CHECK(aliases.inner(later).exact == PeerId{2, 1});
}

// A posting thread looks names up while others import.
TEST_CASE("a name that is being changed is found whole or not at all") {
  PeerAliases aliases(0, 1, 4);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> torn{0};
  std::thread reader([&] {
    while (!stop) {
      for (uint32_t generation = 1; generation < 64; generation += 2) {
        const Inner names = aliases.inner({2, generation});
        const bool whole = !names.exact || (names.exact.generation == generation &&
                                            names.nearest.generation == generation &&
                                            number(names.life) == generation);
        torn += !whole;
      }
    }
  });
  for (uint32_t round = 0; round < 20000; ++round) {
    const uint32_t generation = round % 32 * 2 + 1;
    aliases.add(
        {2, generation},
        {.exact = {1, generation}, .nearest = {1, generation}, .life = Incarnation{generation}},
        true);
  }
  stop = true;
  reader.join();
  CHECK(torn == 0);
}

}  // namespace
}  // namespace urma::test
