// When packets of a channel may leave, with a controller that only notes what it is told.

#include "transport/rtp/pacer.h"

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
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

TEST_CASE("pacer: the next packet waits for the departure that the controller names") {
  noted = {};
  {
    Pacer pacer(noting(true), {});
    CHECK(pacer.paces());
    CHECK(pacer.window_bytes() == 4096);
    const Time now{1s};
    CHECK(pacer.may_depart(now));
    pacer.depart(packet_at(now));
    CHECK(pacer.departure(now) == now + 10us);
    CHECK_FALSE(pacer.may_depart(now + 9999ns));
    CHECK(pacer.may_depart(now + 10us));
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
  pacer.depart(packet_at(now));
  CHECK(noted.requests == 0);
  CHECK(pacer.departure(now) == Time{});
  CHECK(pacer.may_depart(now));
  CHECK(pacer.window_bytes() == 4096);
}

}  // namespace
}  // namespace urma::test
