// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/loss_detection.h"

#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::LossDetection;
using transport::SentWindow;

constexpr Duration round_trip = 8ms;
constexpr uint16_t bytes = 1000;

Retransmission mode_with(Retransmission::Trigger trigger, uint32_t reorder_packets = 0) {
  Retransmission mode;
  mode.trigger = trigger;
  mode.scope = Retransmission::Scope::selective;
  mode.reorder_packets = reorder_packets;
  return mode;
}

// A window whose n-th packet left after n half milliseconds, and what acknowledgements of some
// of these packets show about the others.
struct Sender {
  Sender(const Retransmission& mode_, unsigned packets) : mode(mode_) {
    for (unsigned i = 0; i < packets; ++i) {
      const Time now{Duration(500us) * (i + 1)};
      window.sending(*window.push({.slice = {}, .bytes = bytes}, now, pool), bytes, now);
    }
  }
  ~Sender() { window.release(pool); }

  // The packets before `through` and packet `also` have arrived. Returns the bytes found lost.
  uint64_t acknowledge(unsigned through, unsigned also, Time now) {
    Saetph report;
    report.max_received = (first + also).wire();
    report.set_bit(also + 1 - through);  // bit 0 is the packet before `through`
    const Psn before = first + through - 1;
    const auto news = window.acknowledge(before, &report, {1ms, 10ms}, now, pool);
    return losses.find(mode, window, news, first + also, {round_trip, {}}, now, pool);
  }

  const Psn first = Psn::first(0) + 100;
  const Retransmission mode;
  SentWindow::Pool pool{64};
  SentWindow window{first, nullptr};
  LossDetection losses{first};
};

TEST_CASE("loss detection: mode rack gives up a packet that others have overtaken") {
  Sender sender(mode_with(Retransmission::Trigger::rack), 4);
  CHECK(sender.losses.deadline() == never);
  const Time now{10ms};
  CHECK(sender.acknowledge(1, 3, now) == 0);
  // Packet 3 took 8 ms. Packets 1 and 2 have so long, plus a quarter of a round trip.
  const Time lost = sender.losses.deadline();
  CHECK(lost > now);
  CHECK(lost <= Time{1ms} + 8ms + round_trip / 4 + 1us);
  CHECK(sender.losses.find_late(sender.mode, sender.window, {round_trip, {}}, lost, sender.pool) ==
        bytes);
  CHECK(sender.losses.deadline() > lost);
  CHECK(sender.losses.find_late(sender.mode, sender.window, {round_trip, {}}, lost + 500us,
                                sender.pool) == bytes);
  CHECK(sender.losses.deadline() == never);
  CHECK(sender.window.lost_packets() == 2);
}

TEST_CASE("loss detection: mode rack takes a packet for lost that many later ones have overtaken") {
  for (const uint32_t reorder_packets : {0u, 3u}) {
    Sender sender(mode_with(Retransmission::Trigger::rack, reorder_packets), 6);
    CHECK(sender.acknowledge(1, 4, Time{8ms}) == (reorder_packets == 0 ? 0 : bytes));
  }
}

// The acknowledgement of the first packet was lost, and comes with the answer to the question.
TEST_CASE("loss detection: what the answer to a question acknowledges measures no round trip") {
  for (const bool in_time : {true, false}) {
    Sender sender(mode_with(Retransmission::Trigger::rack), 2);
    const Time asked{50ms};
    sender.window.ask_last(asked, sender.pool);
    for (auto at = sender.window.begin(sender.pool); at; ++at) {
      if (!at->lost) continue;
      ++at->copies;
      sender.window.sending(*at, bytes, asked);
    }
    Saetph report;
    report.max_received = (sender.first + 1).wire();
    report.set_bit(0);
    const Time now = asked + (in_time ? 2ms : 20ms);
    const auto news =
        sender.window.acknowledge(sender.first + 1, &report, {1ms, 10ms}, now, sender.pool);
    REQUIRE(news.bytes == 2 * bytes);
    CHECK(news.answered == in_time);
    CHECK(news.rtt.has_value() != in_time);
  }
}

TEST_CASE("loss detection: mode fast takes what a report lacks for lost, once in a round trip") {
  Sender sender(mode_with(Retransmission::Trigger::fast), 6);
  CHECK(sender.acknowledge(1, 3, Time{12ms}) == 2 * bytes);
  CHECK(sender.losses.deadline() == never);
  for (auto at = sender.window.begin(sender.pool); at; ++at) {
    if (!at->lost) continue;
    at->copies = 2;
    sender.window.sending(*at, bytes, Time{13ms});
  }
  sender.losses.sent_again(sender.first + 2);
  // Later reports still lack them, but the packets that these report left before the copies.
  CHECK(sender.acknowledge(1, 4, Time{14ms}) == 0);
}

}  // namespace
}  // namespace urma::test
