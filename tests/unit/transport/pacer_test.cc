// SPDX-License-Identifier: Apache-2.0
// When packets of a channel may leave, with a controller that only notes what it is told.

#include "transport/rtp/pacer.h"

#include "tests/catch.h"
#include "tests/unit/transport/route_parts.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::ChannelRoutes;
using transport::Pacer;

struct Noted {
  int requests = 0;
  int losses = 0;
  int destroyed = 0;
};
Noted noted;

class NotingController final : public congestion::Controller {
 public:
  ~NotingController() override { ++noted.destroyed; }
  congestion::Signal request(const congestion::Sent& packet) override {
    ++noted.requests;
    next_ = packet.now + 10us;
    return {};
  }
  void correct(const congestion::Written& packet) override {
    next_ -= Duration(packet.unused_bytes);
  }
  void handle(const congestion::Acknowledged&) override {}
  void handle(const congestion::Lost&) override { ++noted.losses; }
  void handle(const congestion::Notified&) override {}
  void handle(const congestion::Spurious&) override {}
  congestion::Allowance allowance(Time) const override { return {window_bytes(), next_}; }
  uint64_t window_bytes() const override { return 4096; }

 private:
  Time next_{};
};

congestion::ControllerKind noting(bool paces) {
  return {.name = "noting",
          .summary = "",
          .make = [](void* storage, const congestion::Settings&) -> congestion::Controller* {
            return new (storage) NotingController;
          },
          .paces = paces};
}

congestion::Sent packet_at(Time now) {
  return {.now = now, .number = 1, .bytes = 100, .again = false, .inflight_bytes = 0};
}

const ChannelRoutes only_path = nullptr;

TEST_CASE("pacer: the next packet waits for the departure that the controller names") {
  noted = {};
  {
    Pacer pacer(noting(true), {});
    CHECK(pacer.paces(only_path));
    CHECK(pacer.window_bytes() == 4096);
    const Time now{1s};
    CHECK(pacer.may_depart(only_path, now));
    pacer.depart(only_path, 0, packet_at(now));
    CHECK(pacer.departure(only_path, 0) == now + 10us);
    CHECK_FALSE(pacer.may_depart(only_path, now + 9999ns));
    CHECK(pacer.may_depart(only_path, now + 10us));
    pacer.correct(only_path, 0, {.number = 1, .unused_bytes = 100});
    CHECK(pacer.departure(only_path, 0) == now + 9900ns);
    pacer.handle(congestion::Lost{.now = now, .rtt = 1us, .bytes = 100, .timed_out = false});
  }
  CHECK(noted.requests == 1);
  CHECK(noted.losses == 1);
  CHECK(noted.destroyed == 1);
}

TEST_CASE("pacer: a controller that does not pace is not asked, and packets never wait") {
  noted = {};
  Pacer pacer(noting(false), {});
  const Time now{1s};
  pacer.depart(only_path, 0, packet_at(now));
  CHECK(noted.requests == 0);
  CHECK(pacer.departure(only_path, 0) == Time{});
  CHECK(pacer.may_depart(only_path, now));
  CHECK(pacer.window_bytes() == 4096);
}

TEST_CASE("pacer: with several routes, the departures of the controllers of routes count") {
  noted = {};
  const congestion::ControllerKind kind = noting(true);
  transport::Routes several(addresses(2, 1), addresses(2, 2), moment(0s));
  ask(several, 0ms, 10ms);
  const ChannelRoutes routes = &several;
  routes.open(false, kind, {.packet_bytes = 1000, .limit_bytes = 1'000'000});
  Pacer pacer(noting(false), {});
  CHECK(pacer.paces(routes));
  const Time now = moment(20ms);
  for (const uint8_t route : {uint8_t{0}, uint8_t{1}}) {
    CHECK(pacer.may_depart(routes, now));
    pacer.depart(routes, route, packet_at(now));
    CHECK(noted.requests == route + 1);
  }
  CHECK_FALSE(pacer.may_depart(routes, now + 9999ns));
  CHECK(pacer.departure(routes, 100) == now + 10us);
  CHECK(pacer.may_depart(routes, now + 10us));
}

}  // namespace
}  // namespace urma::test
