// SPDX-License-Identifier: Apache-2.0
// Tests one channel over a medium without loss, whose part the test plays.

#include "transport/ctp.h"

#include <vector>

#include "tests/unit/transport/fake_ways.h"
#include "tests/unit/transport/noted_source.h"
#include "tests/unit/transport/parts.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using transport::Class;
using transport::Why;

// A channel, with the source of its slices and the sink that learns which answers arrived.
struct CtpEnd {
  void offer(uint32_t slot, Class traffic = Class::request) {
    REQUIRE(ctp.offer({slot, 1}, traffic, 100));
  }
  // Returns the slots of the slices that leave now.
  std::vector<uint64_t> leave() {
    std::vector<TxFrame*> lent(frames.size());
    REQUIRE(frames.lend(lent) == lent.size());
    const size_t count = ctp.fill(source, lent, now);
    std::vector<uint64_t> slots;
    for (TxFrame* const frame : std::span(lent).first(count)) {
      opcodes.push_back(Ctph::parse(HeaderView<Ctph::size>(frame->head, Ctph::size))->opcode);
      slots.push_back(load_be<8>(frame->head + Ctph::size));
    }
    for (TxFrame* const frame : lent) frames.take_back(frame);
    return slots;
  }

  Time now{2s};
  FakeWays ways;
  NotedSource source;
  NotedSink sink;
  drivers::FramePool frames{16};
  transport::Pools pools{64, 1};
  transport::Counters counters;
  std::vector<Ctph::Opcode> opcodes;  // of all packets that have left
  transport::Ctp ctp{0,
                     {.peer = {}, .to = host(2), .facts = {.packet_bytes = 65536}},
                     {.sink = sink, .ways = ways},
                     pools,
                     counters,
                     now};
};

TEST_CASE(
    "CTP: each slice leaves once, as one packet, and only answers are reported as delivered") {
  CtpEnd end;
  end.offer(0);
  end.offer(1, Class::answer);
  end.offer(2);
  end.source.withdrawn = {2};
  CHECK(end.ctp.wants_to_send(end.now));
  CHECK(end.leave() == std::vector<uint64_t>{0, 2, 1});
  using Opcode = Ctph::Opcode;
  CHECK(end.opcodes == std::vector{Opcode::packet, Opcode::filler, Opcode::packet});
  CHECK(end.sink.delivered_slots == std::vector<uint32_t>{1});
  CHECK_FALSE(end.ctp.wants_to_send(end.now));
  CHECK(end.leave().empty());
}

TEST_CASE("CTP: slices wait, in their order, while the way is full or the channel is paused") {
  CtpEnd end;
  end.offer(0);
  end.offer(1);
  end.ways.room = false;
  CHECK(end.leave().empty());
  CHECK(end.ctp.begin(10) == nullptr);
  // It looks whether the peer is alive, and then tries again soon.
  CHECK_FALSE(end.ctp.handle_timer(end.now));
  CHECK(end.ctp.next_deadline() == end.now + 50us);
  end.ways.room = true;
  end.ctp.pause(true);
  CHECK(end.leave().empty());
  CHECK_FALSE(end.ctp.wants_to_send(end.now));
  end.ctp.pause(false);
  CHECK(end.leave() == std::vector<uint64_t>{0, 1});
}

TEST_CASE("CTP: a packet is written into the medium at once, unless others wait before it") {
  CtpEnd end;
  CHECK(end.ctp.begin(10) == end.ways.at_once.data() + Ctph::size);
  end.ctp.end();
  CHECK(end.ways.sent_at_once == 1);
  CHECK(end.counters.sent == 1);
  end.offer(0);
  CHECK(end.ctp.begin(10) == nullptr);
}

TEST_CASE("CTP: a short packet is sent in the line that the driver has prepared") {
  CtpEnd end;
  std::array<std::byte, NextLine::short_bytes> content;
  end.ways.line = {
      .content = content.data(), .mark = &end.ways.mark, .lap = 0x100, .takes_short = true};
  CHECK(end.ctp.begin(10) == content.data() + Ctph::size);
  CHECK(Ctph::parse(HeaderView<Ctph::size>(content.data(), Ctph::size)).has_value());
  CHECK(end.ways.mark == 0);
  end.ctp.end();
  CHECK(end.ways.mark == (0x100 | 11));
  CHECK(end.ways.sent_in_line == 11);
  CHECK(end.ways.sent_at_once == 0);
  CHECK(end.ctp.begin(NextLine::short_bytes) == end.ways.at_once.data() + Ctph::size);
  end.ctp.end();
  CHECK(end.ways.sent_at_once == 1);
  end.ctp.pause(true);
  CHECK(end.ctp.begin(10) == nullptr);
}

TEST_CASE("CTP: a peer that takes nothing for a second is silent, until a packet of it comes") {
  CtpEnd end;
  end.offer(0);
  end.leave();
  end.ways.now.empty = false;
  const Time sent = end.now;
  while (!end.ctp.silent() && end.now - sent < 2s) {
    end.now = end.ctp.next_deadline();
    REQUIRE_FALSE(end.ctp.handle_timer(end.now));
  }
  CHECK(end.ctp.silent());
  CHECK(end.now - sent >= 1s);
  CHECK(end.now - sent <= 1010ms);
  CHECK(end.ctp.begin(10) == nullptr);
  CHECK(end.ctp.handle_packet(end.now));
  CHECK_FALSE(end.ctp.silent());
  CHECK_FALSE(end.ctp.handle_packet(end.now));
}

TEST_CASE("CTP: a peer whose process is gone, or that the medium has no room for, ends it") {
  for (const bool gone : {true, false}) {
    CtpEnd end;
    end.offer(0);
    end.leave();
    (gone ? end.ways.now.gone : end.ways.now.no_room) = true;
    CHECK(end.ctp.handle_timer(end.now + 10ms) == (gone ? Why::left : Why::no_room));
  }
}

}  // namespace
}  // namespace urma::test
