// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "jetty/transactions.h"
#include "tests/catch.h"

namespace urma::test {

// A channel that keeps the slices that it is offered.
class KeepingChannel final : public transport::Channel {
 public:
  bool offer(transport::SliceRef slice, transport::Class, uint32_t) override {
    offered.push_back(slice);
    return true;
  }
  void expect_answers(int32_t, Time) override {}
  Time last_progress() const override { return {}; }
  const transport::Facts& facts() const override { return facts_; }

  std::vector<transport::SliceRef> offered;

 private:
  const transport::Facts facts_{.packet_bytes = 1024, .tassn_window = 64, .reads = 4};
};

// One peer, to which there is a channel once the test says so.
class OnePeer final : public transport::Channels {
 public:
  static constexpr PeerId id{.index = 0, .generation = 1};

  transport::Channel* channel(PeerId, Time) override { return connected ? &link : nullptr; }
  bool knows(PeerId) override { return true; }
  Eid eid(PeerId) override { return ipv4(10, 0, 0, 9); }
  transport::Why why_not(PeerId) override { return transport::Why::unreachable; }
  transport::Channel* unreliable(PeerId) override { return nullptr; }

  KeepingChannel link;
  bool connected = false;
};

class IgnoredEvents final : public jetty::EventSink {
 public:
  void raise(const Event&) override {}
};

// A transaction layer with one peer and without a transport or an engine.
struct LoneTransactions {
  // Writes the packet of each offered slice. The driver may read its memory until fill number
  // `fill` has settled.
  void write_offered(uint64_t fill) {
    transactions.initiator().begin_fill(fill);
    for (const transport::SliceRef slice : std::exchange(peer.link.offered, {})) {
      std::array<std::byte, TxFrame::head_room> head;
      TxFrame frame;
      frame.head = head.data();
      transport::PacketSlot packet{.slice = slice, .frame = &frame};
      transactions.write({&packet, 1});
    }
  }
  void connect(Time now) {
    peer.connected = true;
    transactions.up(OnePeer::id, peer.link, now);
  }

  OnePeer peer;
  IgnoredEvents events;
  memseg::SegmentTable segments{8, SipHash(1, 2)};
  jetty::Transactions transactions{
      {.jetties = 8, .peers = 2, .flows = 16}, segments, peer, events, 1};
};

// Posts a write of this memory to the peer.
inline void post_write(jetty::Queues& queues, std::span<const std::byte> from, uint64_t tag) {
  const RemoteSegment there{.peer = OnePeer::id,
                            .address = 0,
                            .bytes = 4096,
                            .token_id = TokenId(1),
                            .token = TokenValue(1),
                            .rights = Rights::write};
  const Work work = write(from, there).tag(tag);
  REQUIRE(queues.post({&work, 1}) == 1);
}

inline std::vector<Completion> polled(jetty::Queues& queues) {
  std::vector<Completion> out(8);
  out.resize(queues.jfc().poll(out));
  return out;
}

}  // namespace urma::test
