// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/receipts.h"

#include <array>
#include <set>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Receipts;
using Arrival = Receipts::Arrival;

// An acknowledgement as it leaves the channel.
struct Written {
  Rtph header;
  std::optional<Saetph> holes;

  bool negative() const { return header.status == static_cast<uint8_t>(TpStatus::completer_error); }
};

// The receiving direction of a channel whose peer retransmits in the mode `peers_mode`.
struct Receiving {
  static constexpr Duration rtt = 800us;  // acknowledgements are delayed by a quarter of it

  explicit Receiving(const Retransmission& peers_mode, uint32_t first = 100, uint32_t bitmaps = 1)
      : pool(bitmaps), receipts(Psn::first(first), mode, peers_mode) {}
  ~Receiving() { receipts.release(pool); }

  Arrival arrives(uint64_t psn, bool asks = false) {
    const Rtph header{.ack_request = asks, .psn = Psn{psn}.wire()};
    return receipts.receive(header, mode, now, pool);
  }
  bool due() const { return receipts.due(mode, waits, rtt, now); }
  Written write() {
    std::array<std::byte, Rtph::size + Saetph::max_size> bytes{};
    const size_t size = receipts.write({.source = 7, .destination = 9}, mode, bytes, pool);
    const auto header = Rtph::parse(std::span(bytes).first<Rtph::size>());
    REQUIRE(header);
    CHECK(header->source == 7);
    CHECK(header->destination == 9);
    Written out{*header, {}};
    if (header->opcode == static_cast<uint8_t>(TpOpcode::selective_ack)) {
      out.holes = Saetph::parse(std::span(bytes).first(size).subspan(Rtph::size));
      REQUIRE(out.holes);
    } else {
      CHECK(header->opcode == static_cast<uint8_t>(TpOpcode::ack));
      CHECK(size == Rtph::size);
    }
    return out;
  }

  transport::Waits waits{1ms};
  Retransmission mode{.window_packets = 16, .bitmap_bits = 64, .ack_packets = 4};
  Time now{1s};
  Receipts::Pool pool;
  Receipts receipts;
};

TEST_CASE("receipts: an acknowledgement is delayed, and serves for all packets until then") {
  Receiving one(sel_rack);
  CHECK_FALSE(one.due());
  CHECK(one.receipts.deadline(one.mode, one.waits, one.rtt) == never);
  CHECK(one.arrives(100) == Arrival::fresh);
  const Time begun = one.now;
  CHECK(one.receipts.deadline(one.mode, one.waits, one.rtt) == begun + 200us);
  one.now += 150us;
  CHECK(one.arrives(101) == Arrival::fresh);
  CHECK(one.receipts.deadline(one.mode, one.waits, one.rtt) == begun + 200us);
  CHECK_FALSE(one.due());
  one.now = begun + 200us;
  CHECK(one.due());
  CHECK(one.write().header.psn == 101);
  CHECK_FALSE(one.due());
  CHECK(one.receipts.deadline(one.mode, one.waits, one.rtt) == never);
}

TEST_CASE(
    "receipts: the delay is a quarter of the round trip within bounds, or what the mode says") {
  Receiving one(sel_rack);
  one.arrives(100);
  CHECK(one.receipts.deadline(one.mode, one.waits, 1us) == one.now + 100us);
  CHECK(one.receipts.deadline(one.mode, one.waits, 1s) == one.now + 400us);
  one.mode.ack_delay = 10ms;
  CHECK(one.receipts.deadline(one.mode, one.waits, 1us) == one.now + 10ms);
}

TEST_CASE("receipts: enough packets, a duplicate, or a request make it due immediately") {
  Receiving many(sel_rack);
  for (uint64_t psn = 100; psn < 103; ++psn) many.arrives(psn);
  CHECK_FALSE(many.due());
  many.arrives(103);
  CHECK(many.due());
  many.write();
  CHECK(many.arrives(103) == Arrival::duplicate);
  CHECK(many.due());
  CHECK(many.write().header.psn == 103);
  many.arrives(104, true);
  CHECK(many.due());
}

TEST_CASE("receipts: the sender is notified immediately when the last hole is filled") {
  for (const Retransmission& mode : {sel_rack, sel_fast, sel_timeout, gbn_timeout}) {
    Receiving one(mode);
    one.arrives(102);
    one.arrives(101);
    one.write();
    CHECK(one.arrives(100) == Arrival::fresh);
    CHECK(one.due());
    CHECK(one.write().header.psn == 102);
  }
}

// UB 4.4.2
TEST_CASE("receipts: go-back-N sends one TPNAK, until a packet in order or a duplicate arrives") {
  Receiving one(gbn_fast);
  one.arrives(100);
  CHECK(one.arrives(102) == Arrival::not_kept);
  CHECK(one.due());
  const Written first = one.write();
  CHECK(first.negative());
  CHECK(first.header.psn == 101);
  one.arrives(103);
  CHECK_FALSE(one.due());
  // A TPACK that only answers a request does not permit another TPNAK.
  one.arrives(103, true);
  CHECK_FALSE(one.write().negative());
  one.arrives(104);
  CHECK_FALSE(one.due());
  for (const uint64_t permits : {101u, 100u}) {
    one.arrives(permits);
    one.arrives(105);
    CHECK(one.write().negative());
  }
}

TEST_CASE("receipts: a TPNAK is not sent if the hole is filled before it leaves") {
  Receiving one(gbn_fast);
  one.arrives(101);
  one.arrives(100);
  CHECK(one.due());  // 101 was dropped
  one.arrives(101);
  one.now += 1s;
  CHECK_FALSE(one.write().negative());
}

TEST_CASE("receipts: without memory for a bitmap, a TPNAK reports the hole in each mode") {
  for (const Retransmission& mode : {sel_rack, sel_fast, sel_timeout, gbn_timeout}) {
    Receiving one(mode, 100, 0);
    CHECK(one.arrives(101) == Arrival::no_memory);
    CHECK(one.due());
    const Written nak = one.write();
    CHECK(nak.negative());
    CHECK(nak.header.psn == 100);
  }
}

// Defines which acknowledgement is owed by looking at all events so far, instead of by state that
// each event changes.
class History {
 public:
  History(const Retransmission& peers_mode, const Retransmission& mode, uint64_t first,
          bool has_memory)
      : selective_(peers_mode.scope == Retransmission::Scope::selective),
        rare_(peers_mode.trigger == Retransmission::Trigger::timeout),
        keeps_(peers_mode.keeps_out_of_order),
        has_memory_(has_memory),
        mode_(mode),
        expected_(first) {}

  Arrival arrives(uint64_t psn, bool asks, Time now) {
    Event event{.asks = asks, .at = now, .hole_before = hole()};
    event.arrival = classify(psn);
    if (event.arrival != Arrival::duplicate && event.arrival != Arrival::invalid)
      highest_ = std::max(highest_, psn);
    if (event.arrival == Arrival::fresh) {
      arrived_.insert(psn);
      event.in_order = psn == expected_;
      while (arrived_.contains(expected_)) ++expected_;
    }
    event.hole_after = hole();
    event.more_sent = highest_ >= expected_;
    since_write_.push_back(event);
    if (event.in_order || event.arrival == Arrival::duplicate) nak_written_ = false;
    since_write_.back().nak_written = nak_written_;
    return event.arrival;
  }

  // Returns whether a TPNAK is owed: some packet since the last acknowledgement showed a hole, no
  // TPNAK had reported it, and packets in order have not caught up with all that arrived.
  bool negative() const {
    bool out = false;
    for (const Event& event : since_write_) {
      if (event.in_order && !event.more_sent) out = false;
      const bool out_of_order = event.arrival == Arrival::not_kept || kept_ahead(event);
      const bool shows =
          event.arrival == Arrival::no_memory || (out_of_order && !selective_ && !rare_);
      if (shows && !event.nak_written) out = true;
    }
    return out;
  }
  uint32_t owed() const {
    return static_cast<uint32_t>(std::count_if(since_write_.begin(), since_write_.end(),
                                               [&](const Event& event) { return owes(event); }));
  }
  Time deadline(Duration delay) const {
    for (const Event& event : since_write_) {
      if (owes(event)) return event.at + delay;
    }
    return never;
  }
  bool due(Duration delay, Time now) const {
    for (const Event& event : since_write_) {
      if (event.asks || event.arrival == Arrival::duplicate) return true;
      if (event.in_order && event.hole_before && !event.hole_after) return true;
      // The sender acts on each TPSACK, so each change of what it reports is sent.
      const bool changes = kept_ahead(event) || (event.in_order && event.hole_before);
      if (changes && selective_ && !rare_) return true;
    }
    return negative() || owed() >= mode_.ack_packets || now >= deadline(delay);
  }
  void check(const Written& written) const {
    REQUIRE(written.negative() == negative());
    REQUIRE(written.header.psn == Psn{negative() ? expected_ : expected_ - 1}.wire());
    REQUIRE(written.holes.has_value() == (!negative() && selective_ && hole()));
    if (!written.holes) return;
    REQUIRE(written.holes->max_received == Psn{highest_}.wire());
    for (uint32_t bit = 1; bit < mode_.window_packets; ++bit) {
      REQUIRE(written.holes->bit(bit) == arrived_.contains(expected_ - 1 + bit));
    }
  }
  void written() {
    nak_written_ = nak_written_ || negative();
    since_write_.clear();
  }
  uint64_t expected() const { return expected_; }

 private:
  struct Event {
    Arrival arrival = Arrival::invalid;
    bool asks = false;
    bool in_order = false;
    bool nak_written = false;  // and nothing has permitted another one
    Time at{};
    bool hole_before = false;
    bool hole_after = false;
    bool more_sent = false;  // a packet beyond the missing one is known, kept or not
  };

  static bool kept_ahead(const Event& event) {
    return event.arrival == Arrival::fresh && !event.in_order;
  }
  bool owes(const Event& event) const {
    return event.in_order || (kept_ahead(event) && selective_);
  }
  bool hole() const { return !arrived_.empty() && *arrived_.rbegin() > expected_; }
  Arrival classify(uint64_t psn) const {
    if (psn >= expected_ + mode_.window_packets) return Arrival::invalid;
    if (psn < expected_ || arrived_.contains(psn)) return Arrival::duplicate;
    if (psn == expected_) return Arrival::fresh;
    if (!keeps_) return Arrival::not_kept;
    return has_memory_ ? Arrival::fresh : Arrival::no_memory;
  }

  const bool selective_;
  const bool rare_;  // the sender waits for a time-out, so a hole is not reported immediately
  const bool keeps_;
  const bool has_memory_;
  const Retransmission& mode_;
  uint64_t expected_;
  uint64_t highest_ = 0;
  std::set<uint64_t> arrived_;
  std::vector<Event> since_write_;
  bool nak_written_ = false;
};

TEST_CASE(
    "receipts: in each mode, the owed acknowledgement follows from the history of the channel") {
  constexpr uint32_t first = 0xfffff0;  // numbers wrap soon
  for (const Retransmission& named : {sel_rack, sel_fast, sel_timeout, gbn_fast, gbn_timeout}) {
    for (const bool keeps : {false, true}) {
      for (const bool has_memory : {false, true}) {
        Retransmission peers_mode = named;
        peers_mode.keeps_out_of_order = keeps;
        Receiving one(peers_mode, first, has_memory ? 1 : 0);
        History history(peers_mode, one.mode, Psn::first(first).value, has_memory);
        INFO(name(named) << ", keeps " << keeps << ", has memory " << has_memory);
        Prng prng(1);
        for (int step = 0; step < 3000; ++step) {
          // The PSN is most often the next one, and otherwise from 3 before it to beyond the
          // window.
          const uint64_t psn = history.expected() - 3 + (prng.below(3) == 0 ? 3 : prng.below(21));
          const bool asks = prng.below(16) == 0;
          const bool in_order = psn == history.expected();
          const Rtph header{.psn = Psn{psn}.wire()};
          REQUIRE(one.receipts.in_order(header) == in_order);
          const bool fresh = one.receipts.is_fresh(header, one.pool);
          const Arrival arrival = history.arrives(psn, asks, one.now);
          REQUIRE(fresh == (arrival == Arrival::fresh));
          REQUIRE(one.arrives(psn, asks) == arrival);
          one.now += Duration(static_cast<int64_t>(prng.below(100'000)));
          REQUIRE(one.receipts.deadline(one.mode, one.waits, one.rtt) ==
                  history.deadline(one.rtt / 4));
          REQUIRE(one.due() == history.due(one.rtt / 4, one.now));
          // An acknowledgement leaves late, or although none is due yet.
          if (prng.below(one.due() ? 2 : 50) != 0) continue;
          history.check(one.write());
          history.written();
          REQUIRE_FALSE(one.due());
        }
      }
    }
  }
}

}  // namespace
}  // namespace urma::test
