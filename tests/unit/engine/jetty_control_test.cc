#include "engine/jetty_control.h"

#include <vector>

#include "drivers/sim/network.h"
#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::JettyControl;

constexpr uint32_t jetty_limit = 8;  // of `idle_settings`

// An engine whose peers never answer.
struct LonelyEngine {
  struct Made {
    std::shared_ptr<jetty::Queues> queues;
    JettyControl::Made jetty;

    uint32_t index() const { return jetty.handle.index; }
    void receive(uint64_t tag) {
      const Buffer buffer{data.data(), data.size()};
      REQUIRE(queues->receive({&buffer, 1}, tag) == 1);
    }
    std::vector<Completion> polled() {
      std::vector<Completion> out(8);
      out.resize(queues->jfc().poll(out));
      return out;
    }
    std::array<std::byte, 16> data{};
  };

  Made create() {
    Made made{.queues = jetty::Queues::with_own_jfc(4, 4, 0), .jetty = {}};
    made.jetty = control().create({made.queues, {}}).value();
    return made;
  }
  // Posts a write to a peer to which there is no channel.
  void post(Made& made, uint64_t tag) {
    const RemoteSegment there{.peer = engine.transport().know(
                                  {}, parse_endpoint("10.0.0.9:4791").value(), Incarnation(5)),
                              .address = 0,
                              .bytes = 4096,
                              .token_id = TokenId(1),
                              .token = TokenValue(1),
                              .rights = Rights::write};
    const Work work = write(std::span(made.data), there).tag(tag);
    REQUIRE(made.queues->post({&work, 1}) == 1);
  }
  JettyControl& control() { return engine.jetty_control(); }
  jetty::Jetty& at(const Made& made) { return engine.transactions().jetties().at(made.index()); }

  Time now{1h};
  Engine engine{std::make_unique<IdlePort>(), idle_settings(), std::make_unique<SeededEntropy>(1)};
};

TEST_CASE("a device has as many Jetties as its limit allows, each with an id of its own") {
  LonelyEngine lonely;
  std::vector<LonelyEngine::Made> made;
  for (uint32_t i = 0; i < jetty_limit; ++i) {
    made.push_back(lonely.create());
    CHECK(number(made.back().jetty.id) >= number(first_dynamic_jetty));
    for (uint32_t j = 0; j < i; ++j) CHECK(made[j].jetty.id != made[i].jetty.id);
  }
  const auto queues = jetty::Queues::with_own_jfc(4, 4, 0);
  CHECK_FALSE(lonely.control().create({queues, {}}));
  REQUIRE(lonely.control().destroy(made[3].index(), lonely.now));
  const auto again = lonely.control().create({queues, {}});
  REQUIRE(again);
  CHECK(again->id == made[3].jetty.id);
  CHECK(again->token != made[3].jetty.token);
}

TEST_CASE("flushing ends posted works and receives, of that Jetty alone") {
  LonelyEngine lonely;
  auto one = lonely.create();
  auto other = lonely.create();
  for (auto* made : {&one, &other}) {
    lonely.post(*made, 1);
    made->receive(2);
  }
  CHECK(lonely.control().flush(one.index(), lonely.now));
  CHECK(lonely.at(one).state == jetty::JettyState::error);
  CHECK(lonely.at(other).state == jetty::JettyState::ready);
  const auto ended = one.polled();
  REQUIRE(ended.size() == 2);
  for (const Completion& completion : ended) CHECK(completion.status == Status::flushed);
  CHECK(ended[0].tag + ended[1].tag == 3);
  CHECK(other.polled().empty());
}

TEST_CASE("flushing all Jetties leaves the one that answers for names") {
  LonelyEngine lonely;
  auto one = lonely.create();
  lonely.post(one, 1);
  CHECK(lonely.control().flush_all(lonely.now));
  CHECK(lonely.at(one).state == jetty::JettyState::error);
  CHECK(one.polled().size() == 1);
  jetty::Jetty* const names = lonely.engine.transactions().jetties().find(names_jetty);
  REQUIRE(names != nullptr);
  CHECK(names->state == jetty::JettyState::ready);
}

TEST_CASE("after a reset new works are taken, and works posted before are flushed") {
  LonelyEngine lonely;
  auto one = lonely.create();
  REQUIRE(lonely.control().flush(one.index(), lonely.now));
  lonely.post(one, 1);
  lonely.control().reset(one.index(), lonely.now);
  const auto ended = one.polled();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].tag == 1);
  CHECK(ended[0].status == Status::flushed);
  CHECK(lonely.at(one).state == jetty::JettyState::ready);
  lonely.post(one, 2);
  lonely.engine.transactions().initiator().note(lonely.at(one), lonely.now);
  CHECK(one.polled().empty());
  CHECK(lonely.at(one).outstanding == 1);
}

// An engine and its peer, on devices that read the memory of a frame 20 ms after they take it.
struct LateEngine {
  static std::unique_ptr<drivers::PacketPort> port(
      const std::shared_ptr<drivers::sim::Network>& net) {
    return drivers::sim::Port::open(net,
                                    {.address = {}, .impairment = {}, .lateness = {.hold = 20ms}})
        .value();
  }
  void pass() {
    engine.pass(network->now(), nullptr);
    peer.pass(network->now(), nullptr);
  }
  // Lets this time go by.
  void run(Duration time) {
    const Time end = network->now() + time;
    while (network->now() < end) {
      pass();
      network->step(std::min(end, network->now() + 100us));
    }
    pass();
  }
  void post() {
    const RemoteSegment there{
        .peer = engine.transport().know(peer.port().facts().eid, peer.port().facts().self,
                                        idle_settings().life),
        .address = 0,
        .bytes = 4096,
        .token_id = TokenId(1),
        .token = TokenValue(1),
        .rights = Rights::write};
    const Work work = write(std::span(data), there);
    REQUIRE(queues->post({&work, 1}) == 1);
    engine.dirty().mark(jetty.handle.index);
  }
  size_t polled() {
    std::array<Completion, 4> out;
    return queues->jfc().poll(out);
  }
  bool flush() { return engine.jetty_control().flush(jetty.handle.index, network->now()); }
  bool destroy() { return engine.jetty_control().destroy(jetty.handle.index, network->now()); }

  std::shared_ptr<drivers::sim::Network> network = std::make_shared<drivers::sim::Network>(1);
  Engine engine{port(network), idle_settings(), std::make_unique<SeededEntropy>(1)};
  Engine peer{port(network), idle_settings(), std::make_unique<SeededEntropy>(2)};
  std::shared_ptr<jetty::Queues> queues = jetty::Queues::with_own_jfc(4, 4, 0);
  JettyControl::Made jetty = engine.jetty_control().create({queues, {}}).value();
  std::array<std::byte, 16> data{};
};

TEST_CASE("a Jetty is neither flushed nor destroyed while a device may read memory of its work") {
  LateEngine late;
  late.post();
  late.run(1s);
  REQUIRE(late.polled() == 1);  // there is a channel now
  late.post();
  late.pass();
  CHECK_FALSE(late.flush());
  CHECK_FALSE(late.destroy());
  late.run(12ms);  // a cancelled work does not wait longer than 8 ms for its outcome
  CHECK_FALSE(late.destroy());
  CHECK(late.polled() == 0);
  late.run(10ms);
  CHECK(late.flush());
  CHECK(late.polled() == 1);
  CHECK(late.destroy());
  CHECK_FALSE(late.engine.transactions().jetties().live(late.jetty.handle.index));
}

}  // namespace
}  // namespace urma::test
