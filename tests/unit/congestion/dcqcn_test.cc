// SPDX-License-Identifier: Apache-2.0
#include "congestion/dcqcn.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/unit/congestion/script.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using congestion::Dcqcn;

constexpr congestion::Settings forty_gigabits{.packet_bytes = 1000, .bytes_per_second = 5e9};

void notify(Dcqcn& dcqcn, Time now) {
  dcqcn.handle(congestion::Notified{.now = now, .rtt = 10us, .severe = true, .last_hop = true});
}

void send(Dcqcn& dcqcn, Time now) {
  dcqcn.request({.now = now, .number = 1, .bytes = 1000, .again = false, .inflight_bytes = 0});
}

TEST_CASE("dcqcn starts at the line rate, and paces packets by its rate") {
  Dcqcn dcqcn(forty_gigabits);
  send(dcqcn, Time(1s));
  CHECK(dcqcn.bytes_per_second() == 5e9);
  CHECK(dcqcn.allowance(Time(1s)).not_before == Time(1s) + 200ns);
}

TEST_CASE("a packet that is smaller than foreseen is paced by its size") {
  Dcqcn dcqcn(forty_gigabits);
  send(dcqcn, Time(1s));
  dcqcn.correct({.number = 1, .unused_bytes = 500});
  CHECK(dcqcn.allowance(Time(1s)).not_before == Time(1s) + 100ns);
}

TEST_CASE("the first notification halves the rate; alpha decays in each 55 us without one") {
  Dcqcn dcqcn(forty_gigabits);
  notify(dcqcn, Time(1s));
  CHECK(dcqcn.bytes_per_second() == 2.5e9);
  const double alpha = dcqcn.alpha();
  send(dcqcn, Time(1s) + 54us);
  CHECK(dcqcn.alpha() == alpha);
  send(dcqcn, Time(1s) + 56us);
  CHECK(std::fabs(dcqcn.alpha() - alpha * 255 / 256) < 1e-6);
}

TEST_CASE("the losses of a burst count as one notification") {
  Dcqcn dcqcn(forty_gigabits);
  const auto lose = [&](Duration after) {
    dcqcn.handle(
        congestion::Lost{.now = Time(1s) + after, .rtt = 10us, .bytes = 1000, .timed_out = false});
  };
  send(dcqcn, Time(1s));
  for (const Duration after : {0us, 10us, 49us}) lose(after);
  CHECK(dcqcn.bytes_per_second() == 2.5e9);
  lose(51us);
  CHECK(dcqcn.bytes_per_second() < 1.5e9);
  lose(52us);
  notify(dcqcn, Time(1s) + 53us);
  CHECK(dcqcn.bytes_per_second() < 0.8e9);
}

TEST_CASE("the rate goes half of the way back in each period, five times, then beyond") {
  Dcqcn dcqcn(forty_gigabits);
  notify(dcqcn, Time(1s));
  notify(dcqcn, Time(1s) + 50us);  // the target is now 2.5 GB/s, or a little more
  const Time start = Time(1s) + 50us;
  double target = 2.5e9, rate = dcqcn.bytes_per_second();
  for (int period = 1; period <= 5; ++period) {
    send(dcqcn, start + period * 55us);
    rate = (rate + target) / 2;
    CHECK(std::fabs(dcqcn.bytes_per_second() / rate - 1) < 1e-4);
  }
  send(dcqcn, start + 6 * 55us);
  target += 5e6;
  rate = (rate + target) / 2;
  CHECK(std::fabs(dcqcn.bytes_per_second() / rate - 1) < 1e-4);
}

TEST_CASE("periods that passed without an event are made up for") {
  Dcqcn idle(forty_gigabits), busy(forty_gigabits);
  for (Dcqcn* const one : {&idle, &busy}) notify(*one, Time(1s));
  for (int period = 1; period <= 20; ++period) send(busy, Time(1s) + period * 55us);
  send(idle, Time(1s) + 20 * 55us);
  CHECK(std::fabs(idle.bytes_per_second() / busy.bytes_per_second() - 1) < 1e-6);
  send(idle, Time(1h));
  CHECK(idle.bytes_per_second() > 4.999e9);
}

TEST_CASE("a channel that was idle for long has the rate of one that kept sending") {
  Dcqcn idle(forty_gigabits), busy(forty_gigabits);
  for (Dcqcn* one : {&idle, &busy}) notify(*one, Time(1s));
  for (Time now(1s); now < Time(2s); now += 50us) send(busy, now);
  send(idle, Time(2s));
  CHECK(idle.bytes_per_second() == busy.bytes_per_second());
  CHECK(idle.bytes_per_second() > 0.999999 * 5e9);
  CHECK(idle.alpha() < 1e-6);
}

TEST_CASE("ten megabytes count as a period, too; both kinds together step by more") {
  Dcqcn dcqcn(forty_gigabits);
  notify(dcqcn, Time(1s));
  const double before = dcqcn.bytes_per_second();
  for (int i = 0; i < 10'001; ++i) send(dcqcn, Time(1s) + 1us);
  CHECK(std::fabs(dcqcn.bytes_per_second() - (before + 5e9) / 2) < 1e6);
}

TEST_CASE("notifications without end leave a rate that is not zero") {
  Dcqcn dcqcn(forty_gigabits);
  for (int i = 0; i < 10'000; ++i) notify(dcqcn, Time(1s) + i * 1us);
  CHECK(dcqcn.bytes_per_second() >= 4e6);
}

}  // namespace
}  // namespace urma::test
