// SPDX-License-Identifier: Apache-2.0
#include "engine/retransmission_choice.h"

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using drivers::PortFacts;
using engine::objection;
using engine::warning;
using Scope = Retransmission::Scope;
using Trigger = Retransmission::Trigger;
using Rto = Retransmission::Rto;

PortFacts facts(bool lossless, bool reorders) {
  PortFacts out;
  out.lossless = lossless;
  out.reorders = reorders;
  return out;
}
const PortFacts in_order = facts(false, false);
const PortFacts reordering = facts(false, true);

bool refused(const Retransmission& mode, const PortFacts& port = in_order) {
  const std::string why = objection(mode, port);
  if (!why.empty()) CHECK(mentions(why, "Fix: "));
  return !why.empty();
}

// Returns sel_rack after `change`.
template <class Change>
Retransmission with(Change&& change) {
  Retransmission mode = sel_rack;
  change(mode);
  return mode;
}

TEST_CASE("the default of each medium can be used there, and has no disadvantage") {
  for (const PortFacts& port : {in_order, reordering}) {
    const Retransmission mode = engine::retransmission_for(port);
    CHECK_FALSE(refused(mode, port));
    CHECK(warning(mode, port).empty());
    CHECK((mode.reorder_packets == 0) == port.reorders);
  }
}

TEST_CASE("each named mode can be used if packets stay in order") {
  for (const NamedRetransmission& one : named_retransmissions()) {
    INFO(one.name);
    CHECK_FALSE(refused(one.mode));
    CHECK(warning(one.mode, in_order).empty() ==
          (one.mode.trigger != Trigger::timeout && one.mode.scope == Scope::selective));
  }
}

TEST_CASE("where packets overtake one another, modes that would drop or repeat many are refused") {
  CHECK(refused(gbn_fast, reordering));
  CHECK_FALSE(refused(gbn_timeout, reordering));
  Retransmission drops = gbn_timeout;
  drops.keeps_out_of_order = false;
  CHECK_FALSE(refused(drops));
  CHECK(refused(drops, reordering));
  CHECK_FALSE(refused(sel_fast, reordering));
  CHECK_FALSE(warning(sel_fast, reordering).empty());
}

TEST_CASE("choices that contradict each other are refused") {
  CHECK(refused(with([](auto& mode) { mode.scope = Scope::go_back_n; })));
  CHECK(refused(with([](auto& mode) { mode.keeps_out_of_order = false; })));
}

TEST_CASE("a value outside of an enumeration is refused") {
  CHECK(refused(with([](auto& mode) { mode.scope = static_cast<Scope>(2); })));
  CHECK(refused(with([](auto& mode) { mode.trigger = static_cast<Trigger>(3); })));
  CHECK(refused(with([](auto& mode) { mode.rto = static_cast<Rto>(3); })));
}

TEST_CASE("the time-out of a fixed or doubled mode is within bounds") {
  for (const Rto rto : {Rto::fixed, Rto::doubled}) {
    const auto refuses = [rto](Duration base) {
      return refused(with([&](auto& mode) {
        mode.rto = rto;
        mode.rto_base = base;
      }));
    };
    CHECK(refuses(0s));
    CHECK(refuses(4us - 1ns));
    CHECK_FALSE(refuses(4us));
    CHECK_FALSE(refuses(200ms));
    CHECK(refuses(200ms + 1ns));
  }
  const auto doubled = [](uint8_t exponent) {
    return with([exponent](auto& mode) {
      mode.rto = Rto::doubled;
      mode.rto_base = 1ms;
      mode.rto_exponent = exponent;
    });
  };
  CHECK_FALSE(refused(doubled(8)));
  CHECK(refused(doubled(9)));
  CHECK(refused(with([](auto& mode) { mode.rto_base = -1ns; })));
}

TEST_CASE("a time-out shorter than peers delay acknowledgements is warned of") {
  const auto warned = [](Duration base) {
    return !warning(with([base](auto& mode) {
                      mode.rto = Rto::fixed;
                      mode.rto_base = base;
                    }),
                    in_order)
                .empty();
  };
  CHECK(warned(200us - 1ns));
  CHECK_FALSE(warned(200us));
}

TEST_CASE("sizes are within bounds") {
  const auto windows = [](uint32_t packets) {
    return refused(with([packets](auto& mode) { mode.window_packets = packets; }));
  };
  CHECK(windows(0));
  CHECK_FALSE(windows(1));
  CHECK_FALSE(windows(2048));
  CHECK(windows(2049));
  for (uint32_t bits = 0; bits <= 2048; ++bits) {
    const bool valid = bits == 64 || bits == 128 || bits == 256 || bits == 512 || bits == 1024;
    REQUIRE(refused(with([bits](auto& mode) { mode.bitmap_bits = bits; })) != valid);
  }
  const auto acks = [](uint32_t packets, Duration delay) {
    return refused(with([&](auto& mode) {
      mode.ack_packets = packets;
      mode.ack_delay = delay;
    }));
  };
  CHECK(acks(0, 0s));
  CHECK_FALSE(acks(1, 0s));
  CHECK_FALSE(acks(1024, 10ms));
  CHECK(acks(1025, 0s));
  CHECK(acks(1, -1ns));
  CHECK(acks(1, 10ms + 1ns));
}

TEST_CASE("a medium without loss warns that no mode matters") {
  for (const NamedRetransmission& one : named_retransmissions()) {
    CHECK(mentions(warning(one.mode, facts(true, false)), "loses nothing"));
  }
}

}  // namespace
}  // namespace urma::test
