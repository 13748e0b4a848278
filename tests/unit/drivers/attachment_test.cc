// SPDX-License-Identifier: Apache-2.0
#include "drivers/link/attachment.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::link::Attachment;

constexpr uint64_t own_nonce = 77;
constexpr Time attaching{1s};

Attachment asking_for(uint32_t cna) { return {{.cna = cna, .nonce = own_nonce}, attaching}; }

LinkControl granted(uint32_t cna, uint16_t lease_ms = 1000) {
  return {.type = LinkMessage::attached,
          .cna = cna,
          .mtu_log2 = 12,
          .lease_ms = lease_ms,
          .nonce = own_nonce};
}

TEST_CASE("a device asks for its CNA until the switch answers, and then before its lease ends") {
  Attachment attachment = asking_for(7);
  const auto first = attachment.due(attaching);
  REQUIRE(first);
  CHECK(first->type == LinkMessage::attach);
  CHECK(first->cna == 7);
  CHECK(first->nonce == own_nonce);
  CHECK_FALSE(attachment.due(attaching));
  CHECK(attachment.due(attachment.next()));
  CHECK(attachment.state() == Attachment::State::asking);

  attachment.handle(granted(7), attaching + 200ms);
  CHECK(attachment.state() == Attachment::State::attached);
  CHECK(attachment.mtu_log2() == 12);
  CHECK_FALSE(attachment.due(attaching + 201ms));
  CHECK(attachment.next() < attaching + 1200ms);
  CHECK(attachment.due(attachment.next()));
}

TEST_CASE("a device without a wish keeps the CNA that the switch gave first") {
  Attachment attachment = asking_for(0);
  CHECK(attachment.cna() == 0);
  attachment.handle(granted(0), attaching);
  CHECK(attachment.state() == Attachment::State::asking);
  attachment.handle(granted(9), attaching);
  CHECK(attachment.cna() == 9);
  attachment.handle(granted(10), attaching);
  CHECK(attachment.cna() == 9);
  CHECK(attachment.due(attachment.next())->cna == 9);
}

TEST_CASE("a device learns how the switch meters each time that it attaches") {
  using congestion::Metering;
  Attachment attachment = asking_for(7);
  CHECK(attachment.metering() == Metering::unknown);
  LinkControl message = granted(7);
  attachment.handle(message, attaching);
  CHECK(attachment.metering() == Metering::unknown);  // the switch does not say it
  message.cookie = cookie_of(Metering::increases);
  attachment.handle(message, attaching + 1s);
  CHECK(attachment.metering() == Metering::increases);
  // The switch was restarted. A challenge has another cookie, which says nothing of this kind.
  attachment.handle(
      {.type = LinkMessage::challenge, .cna = 7, .nonce = own_nonce, .cookie = 0x1235},
      attaching + 2s);
  CHECK(attachment.metering() == Metering::increases);
  message.cookie = cookie_of(Metering::rates);
  attachment.handle(message, attaching + 2s);
  CHECK(attachment.metering() == Metering::rates);
}

TEST_CASE("a device asks for the rate of its port, and knows none if the switch does not say it") {
  Attachment attachment = asking_for(7);
  CHECK(attachment.due(attaching)->rated);
  CHECK_FALSE(attachment.farewell().rated);
  attachment.handle(granted(7), attaching);
  CHECK(attachment.bytes_per_second() == 0);
  LinkControl rated = granted(7);
  rated.cookie = cookie_of(congestion::Metering::rates);
  add_rate(rated, 12'500'000);
  attachment.handle(rated, attaching + 1s);
  CHECK(attachment.bytes_per_second() == 12'500'000);
  CHECK(attachment.metering() == congestion::Metering::rates);
}

TEST_CASE("a challenge is answered at once, once, with its cookie") {
  Attachment attachment = asking_for(7);
  REQUIRE(attachment.due(attaching));
  LinkControl challenge{
      .type = LinkMessage::challenge, .cna = 7, .nonce = own_nonce, .cookie = 0x1234};
  attachment.handle(challenge, attaching + 1ms);
  const auto answer = attachment.due(attaching + 1ms);
  REQUIRE(answer);
  CHECK(answer->cookie == 0x1234);
  attachment.handle(challenge, attaching + 2ms);
  CHECK_FALSE(attachment.due(attaching + 2ms));
  challenge.cookie = 0x5678;  // the switch has restarted
  attachment.handle(challenge, attaching + 3ms);
  CHECK(attachment.due(attaching + 3ms));
}

TEST_CASE("messages with another nonce, and messages of devices, change nothing") {
  Attachment attachment = asking_for(7);
  LinkControl forged = granted(7);
  forged.nonce = own_nonce + 1;
  attachment.handle(forged, attaching);
  CHECK(attachment.state() == Attachment::State::asking);
  for (const LinkMessage type : {LinkMessage::attach, LinkMessage::detach, LinkMessage{77}}) {
    LinkControl message = granted(7);
    message.type = type;
    attachment.handle(message, attaching);
    CHECK(attachment.state() == Attachment::State::asking);
  }
  attachment.handle(granted(8), attaching);
  attachment.handle(granted(7, 0), attaching);
  CHECK(attachment.state() == Attachment::State::asking);
}

TEST_CASE("a refusal counts unless the device has its CNA") {
  const LinkControl refused{
      .type = LinkMessage::refused, .refusal = LinkRefusal::taken, .nonce = own_nonce};
  Attachment attachment = asking_for(7);
  attachment.handle(refused, attaching);
  CHECK(attachment.state() == Attachment::State::refused);
  CHECK(attachment.refusal() == LinkRefusal::taken);

  attachment.handle(granted(7), attaching);
  CHECK(attachment.state() == Attachment::State::attached);
  attachment.handle(refused, attaching + 10ms);
  CHECK(attachment.state() == Attachment::State::attached);
  attachment.handle(refused, attaching + 2s);
  CHECK(attachment.state() == Attachment::State::refused);
  CHECK(attachment.due(attachment.next()));  // the device asks again
}

TEST_CASE("a device that the switch does not know asks again, but not as often as it is told") {
  Attachment attachment = asking_for(7);
  REQUIRE(attachment.due(attaching));
  attachment.handle(granted(7, 10'000), attaching);
  int asked = 0;
  Time now = attaching;
  for (int i = 0; i < 1000; ++i) {
    now += 100us;
    attachment.handle({.type = LinkMessage::unknown}, now);
    asked += attachment.due(now).has_value();
  }
  CHECK(asked >= 1);
  CHECK(asked <= 10);
}

TEST_CASE("the farewell names the CNA that the device gives back") {
  Attachment attachment = asking_for(0);
  attachment.handle(granted(9), attaching);
  const LinkControl farewell = attachment.farewell();
  CHECK(farewell.type == LinkMessage::detach);
  CHECK(farewell.cna == 9);
  CHECK(farewell.nonce == own_nonce);
}

}  // namespace
}  // namespace urma::test
