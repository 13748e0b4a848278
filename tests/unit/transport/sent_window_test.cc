// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/sent_window.h"

#include <algorithm>
#include <array>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::SentWindow;

using Evidence = SentWindow::Acknowledgement;

// A window of which packets are lost, sent again and acknowledged.
class Acknowledged {
 public:
  ~Acknowledged() { window_.release(pool_); }

  size_t packets() const { return window_.next() - window_.first(); }
  void send(uint16_t bytes, Time now) {
    window_.sending(*window_.push({.slice = {}, .bytes = bytes}, now, pool_), bytes, now);
  }
  void repeat_all(Time now) {
    window_.mark_all_lost({}, now, pool_);
    for (auto at = window_.begin(pool_); at; ++at) {
      if (!at->lost) continue;
      ++at->copies;
      window_.sending(*at, at->bytes, now);
    }
  }
  void lose_all(Time now) { window_.mark_all_lost({}, now, pool_); }
  // The first `count` packets have arrived, as the number of the last one says.
  Evidence up_to(size_t count, Time now) {
    return window_.acknowledge(before() + static_cast<int64_t>(count), &nothing_, answer_, now,
                               pool_);
  }
  // Those packets have arrived, as bits say.
  Evidence by_bits(const Saetph& bits, Time now) {
    return window_.acknowledge(before(), &bits, answer_, now, pool_);
  }
  void retire() {
    std::array<transport::SliceRef, 1> none{};
    window_.retire(none, pool_);
    CHECK(window_.check(pool_));
  }
  uint64_t inflight_bytes() const { return window_.inflight_bytes(); }
  Psn highest() const { return window_.highest_acknowledged(); }

 private:
  Psn before() const { return window_.first() - 1; }

  const Saetph nothing_;
  const SentWindow::AnswerTimes answer_{50us, 200us};
  SentWindow::Pool pool_{64};
  SentWindow window_{Psn::first(0) + 100, nullptr};
};

bool same_evidence(const Evidence& one, const Evidence& other) {
  return one.bytes == other.bytes && one.rtt == other.rtt && one.highest == other.highest &&
         one.newest_sent == other.newest_sent && one.spurious == other.spurious &&
         one.overtaken == other.overtaken && one.in_vain == other.in_vain &&
         one.oldest_first_copy == other.oldest_first_copy && one.answered == other.answered;
}

// Bits are looked at one by one, numbers as a run.
TEST_CASE("packets that are acknowledged together show what each of them would show") {
  Prng prng(7);
  for (int round = 0; round < 300; ++round) {
    Acknowledged run;
    Acknowledged single;
    Time now{1s};
    for (int event = 0; event < 200; ++event) {
      now += Duration(prng.below(100'000));
      const uint64_t what = prng.below(100);
      if (what < 60 && run.packets() < 60) {
        const auto bytes = static_cast<uint16_t>(prng.between(100, 9000));
        run.send(bytes, now);
        single.send(bytes, now);
      } else if (what >= 60 && what < 64) {
        run.repeat_all(now);
        single.repeat_all(now);
      } else if (what >= 64 && what < 68) {
        run.lose_all(now);
        single.lose_all(now);
      } else if (run.packets() > 0) {
        Saetph bits;
        if (what < 80) {
          bits.bits[0] = prng.next() & ((uint64_t{2} << run.packets()) - 1) & ~uint64_t{1};
          REQUIRE(same_evidence(run.by_bits(bits, now), single.by_bits(bits, now)));
        } else {
          const uint64_t count = prng.between(1, run.packets());
          bits.bits[0] = (uint64_t{2} << count) - 2;
          REQUIRE(same_evidence(run.up_to(count, now), single.by_bits(bits, now)));
        }
        run.retire();
        single.retire();
      }
      REQUIRE(run.inflight_bytes() == single.inflight_bytes());
      REQUIRE(run.highest() == single.highest());
    }
  }
}

}  // namespace
}  // namespace urma::test
