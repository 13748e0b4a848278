// SPDX-License-Identifier: Apache-2.0
// Two Transports with a channel between them, and a fuzzer that owns the wire: it loses, repeats,
// reorders, corrupts, replays, holds back, forges from elsewhere, and lets time pass.
//
// Oracle: each packet is fresh once, and is what was sent; a slice is reported as delivered once,
// in order, when all of it has arrived; and after the wire is good again, everything that was
// offered on a channel that still exists is delivered. In hostile runs, where the fuzzer forges
// packets of the channel itself with the right ICRC, no promise about delivery can be kept: then it
// must only not crash, not hang and not deliver a slice twice.

#include <algorithm>

#include "tests/fuzz/input.h"
#include "tests/fuzz/packet.h"
#include "tests/fuzz/tp_end.h"

namespace urma::fuzz {
namespace {

class Script {
 public:
  Script(const uint8_t* data, size_t size)
      : input_(data, size),
        choice_(input_.take()),
        left_(settings(0), 1, !hostile()),
        right_(settings(1), 2, !hostile()) {
    left_.other = &right_;
    right_.other = &left_;
    pool_.lend(frames_);
  }

  void run() {
    left_.connect(right_.self, now_);
    for (int rounds = 0; !both_up(); ++rounds) {
      require(rounds < 10, "a channel is made over a good wire");
      pass_all();
    }
    for (int steps = 0; !input_.empty() && steps < 500; ++steps) step();
    heal();
  }

 private:
  static constexpr size_t most_in_flight = 512;

  bool hostile() const { return (choice_ & 1) != 0; }
  bool both_up() const { return left_.channel != nullptr && right_.channel != nullptr; }
  End& any_end() { return input_.below(2) == 0 ? left_ : right_; }

  // The first two react to loss alone.
  const congestion::ControllerKind& controller() const {
    const auto all = congestion::controllers();
    const size_t reads_reports = choice_ >> 4 & 7;
    if (reads_reports == 0) return all[choice_ >> 3 & 1];
    return all[2 + reads_reports % (all.size() - 2)];
  }

  transport::Settings settings(uint8_t side) const {
    const Eid eid = ipv4(127, 0, 0, static_cast<uint8_t>(1 + side));
    return {.self = {eid, ub_port},
            .eid = eid,
            .life = Incarnation(10u + side),
            .mtu = 1024,
            .retransmission = {.window_packets = choice_ & 2 ? 16u : 2048u},
            .buffer_bytes = choice_ & 4 ? 4'000u : 200'000u,
            .controller = &controller(),
            .reports = ReportForms{0x0f},
            .peers = 3,
            .packets = 512,
            .slices = 128};
  }

  void step() {
    switch (input_.below(16)) {
      case 0:
      case 1: {
        const auto traffic =
            input_.below(4) == 0 ? transport::Class::answer : transport::Class::request;
        return any_end().offer(traffic,
                               input_.chance(128) ? input_.take() : input_.take<uint16_t>());
      }
      case 2:
      case 3:
        return fill(any_end(), 1 + input_.below(32));
      case 4:
        return deliver(pick(), false);
      case 5:
        return deliver_first(1 + input_.below(32));
      case 6:
        return deliver(pick(), true);
      case 7:
        if (wire_.empty()) return;
        wire_.erase(wire_.begin() + static_cast<ptrdiff_t>(pick()));
        return;
      case 8:
        return corrupt();
      case 9:
        return replay();
      case 10:
        return forge_from_elsewhere();
      case 11:
        return advance(std::chrono::microseconds(20) * input_.take());
      case 12:
        return advance(std::chrono::milliseconds(2) * input_.take());
      case 13: {
        End& end = any_end();
        if (end.slices.empty()) return;
        const auto which = input_.below(static_cast<uint32_t>(end.slices.size()));
        end.slices[which].withdrawn = true;
        return;
      }
      case 14:
        if (input_.chance(128)) return expect_answers(any_end());
        any_end().room = input_.chance(192);
        return;
      case 15:
        return hostile() ? forge() : deliver(0, false);
    }
  }

  // Sets whether the end expects answers. If it does, a slice was offered.
  void expect_answers(End& end) {
    const bool more = input_.chance(128);
    end.expect_answers(more, now_);
    if (more) end.offer(transport::Class::request, 0);
  }

  // ---- the wire

  size_t pick() { return wire_.empty() ? 0 : input_.below(static_cast<uint32_t>(wire_.size())); }

  void fill(End& end, size_t frames) {
    if (!end.transport.wants_to_send()) return;
    const auto lent = std::span(frames_).first(frames);
    const size_t filled = end.transport.fill(end, lent, now_);
    for (size_t i = 0; i < filled && wire_.size() < most_in_flight; ++i) {
      wire_.push_back(gathered(*lent[i], end.self));
      history_[remembered_++ % history_.size()] = wire_.back();
    }
  }

  void hand_over(std::span<const Packet> packets) {
    for (End* end : {&left_, &right_}) {
      std::vector<RxFrame> frames;
      for (const Packet& packet : packets) {
        if (!(packet.to == end->self)) continue;
        frames.push_back(received(packet));
        // Some are marked; which ones depends on the ICRC.
        const bool marked = (packet.bytes.back() & std::byte{3}) == std::byte{0};
        frames.back().ecn = marked ? Ecn::ce : Ecn::ect0;
        // Switches may have written anything.
        if (packet.bytes.size() >= 2) {
          frames.back().cci = static_cast<uint16_t>(load_be<2>(&packet.bytes.back() - 1));
        }
      }
      if (!frames.empty()) end->transport.receive(frames, now_);
    }
  }
  void deliver(size_t which, bool keep) {
    if (wire_.empty()) return;
    const Packet packet = wire_[which];
    if (!keep) wire_.erase(wire_.begin() + static_cast<ptrdiff_t>(which));
    hand_over({&packet, 1});
  }
  void deliver_first(size_t count) {
    const auto end = wire_.begin() + static_cast<ptrdiff_t>(std::min(count, wire_.size()));
    const std::vector<Packet> burst(wire_.begin(), end);
    wire_.erase(wire_.begin(), end);
    hand_over(burst);
  }

  void flip(Packet& packet) {
    for (uint32_t times = 1 + input_.below(3); times > 0; --times) {
      const uint32_t at = input_.below(static_cast<uint32_t>(packet.bytes.size()));
      // Flips bits, mostly in the headers.
      packet.bytes[input_.chance(200) ? at % 24 : at] ^=
          static_cast<std::byte>(1 << input_.below(8));
    }
  }
  // Flips up to three bits, which the ICRC certainly detects in packets of this length.
  void corrupt() {
    if (wire_.empty()) return;
    flip(wire_[pick()]);
  }
  Packet remembered() { return history_[input_.below(static_cast<uint32_t>(history_.size()))]; }
  // Sends an earlier packet again, unchanged.
  void replay() {
    const Packet packet = remembered();
    if (!packet.bytes.empty()) hand_over({&packet, 1});
  }
  // Sends an earlier packet, changed or not, from an address that its sender does not have.
  void forge_from_elsewhere() {
    Packet packet = remembered();
    if (packet.bytes.empty()) return;
    packet.from.port = static_cast<uint16_t>(1 + input_.below(100));
    if (input_.chance(128)) flip(packet);
    hand_over_forged(packet);
  }
  // Sends any packet from the right address; only in hostile runs.
  void forge() {
    Packet packet = remembered();
    if (packet.bytes.empty()) return;
    flip(packet);
    if (input_.chance(64)) {
      const auto more = input_.bytes(input_.take());
      packet.bytes.insert(packet.bytes.end(), more.begin(), more.end());
    }
    if (input_.chance(32)) packet.bytes.resize(1 + input_.below(64));
    hand_over_forged(packet);
  }
  void hand_over_forged(Packet& packet) {
    // Set-up messages are verified by incarnations and cookies, not by addresses; setup_fuzz covers
    // them.
    if ((packet.bytes[0] & std::byte{0x7f}) == std::byte{0}) packet.bytes[0] |= std::byte{1};
    seal_again(packet);
    hand_over({&packet, 1});
  }

  // ---- time

  void advance(Duration by) {
    now_ += by;
    left_.transport.handle_timers(now_);
    right_.transport.handle_timers(now_);
  }

  // Carries all pending packets to the other end, in order. Returns false if there were none.
  bool pass_all() {
    fill(left_, 32);
    fill(right_, 32);
    const bool any = !wire_.empty();
    if (any) deliver_first(wire_.size());
    return any;
  }

  // Makes the wire good from now on: all promises must be kept, and the channel must continue.
  void heal() {
    left_.room = right_.room = true;
    settle();
    if (hostile()) return;
    // An end whose channel the other end does not know learns that by using it.
    for (int tries = 0; tries < 3; ++tries) {
      left_.connect(right_.self, now_);
      settle();
      left_.offer(transport::Class::request, 3000);
      settle();
    }
    require(both_up(), "a healed wire carries a channel");
    left_.offer(transport::Class::request, 3000);
    right_.offer(transport::Class::answer, 3000);
    left_.expect_nothing(now_);
    right_.expect_nothing(now_);
    settle();
    require(left_.finished() && right_.finished(), "what is offered is delivered");
    require(left_.transport.idle() && right_.transport.idle(), "then there is nothing left to do");
  }

  void settle() {
    const Time until = now_ + std::chrono::seconds(6);
    for (int steps = 0; now_ < until; ++steps) {
      require(steps < 100'000, "time goes on");
      // Continues as long as one end has something to send, which in hostile runs may be for ever.
      for (int rounds = 0; rounds < (hostile() ? 4 : 1000); ++rounds) {
        if (!pass_all()) break;
      }
      if (!hostile() && left_.finished() && right_.finished() && both_up() && wire_.empty() &&
          left_.transport.idle() && right_.transport.idle()) {
        return;
      }
      const Time next =
          std::min({left_.transport.next_deadline(), right_.transport.next_deadline(), until});
      advance(std::max(next - now_, TimerWheel::tick));
    }
  }

  Input input_;
  const uint8_t choice_;
  End left_;
  End right_;
  drivers::FramePool pool_{32};
  std::array<TxFrame*, 32> frames_{};
  Time now_{std::chrono::seconds(100)};
  std::vector<Packet> wire_;
  std::array<Packet, 64> history_;
  size_t remembered_ = 0;
};

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::Script(data, size).run();
  return 0;
}
