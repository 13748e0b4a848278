// SPDX-License-Identifier: Apache-2.0
#include "engine/jetty_control.h"

#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/lone_transactions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::JettyControl;

constexpr uint32_t jetty_limit = 8;

struct ControlledJetties {
  struct Made {
    std::shared_ptr<jetty::Queues> queues;
    JettyControl::Made jetty;

    uint32_t index() const { return jetty.handle.index; }
    void post(uint64_t tag) { post_write(*queues, data, tag); }
    void receive(uint64_t tag) {
      const Buffer buffer{data.data(), data.size()};
      REQUIRE(queues->receive({&buffer, 1}, tag) == 1);
    }
    std::array<std::byte, 16> data{};
  };

  Made create() {
    Made made{.queues = jetty::Queues::with_own_jfc(4, 4, 0), .jetty = {}};
    made.jetty = control.create({made.queues, {}}).value();
    return made;
  }
  jetty::Jetty& at(const Made& made) { return jetties().at(made.index()); }
  jetty::Jetties& jetties() { return lone.transactions.jetties(); }
  jetty::Initiator& initiator() { return lone.transactions.initiator(); }

  Time now{1h};
  LoneTransactions lone;
  SeededEntropy entropy{1};
  JettyControl control{jetty_limit, lone.transactions, entropy};
};

TEST_CASE("a device has as many Jetties as its limit allows, each with an id of its own") {
  ControlledJetties device;
  std::vector<ControlledJetties::Made> made;
  for (uint32_t i = 0; i < jetty_limit; ++i) {
    made.push_back(device.create());
    CHECK(number(made.back().jetty.id) >= number(first_dynamic_jetty));
    for (uint32_t j = 0; j < i; ++j) CHECK(made[j].jetty.id != made[i].jetty.id);
  }
  const auto queues = jetty::Queues::with_own_jfc(4, 4, 0);
  CHECK_FALSE(device.control.create({queues, {}}));
  REQUIRE(device.control.destroy(made[3].index(), device.now));
  const auto again = device.control.create({queues, {}});
  REQUIRE(again);
  CHECK(again->id == made[3].jetty.id);
  CHECK(again->token != made[3].jetty.token);
}

TEST_CASE("a chosen id and token are those of the Jetty, and are not given to others") {
  ControlledJetties device;
  const auto queues = jetty::Queues::with_own_jfc(4, 4, 0);
  const JettyControl::Chosen chosen{.id = JettyId(5), .token = TokenValue(7)};
  for (int round = 0; round < 2; ++round) {
    const auto made = device.control.create({queues, {}}, chosen);
    REQUIRE(made);
    CHECK(made->id == JettyId(5));
    CHECK(made->token == TokenValue(7));
    REQUIRE(device.control.destroy(made->handle.index, device.now));
    CHECK(device.create().jetty.id >= first_dynamic_jetty);
  }
}

TEST_CASE("an id that was chosen before it would be drawn is passed over") {
  ControlledJetties device;
  const JettyId next = ControlledJetties().create().jetty.id;  // the same seed
  const auto queues = jetty::Queues::with_own_jfc(4, 4, 0);
  const auto chosen = device.control.create({queues, {}}, {.id = next, .token = {}});
  REQUIRE(chosen);
  const auto drawn = device.create();
  CHECK(drawn.jetty.id != next);
  REQUIRE(device.control.destroy(chosen->handle.index, device.now));
  CHECK(device.create().jetty.id != next);
}

TEST_CASE("flushing ends posted works and receives, of that Jetty alone") {
  ControlledJetties device;
  auto one = device.create();
  auto other = device.create();
  for (auto* made : {&one, &other}) {
    made->post(1);
    made->receive(2);
  }
  CHECK(device.control.flush(one.index(), device.now));
  CHECK(device.at(one).state == jetty::JettyState::error);
  CHECK(device.at(other).state == jetty::JettyState::ready);
  const auto ended = polled(*one.queues);
  REQUIRE(ended.size() == 2);
  for (const Completion& completion : ended) CHECK(completion.status == Status::flushed);
  CHECK(ended[0].tag + ended[1].tag == 3);
  CHECK(polled(*other.queues).empty());
}

TEST_CASE("flushing all Jetties leaves the one that answers for names") {
  ControlledJetties device;
  const auto queues = jetty::Queues::with_own_jfc(4, 4, 0);
  const jetty::Jetty* const names = device.jetties().create(names_jetty, {}, {queues, {}});
  REQUIRE(names != nullptr);
  auto one = device.create();
  one.post(1);
  CHECK(device.control.flush_all(device.now));
  CHECK(device.at(one).state == jetty::JettyState::error);
  CHECK(polled(*one.queues).size() == 1);
  CHECK(names->state == jetty::JettyState::ready);
}

TEST_CASE("after a reset new works are taken, and works posted before are flushed") {
  ControlledJetties device;
  auto one = device.create();
  REQUIRE(device.control.flush(one.index(), device.now));
  one.post(1);
  device.control.reset(one.index(), device.now);
  const auto ended = polled(*one.queues);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].tag == 1);
  CHECK(ended[0].status == Status::flushed);
  CHECK(device.at(one).state == jetty::JettyState::ready);
  one.post(2);
  device.initiator().note(device.at(one), device.now);
  CHECK(polled(*one.queues).empty());
  CHECK(device.at(one).outstanding == 1);
}

TEST_CASE("a Jetty is neither flushed nor destroyed while a driver may read memory of its work") {
  ControlledJetties device;
  device.lone.connect(device.now);
  auto one = device.create();
  one.post(1);
  device.initiator().take(device.at(one), 1, device.now);
  device.initiator().cut(1, device.now);
  REQUIRE(device.lone.peer.link.offered.size() == 1);
  device.lone.write_offered(7);
  CHECK_FALSE(device.control.flush(one.index(), device.now));
  // A cancelled work waits for its outcome for 8 ms at most.
  device.now += 9ms;
  device.initiator().handle_timers(device.now);
  CHECK_FALSE(device.control.flush(one.index(), device.now));
  CHECK_FALSE(device.control.destroy(one.index(), device.now));
  device.initiator().settled(6, device.now);
  CHECK_FALSE(device.control.destroy(one.index(), device.now));
  CHECK(polled(*one.queues).empty());
  device.initiator().settled(7, device.now);
  CHECK(device.control.flush(one.index(), device.now));
  CHECK(polled(*one.queues).size() == 1);
  CHECK(device.control.destroy(one.index(), device.now));
  CHECK_FALSE(device.jetties().live(one.index()));
}

}  // namespace
}  // namespace urma::test
