#pragma once

#include <utility>

#include "base/region.h"
#include "transport/channel.h"
#include "transport/counters.h"
#include "wire/icrc.h"
#include "wire/setup_message.h"

namespace urma::transport {

// What is sent once, without a channel of the peer's (UTP, UB 4.1.3): a packet is copied here, and
// leaves when a frame takes it. Nothing answers it, nothing is repeated, and whether it arrives is
// for nobody to say. It is one object for all peers, aimed at each in turn; of a Channel it has
// `begin` and `end` only.
class Utp final : public Channel {
 public:
  Utp(uint32_t mtu, Carrier carrier, Counters& counters);

  // Where the next packet goes, and on which of our paths.
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
  // Writes the oldest into `frame`, up to its ICRC. Its memory is the frame's until the frame is
  // settled, or has not left after all: `left` says how many frames have, this one included.
  void fill(TxFrame& frame);
  void left(uint64_t frames) { packets_[(filled_ - 1) % capacity].frames = frames; }
  void settled(uint64_t frames) {
    if (settled_ != filled_) forget(frames);
  }

 private:
  // Packets that wait, or lie with the driver.
  static constexpr uint32_t capacity = 64;
  struct Packet {
    Aim aim;
    uint32_t bytes = 0;
    uint64_t frames = 0;  // that have left, with its own
  };

  void forget(uint64_t frames);
  std::byte* memory(uint32_t number) { return &memory_[number % capacity * packet_bytes_]; }

  const Carrier carrier_;
  const Facts facts_;
  const size_t packet_bytes_;
  Counters& counters_;
  Aim aim_;
  uint32_t begun_bytes_ = 0;
  // How many have been written, filled into a frame, and settled.
  uint32_t written_ = 0;
  uint32_t filled_ = 0;
  uint32_t settled_ = 0;
  std::array<Packet, capacity> packets_;
  RegionArray<std::byte> memory_;
};

}  // namespace urma::transport
