// SPDX-License-Identifier: Apache-2.0
#include "urma/core/sequence.h"

#include "base/prng.h"
#include "tests/catch.h"
#include "urma/core/ids.h"

namespace urma::test {
namespace {

using Tiny = Sequence<struct TinySpace, 4>;

// Returns the number with these wire bits that is nearest to the reference; of two equally near,
// the later.
uint64_t nearest(uint64_t reference, uint32_t wire) {
  uint64_t best = 0;
  uint64_t least = UINT64_MAX;
  for (uint64_t value = wire; value < reference + 2 * Tiny::modulus; value += Tiny::modulus) {
    const uint64_t distance = value > reference ? value - reference : reference - value;
    if (distance <= least) best = value, least = distance;
  }
  return best;
}

TEST_CASE("unwrapping finds the nearest number, for every reference and wire value") {
  for (uint64_t reference = Tiny::modulus; reference < 5 * Tiny::modulus; ++reference) {
    for (uint32_t wire = 0; wire < Tiny::modulus; ++wire) {
      INFO("reference " << reference << " wire " << wire);
      const Tiny found = Tiny::unwrap({reference}, wire);
      REQUIRE(found.value == nearest(reference, wire));
      REQUIRE(found.wire() == wire);
    }
  }
}

TEST_CASE("bits above those on the wire are ignored") {
  CHECK(Tiny::unwrap({40}, 0xfffffff9) == Tiny::unwrap({40}, 9));
  CHECK(Tiny::first(0x35) == Tiny::first(5));
}

template <class Number>
void follow(uint64_t seed) {
  Prng prng(seed);
  Number number = Number::first(static_cast<uint32_t>(prng.next()));
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t step = prng.below(Number::modulus / 2 + 1);
    const Number ahead = number + step;
    REQUIRE(Number::unwrap(number, ahead.wire()) == ahead);
    if (step < Number::modulus / 2) REQUIRE(Number::unwrap(ahead, number.wire()) == number);
    REQUIRE(ahead - number == static_cast<int64_t>(step));
    REQUIRE(number - ahead == -static_cast<int64_t>(step));
    REQUIRE((ahead > number) == (step > 0));
    REQUIRE(ahead - step == number);
    number = ahead;
  }
}

TEST_CASE("unwrapping follows PSNs and TASSNs over many wraps, forwards and backwards") {
  follow<Psn>(1);
  follow<Tpmsn>(2);
  follow<Tassn>(3);
}

TEST_CASE("sequence: the first number of a number space has a predecessor, 0xffffff on the wire") {
  const Psn first = Psn::first(0);
  CHECK(first.wire() == 0);
  CHECK((first - 1).wire() == 0xffffff);
  CHECK(Psn::unwrap(first, 0xffffff) == first - 1);
  CHECK(Psn::unwrap(first, 0xffffff) < first);
  Psn next = first;
  CHECK(++next == first + 1);
}

}  // namespace
}  // namespace urma::test
