// SPDX-License-Identifier: Apache-2.0
// Tests one reliable channel without a simulator: the test carries, loses and repeats the packets
// of its two ends.

#include "transport/rtp/tp.h"

#include <utility>
#include <vector>

#include "tests/unit/transport/noted_source.h"
#include "tests/unit/transport/parts.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::ChannelView;
using transport::Class;
using transport::Tp;
using transport::TpSettings;
using transport::Why;

constexpr uint32_t tp_packet_bytes = 1024;
// The bytes that a full packet takes from the congestion window, with the allowance for headers.
constexpr uint32_t tp_most_bytes = tp_packet_bytes + 96;

// A packet as its slice knows it: the slot of the slice, and the index of the packet.
using PacketName = std::pair<uint64_t, uint64_t>;

// One end of a channel, the source of its slices, and the sink that learns which were delivered.
class TpEnd {
 public:
  explicit TpEnd(uint8_t number, uint32_t window = 64, uint64_t limit_bytes = 1 << 20)
      : self_(host(number)),
        paths_(only(self_)),
        tp(0, settings(number, window, limit_bytes), pools_, counters, Time(1s)) {}

  void offer(uint32_t slot, uint32_t bytes, Class traffic = Class::request) {
    REQUIRE(tp.offer({slot, 1}, traffic, bytes));
  }
  // Returns the packets that leave now, in at most this many frames.
  std::vector<fuzz::Packet> leave(Time now, size_t most = 32) {
    std::vector<TxFrame*> lent(most);
    REQUIRE(frames_.lend(lent) == most);
    const size_t count = tp.fill(source, lent, now);
    return gather(lent, count);
  }
  // Returns the acknowledgement that is owed.
  fuzz::Packet acknowledge(Time now) {
    REQUIRE(tp.owes_ack(now));
    std::vector<TxFrame*> lent(1);
    REQUIRE(frames_.lend(lent) == 1);
    tp.fill_ack(*lent[0]);
    return gather(lent, 1)[0];
  }
  void take(const fuzz::Packet& packet, Time now) {
    const std::span<const std::byte> bytes(packet.bytes);
    const Rtph header = header_of(packet);
    if (header.opcode == static_cast<uint8_t>(TpOpcode::data)) {
      if (!tp.handle_data(header, fuzz::received(packet), now)) return;
      const std::byte* const name = packet.bytes.data() + Rtph::size;
      if (!header.fake) arrived.emplace_back(load_be<8>(name), load_be<8>(name + 8));
      return;
    }
    const auto rest = bytes.subspan(Rtph::size, bytes.size() - Rtph::size - icrc_bytes);
    tp.handle_ack(header, rest, fuzz::received(packet), now, sink);
  }
  static Rtph header_of(const fuzz::Packet& packet) {
    const auto header = Rtph::parse(std::span(packet.bytes).first<Rtph::size>());
    REQUIRE(header);
    return *header;
  }

 private:
  static PathList only(const Endpoint& self) {
    PathList paths;
    paths.set(0, self);
    return paths;
  }
  TpSettings settings(uint8_t number, uint32_t window, uint64_t limit_bytes) {
    const auto other = static_cast<uint8_t>(3 - number);
    return {.ends = {.peer = {},
                     .local = Tpn(number),
                     .remote = Tpn(other),
                     .to = host(other),
                     .facts = {.packet_bytes = tp_packet_bytes}},
            .first_sent = Psn::first(number),
            .first_received = Psn::first(other),
            .send_window = window,
            .limit_bytes = limit_bytes,
            .first_rtt = 1ms,
            .mode = &mode_,
            .controller = congestion::find_controller("fixed"),
            .paths = &paths_};
  }
  std::vector<fuzz::Packet> gather(std::span<TxFrame* const> lent, size_t count) {
    std::vector<fuzz::Packet> out;
    for (TxFrame* const frame : lent.first(count)) out.push_back(fuzz::gathered(*frame, self_));
    for (TxFrame* const frame : lent) frames_.take_back(frame);
    return out;
  }

  const Endpoint self_;
  const PathList paths_;
  const Retransmission mode_ = sel_rack;
  drivers::FramePool frames_{32};
  transport::RtpPools pools_{64, 64, 1};

 public:
  NotedSource source;
  NotedSink sink;
  transport::Counters counters;
  std::vector<PacketName> arrived;
  Tp tp;
};

// A sender, its receiver, and the time.
struct TwoEnds {
  explicit TwoEnds(uint32_t window = 64, uint64_t limit_bytes = 1 << 20)
      : sender(1, window, limit_bytes) {}

  void carry(const std::vector<fuzz::Packet>& packets) {
    now += 500us;
    for (const fuzz::Packet& packet : packets) receiver.take(packet, now);
  }
  // Carries an acknowledgement back, once the receiver does not delay it any longer.
  void acknowledge() {
    now += 1ms;
    sender.take(receiver.acknowledge(now), now);
  }

  TpEnd sender;
  TpEnd receiver{2};
  Time now{2s};
};

TEST_CASE("slices that are offered leave, arrive, and are delivered once") {
  TwoEnds ends;
  ends.sender.offer(0, 100);
  ends.sender.offer(1, 2 * tp_packet_bytes + 1);
  ends.sender.offer(2, 0);
  CHECK(ends.sender.tp.wants_to_send(ends.now));
  const auto packets = ends.sender.leave(ends.now);
  CHECK_FALSE(ends.sender.tp.wants_to_send(ends.now));
  std::vector<bool> last;
  for (const fuzz::Packet& packet : packets) last.push_back(TpEnd::header_of(packet).last);
  CHECK(last == std::vector{true, false, false, true, true});
  ends.carry(packets);
  const std::vector<PacketName> all = {{0, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 0}};
  CHECK(ends.receiver.arrived == all);
  ends.carry(packets);
  CHECK(ends.receiver.arrived == all);
  CHECK(ends.receiver.counters.duplicates == 5);
  CHECK(ends.sender.sink.delivered_slots.empty());
  ends.now += 1ms;
  const fuzz::Packet ack = ends.receiver.acknowledge(ends.now);
  for (int times = 0; times < 2; ++times) ends.sender.take(ack, ends.now);
  CHECK(ends.sender.sink.delivered_slots == std::vector<uint32_t>{0, 1, 2});
  CHECK(ends.sender.tp.idle());
  CHECK(ends.sender.tp.last_progress() == ends.now);
  CHECK(ends.sender.source.written.size() == 5);
}

TEST_CASE("answers leave before requests that were offered earlier") {
  TwoEnds ends;
  ends.sender.offer(0, 16 * tp_packet_bytes);
  ends.sender.offer(1, 10, Class::answer);
  ends.carry(ends.sender.leave(ends.now));
  REQUIRE(ends.receiver.arrived.size() == 17);
  CHECK(ends.receiver.arrived.front() == PacketName{1, 0});
}

TEST_CASE("urgent requests leave before other ones, but a few packets of these stay in between") {
  TwoEnds ends;
  ends.sender.offer(0, 100);
  ends.sender.offer(1, 2 * tp_packet_bytes, Class::urgent);
  ends.sender.offer(2, 16 * tp_packet_bytes, Class::urgent);
  ends.sender.offer(3, 10, Class::answer);
  ends.carry(ends.sender.leave(ends.now));
  std::vector<uint64_t> slots;
  for (const PacketName& packet : ends.receiver.arrived) {
    if (slots.empty() || slots.back() != packet.first) slots.push_back(packet.first);
  }
  CHECK(slots == std::vector<uint64_t>{1, 3, 2, 0});
}

TEST_CASE("a lost packet leaves again, alone, and slices behind it wait for their delivery") {
  TwoEnds ends;
  for (uint32_t slot = 0; slot < 8; ++slot) ends.sender.offer(slot, 100);
  auto packets = ends.sender.leave(ends.now);
  packets.erase(packets.begin() + 2);
  ends.carry(packets);
  CHECK(ends.receiver.arrived.size() == 7);
  ends.acknowledge();
  CHECK(ends.sender.sink.delivered_slots == std::vector<uint32_t>{0, 1});
  CHECK(ends.sender.tp.wants_to_send(ends.now));
  ends.carry(ends.sender.leave(ends.now));
  CHECK(ends.sender.counters.retransmitted == 1);
  CHECK(ends.sender.source.written.back().again);
  CHECK(ends.receiver.arrived.back() == PacketName{2, 0});
  ends.acknowledge();
  CHECK(ends.sender.sink.delivered_slots == std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

ChannelView view_of(const TwoEnds& ends) {
  std::array<ChannelView, 1> views;
  REQUIRE(ends.sender.tp.view(views, ends.now) == 1);
  return views[0];
}

TEST_CASE("a channel counts what it sends again, and what was believed lost and arrived") {
  TwoEnds ends;
  for (uint32_t slot = 0; slot < 8; ++slot) ends.sender.offer(slot, 100);
  auto packets = ends.sender.leave(ends.now);
  const size_t packet_bytes = packets[0].bytes.size();
  const fuzz::Packet slow = packets[2], lost = packets[3];
  packets.erase(packets.begin() + 2, packets.begin() + 4);
  ends.carry(packets);
  ends.acknowledge();
  CHECK(view_of(ends).spurious == 0);
  ends.carry({slow});
  ends.acknowledge();
  CHECK(view_of(ends).spurious == 1);
  CHECK(view_of(ends).retransmitted == 0);
  const auto again = ends.sender.leave(ends.now);
  CHECK(again.size() == 1);
  CHECK(view_of(ends).retransmitted == 1);
  // The first copy arrives sooner after the second one has left than any answer to that can come.
  ends.receiver.take(lost, ends.now);
  ends.now += 100us;
  ends.sender.take(ends.receiver.acknowledge(ends.now), ends.now);
  CHECK(view_of(ends).spurious == 2);
  CHECK(view_of(ends).retransmitted == 1);
  CHECK(view_of(ends).acknowledged_bytes == ends.sender.counters.acknowledged_bytes);
  CHECK(view_of(ends).acknowledged_bytes == 8 * packet_bytes);
  CHECK(ends.sender.tp.idle());
}

TEST_CASE("a channel counts how often its peer was not ready") {
  TwoEnds ends;
  CHECK(view_of(ends).not_ready == 0);
  for (int times = 0; times < 3; ++times) ends.sender.tp.note_not_ready();
  CHECK(view_of(ends).not_ready == 3);
}

TEST_CASE("the windows and the frames bound how many packets leave") {
  TwoEnds few_numbers(4);
  few_numbers.sender.offer(0, 10 * tp_packet_bytes);
  CHECK(few_numbers.sender.leave(few_numbers.now, 3).size() == 3);
  CHECK(few_numbers.sender.tp.wants_to_send(few_numbers.now));
  CHECK(few_numbers.sender.leave(few_numbers.now).size() == 1);
  CHECK_FALSE(few_numbers.sender.tp.wants_to_send(few_numbers.now));
  CHECK(few_numbers.sender.leave(few_numbers.now).empty());

  TwoEnds few_bytes(64, 3 * tp_most_bytes);
  few_bytes.sender.offer(0, 10 * tp_packet_bytes);
  const auto packets = few_bytes.sender.leave(few_bytes.now);
  CHECK(packets.size() == 3);
  // The window is full, so the sender asks for an acknowledgement, which opens it again.
  CHECK(TpEnd::header_of(packets.back()).ack_request);
  few_bytes.carry(packets);
  few_bytes.acknowledge();
  CHECK(few_bytes.sender.leave(few_bytes.now).size() == 3);
}

TEST_CASE("small packets fill at least half of a window of one packet") {
  constexpr uint32_t small = 100;
  TwoEnds ends(64, tp_most_bytes);
  auto offer_one = [&, slot = 0u]() mutable { ends.sender.offer(slot++, small); };
  // One after the other, as a controller that paces lets them leave.
  std::vector<fuzz::Packet> packets;
  for (offer_one(); ends.sender.tp.wants_to_send(ends.now); offer_one()) {
    const auto some = ends.sender.leave(ends.now, 1);
    REQUIRE(some.size() == 1);
    packets.push_back(some[0]);
  }
  const uint64_t full = view_of(ends).inflight_bytes;
  CHECK(full >= tp_most_bytes / 2);
  CHECK(full <= tp_most_bytes);

  // The window is free again, and is filled as before.
  ends.carry(packets);
  ends.acknowledge();
  for (offer_one(); ends.sender.tp.wants_to_send(ends.now); offer_one()) {
    REQUIRE(ends.sender.leave(ends.now, 1).size() == 1);
  }
  CHECK(view_of(ends).inflight_bytes >= tp_most_bytes / 2);
}

TEST_CASE("a slice that is withdrawn leaves as filler, which leaves no hole in the numbers") {
  TwoEnds ends;
  for (uint32_t slot = 0; slot < 3; ++slot) ends.sender.offer(slot, 100);
  ends.sender.source.withdrawn = {1};
  ends.carry(ends.sender.leave(ends.now));
  CHECK(ends.sender.counters.filler == 1);
  CHECK(ends.receiver.arrived == std::vector<PacketName>{{0, 0}, {2, 0}});
  CHECK(ends.receiver.counters.out_of_order == 0);
  ends.acknowledge();
  CHECK(ends.sender.tp.idle());
}

TEST_CASE("a peer that is silent for a second ends the channel, which has asked it repeatedly") {
  TwoEnds ends;
  ends.sender.offer(0, 100);
  CHECK(ends.sender.leave(ends.now).size() == 1);
  const Time begun = ends.now;
  std::optional<Why> ended;
  while (!ended && ends.now - begun < 5s) {
    ends.now = std::max(ends.sender.tp.next_deadline(), ends.now + 1us);
    ended = ends.sender.tp.handle_timer(ends.now);
    while (!ended && ends.sender.tp.wants_to_send(ends.now)) ends.sender.leave(ends.now);
  }
  CHECK(ended == Why::silent);
  CHECK(ends.now - begun == 1s);
  CHECK(ends.sender.counters.timeouts > 0);
  CHECK(ends.sender.counters.retransmitted > 1);
  CHECK(ends.sender.sink.delivered_slots.empty());
}

TEST_CASE("a peer that owes an answer is asked for a sign of life, an idle one is not") {
  TwoEnds ends;
  CHECK(ends.sender.tp.next_deadline() == never);
  CHECK_FALSE(ends.sender.tp.handle_timer(ends.now + 1h));
  ends.sender.tp.expect_answers(1, ends.now);
  ends.now += 250ms;
  CHECK(ends.sender.tp.next_deadline() == ends.now);
  CHECK_FALSE(ends.sender.tp.handle_timer(ends.now));
  const auto packets = ends.sender.leave(ends.now);
  REQUIRE(packets.size() == 1);
  CHECK(TpEnd::header_of(packets[0]).fake);
  CHECK(TpEnd::header_of(packets[0]).ack_request);
  ends.carry(packets);
  CHECK(ends.receiver.arrived.empty());
  ends.acknowledge();
  const Time heard = ends.now;
  CHECK_FALSE(ends.sender.tp.handle_timer(heard + 999ms));
  CHECK(ends.sender.tp.handle_timer(heard + 1s) == Why::silent);
}

}  // namespace
}  // namespace urma::test
