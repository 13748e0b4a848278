// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_switch/trunks.h"

#include "tests/apps/switch_parts.h"

namespace urma::test {
namespace {

using apps::switches::Trunks;
using congestion::Metering;

constexpr uint64_t first_nonce = 11, second_nonce = 22;
const Endpoint first_switch = host_at(201, link_port), second_switch = host_at(202, link_port);

Trunks to_second(Metering own = Metering::rates) {
  return {std::span(&second_switch, 1), first_nonce, 13, own};
}
Trunks to_first(Metering own = Metering::rates) {
  return {std::span(&first_switch, 1), second_nonce, 13, own};
}

// Returns the answer of the other switch.
std::optional<LinkControl> answer_of(Trunks& other, const LinkControl& question) {
  std::optional<LinkControl> answer;
  CHECK(other.handle(0, question, answer));
  return answer;
}

TEST_CASE("a switch that answers is not silent, and one that stops is, until it answers again") {
  Trunks trunks = to_second(), other = to_first();
  CHECK(trunks.find(second_switch) == 0);
  CHECK(trunks.find(first_switch) == Trunks::none);
  std::optional<LinkControl> nothing;
  for (int round = 0; round < 20; ++round) {
    const auto answer = answer_of(other, trunks.ask(0));
    REQUIRE(answer);
    CHECK(trunks.handle(0, *answer, nothing));
    CHECK_FALSE(nothing);
    CHECK_FALSE(trunks[0].silent());
  }
  for (int i = 0; i < Trunks::patience; ++i) {
    trunks.ask(0);
    CHECK_FALSE(trunks[0].silent());
  }
  for (int i = 0; i < 1000; ++i) {
    trunks.ask(0);
    REQUIRE(trunks[0].silent());
  }
  CHECK(trunks[0].silences == 1);
  CHECK(trunks.handle(0, *answer_of(other, trunks.ask(0)), nothing));
  CHECK_FALSE(trunks[0].silent());
  CHECK(trunks[0].silences == 1);
}

TEST_CASE("a switch that has never answered becomes silent as well") {
  Trunks trunks = to_second();
  for (int i = 0; i <= Trunks::patience; ++i) trunks.ask(0);
  CHECK(trunks[0].silent());
  CHECK(trunks[0].silences == 1);
}

TEST_CASE("only the answer to a question of its own shows a switch that another one is there") {
  Trunks trunks = to_second(), other = to_first();
  for (int i = 0; i <= Trunks::patience; ++i) trunks.ask(0);
  const LinkControl answer = *answer_of(other, trunks.ask(0));
  std::optional<LinkControl> nothing;
  for (LinkControl forged : {answer, answer, answer}) {
    static int which = 0;
    if (which == 0) forged.nonce = second_nonce;
    if (which == 1) forged.cna = 7;
    if (which == 2) forged.type = LinkMessage::challenge;
    ++which;
    CHECK_FALSE(trunks.handle(0, forged, nothing));
  }
  // Nor does a question, which anybody may repeat.
  CHECK(answer_of(trunks, other.ask(0)));
  CHECK(trunks[0].silent());
  CHECK(trunks.handle(0, answer, nothing));
  CHECK_FALSE(trunks[0].silent());
}

TEST_CASE("a switch learns the meters of another one, which may misread its packets") {
  for (const Metering own : {Metering::none, Metering::increases, Metering::rates}) {
    for (const Metering others : {Metering::none, Metering::increases, Metering::rates}) {
      Trunks trunks = to_second(own), other = to_first(others);
      CHECK_FALSE(trunks.misreads(0));
      std::optional<LinkControl> nothing;
      CHECK(trunks.handle(0, *answer_of(other, trunks.ask(0)), nothing));
      CHECK(trunks[0].metering == others);
      CHECK(trunks.misreads(0) ==
            (own != others && own != Metering::none && others != Metering::none));
    }
  }
}

}  // namespace
}  // namespace urma::test
