// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/region.h"
#include "transport/channel.h"
#include "transport/counters.h"
#include "wire/icrc.h"
#include "wire/setup_message.h"

namespace urma::transport {

// Sends datagrams, without a channel (UTP, UB 4.1.3): a packet is copied here and leaves when a
// frame takes it. It is neither answered nor retransmitted, and the sender does not learn whether
// it arrives. One object serves all peers and is aimed at each in turn. It implements only `begin`
// and `end` of Channel. Only the thread that runs the engine calls it.
class Utp final : public Channel {
 public:
  Utp(uint32_t mtu, Carrier carrier, Counters& counters);

  // The destination of the next packet, and the path of this device that it takes.
  struct Aim {
    Endpoint to;
    uint8_t path = 0;
    Addresses addresses;
  };
  void aim(const Aim& aim) { aim_ = aim; }

  // Channel
  bool offer(SliceRef, Class, uint32_t) override { return false; }
  std::byte* begin(uint32_t bytes) override;
  void end() override;
  void expect_answers(int32_t, Time) override {}
  Time last_progress() const override { return {}; }
  const Facts& facts() const override { return facts_; }

  bool waits() const { return filled_ != written_; }
  // Writes the oldest packet into `frame`, up to its ICRC. The packet's memory stays in use until
  // the frame is settled. `left` must follow: it says how many frames have left, this one included
  // if it leaves.
  void fill(TxFrame& frame);
  void left(uint64_t frames) { packets_[(filled_ - 1) % capacity].frames = frames; }
  void settled(uint64_t frames) {
    if (settled_ != filled_) forget(frames);
  }

 private:
  // Packets that wait or whose frame the driver still has.
  static constexpr uint32_t capacity = 64;
  struct Packet {
    Aim aim;
    uint32_t bytes = 0;
    uint64_t frames = 0;  // how many frames had left, its own included
  };

  void forget(uint64_t frames);
  std::byte* memory(uint32_t number) { return &memory_[number % capacity * packet_bytes_]; }

  const Carrier carrier_;
  const Facts facts_;
  const size_t packet_bytes_;
  Counters& counters_;
  Aim aim_;
  uint32_t begun_bytes_ = 0;
  // Counts of packets: written, filled into a frame, settled.
  uint32_t written_ = 0;
  uint32_t filled_ = 0;
  uint32_t settled_ = 0;
  std::array<Packet, capacity> packets_;
  RegionArray<std::byte> memory_;
};

}  // namespace urma::transport
