// SPDX-License-Identifier: Apache-2.0
// Ports that run under the virtual time of a simulated network: which ports can, how their time
// passes, and how they end.

#include <deque>

#include "drivers/frame_pool.h"
#include "drivers/sim/clocked_port.h"
#include "tests/catch.h"
#include "tests/drivers/idle_port.h"
#include "tests/drivers/opening.h"
#include "tests/drivers/ports.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

std::string why_not(const std::string& device) {
  const auto port = try_open_port(device);
  REQUIRE_FALSE(port.ok());
  return port.error().message;
}

TEST_CASE("only some ports can run under a network's time, and the network must be named") {
  CHECK(why_not("sim(net=clocked):udp:127.0.0.1").find("only that of a window") !=
        std::string::npos);
  CHECK(why_not("sim(net=clocked):sim:other").find("only that of a window") != std::string::npos);
  CHECK(why_not("sim(seed=1):cxl:").find("net=NAME") != std::string::npos);
  CHECK(why_not("sim(net=clocked,loss=1%):cxl:").find("no such option") != std::string::npos);
}

// Runs when its time has come, and counts its passes.
struct Sleeper final : drivers::VirtualClock::Driven {
  drivers::PacketPort& port;
  int passes = 0;
  Time last{};

  explicit Sleeper(drivers::PacketPort& its_port) : port(its_port) {
    port.clock()->attach(*this, port.facts().self);
  }
  ~Sleeper() { port.clock()->detach(*this); }
  Time pass(Time now) override {
    ++passes;
    last = now;
    RxFrame frame;
    while (port.receive({&frame, 1}, now) == 1) port.release({&frame, 1});
    return never;
  }
};

TEST_CASE("an engine runs late, up to scheduling_delay= of its port, and others at the time due") {
  PortPair ports("sim:late-end?scheduling_delay=1ms", "sim:late-end");
  CHECK(ports.a->facts().scheduling_delay == 1ms);
  CHECK(ports.b->facts().scheduling_delay == 0ns);
  Sleeper late(*ports.a);
  Sleeper punctual(*ports.b);
  const auto run_for = [&](Duration time) {
    const Time until = ports.now() + time;
    while (ports.now() < until) ports.clock()->step(until);
  };
  Duration least = 1h;
  Duration most{};
  for (unsigned i = 0; i < 200; ++i) {
    run_for(5ms);
    const Time arrives = ports.now() + 1us;  // the least delay of a network
    REQUIRE(send_packet(ports, *ports.b, ports.a->facts().self, packet_of(60, i)));
    REQUIRE(send_packet(ports, *ports.a, ports.b->facts().self, packet_of(60, i)));
    const int before = late.passes;
    run_for(2ms);
    CHECK(late.passes == before + 1);
    least = std::min(least, late.last - arrives);
    most = std::max(most, late.last - arrives);
    CHECK(punctual.last == arrives);
  }
  CHECK(least >= 0ns);
  CHECK(least < 100us);
  CHECK(most > 900us);
  CHECK(most < 1ms);
}

// Wants to run again 1 ms later, a hundred times.
struct Metronome final : drivers::VirtualClock::Driven {
  std::vector<Duration> late;
  Time due{};

  Time pass(Time now) override {
    if (due != Time{}) late.push_back(now - due);
    due = now + 1ms;
    return late.size() < 100 ? due : never;
  }
};

TEST_CASE("the timers of an engine expire late, up to scheduling_delay= of its port") {
  for (const std::string delay : {"0s", "300us"}) {
    const auto port = PortPair::open("sim:late-timer-" + delay + "?scheduling_delay=" + delay);
    Metronome metronome;
    port->clock()->attach(metronome, port->facts().self);
    while (metronome.late.size() < 100) port->clock()->step(port->clock()->now() + 1s);
    port->clock()->detach(metronome);
    const auto [least, most] = std::ranges::minmax(metronome.late);
    CHECK(least >= 0ns);
    CHECK(most < 300us);
    CHECK((most > 200us) == (delay == "300us"));
  }
}

TEST_CASE("ringing a bell wakes its owner after the network's delay, unless the owner is stopped") {
  const WindowFile window("clocked");
  const std::string text = "sim(net=clocked-bell):" + window.device("");
  PortPair ports(text, text);
  const auto network = drivers::sim::Network::named("clocked-bell", 1);
  network->faults.impairment.delay = 50us;
  Sleeper sleeper(*ports.b);
  const auto run_for = [&](Duration time) {
    const Time until = network->now() + time;
    while (network->now() < until) network->step(until);
  };
  run_for(1ms);
  CHECK(sleeper.passes == 1);
  const Packet packet = packet_of(60, 1);
  for (int i = 0; i < 3; ++i) send_packet(ports, *ports.a, ports.b->facts().self, packet);
  const Time sent = network->now();
  run_for(1ms);
  // A bell that has been rung is not rung again.
  CHECK(sleeper.passes == 2);
  CHECK(sleeper.last - sent >= 50us);
  CHECK(sleeper.last - sent < 60us);

  network->stop(ports.b->facts().self, true);
  send_packet(ports, *ports.a, ports.b->facts().self, packet);
  run_for(1s);
  CHECK(sleeper.passes == 2);
  CHECK_FALSE(state_of(*ports.a, ports.b->facts().self).empty);
  network->stop(ports.b->facts().self, false);
  run_for(1us);
  CHECK(sleeper.passes == 3);
  CHECK(state_of(*ports.a, ports.b->facts().self).empty);

  // A killed port reads no further packets, and packets to it are dropped.
  send_packet(ports, *ports.a, ports.b->facts().self, packet);
  network->kill(ports.b->facts().self);
  run_for(1ms);
  const uint64_t settled = ports.b->settled();
  REQUIRE(send_packet(ports, *ports.b, ports.a->facts().self, packet));
  CHECK(ports.b->settled() == settled + 1);
  RxFrame frame;
  CHECK(ports.a->receive({&frame, 1}, network->now()) == 0);
  CHECK(ports.b->receive({&frame, 1}, network->now()) == 0);
  CHECK(state_of(*ports.a, ports.b->facts().self).gone);
}

// One of two ends that exchange packets of a byte. They have neither a bell nor descriptors.
struct PolledEnd final : IdlePort {
  std::deque<std::byte>& in;
  std::deque<std::byte>& out;
  drivers::FramePool pool{4};
  std::deque<std::byte> received;
  Endpoint peer;
  uint64_t sent = 0;

  PolledEnd(uint8_t number, std::deque<std::byte>& arriving, std::deque<std::byte>& leaving)
      : in(arriving), out(leaving), peer{ipv4(10, 9, 0, 3 - number), ub_port} {
    facts_.self = {ipv4(10, 9, 0, number), ub_port};
  }
  drivers::PortCounters counters() const override { return {.frames_sent = sent}; }
  size_t lend(std::span<TxFrame*> frames) override { return pool.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time) override {
    for (TxFrame* frame : frames) {
      out.push_back(*frame->head);
      pool.take_back(frame);
    }
    sent += frames.size();
    return frames.size();
  }
  size_t receive(std::span<RxFrame> frames, Time) override {
    size_t count = 0;
    for (; count < frames.size() && !in.empty(); ++count, in.pop_front()) {
      received.push_back(in.front());
      frames[count] = {.data = &received.back(), .bytes = 1, .from = &peer};
    }
    return count;
  }
};

TEST_CASE("a port that can only be polled runs when another one of its network has sent") {
  using drivers::sim::ClockedPort;
  const auto network = drivers::sim::Network::named("clocked-polled", 1);
  std::deque<std::byte> there;
  std::deque<std::byte> back;
  ClockedPort a(network, std::make_unique<PolledEnd>(uint8_t{1}, back, there), {});
  ClockedPort b(network, std::make_unique<PolledEnd>(uint8_t{2}, there, back), {});
  network->faults.impairment.delay = 50us;
  std::vector<unsigned> seen;
  network->faults.on_leave = [&](const Endpoint& from, std::span<const std::byte> packet) {
    CHECK(from == a.facts().self);
    seen.push_back(std::to_integer<unsigned>(packet[0]));
  };
  Sleeper sleeper(b);
  const auto run_for = [&](Duration time) {
    const Time until = network->now() + time;
    while (network->now() < until) network->step(until);
  };
  // Returns how many passes a packet caused.
  const auto send = [&](unsigned number) {
    const int before = sleeper.passes;
    TxFrame* frame = nullptr;
    REQUIRE(a.lend({&frame, 1}) == 1);
    *frame->head = static_cast<std::byte>(number);
    REQUIRE(a.send({&frame, 1}, network->now()) == 1);
    run_for(1s);
    return sleeper.passes - before;
  };
  run_for(1s);
  CHECK(sleeper.passes == 1);
  const Time sent = network->now();
  CHECK(send(1) == 1);
  CHECK(sleeper.last - sent >= 50us);
  CHECK(sleeper.last - sent < 60us);
  const uint64_t trace = network->trace_hash();
  network->faults.cut(a.facts().self, b.facts().self, true);
  CHECK(send(2) == 2);  // there may be more behind what was lost
  network->faults.cut(a.facts().self, b.facts().self, false);
  network->faults.impairment.loss = 1;
  CHECK(send(3) == 2);
  CHECK(network->trace_hash() == trace);  // nothing was delivered
  network->faults.impairment.loss = 0;
  network->stop(b.facts().self, true);
  CHECK(send(4) == 0);
  network->stop(b.facts().self, false);
  CHECK(send(5) > 0);
  CHECK(network->trace_hash() != trace);
  CHECK(seen == std::vector<unsigned>{1, 2, 3, 4, 5});
  network->kill(b.facts().self);
  CHECK(send(6) == 0);
  network->faults.on_leave = nullptr;
}

}  // namespace
}  // namespace urma::test
