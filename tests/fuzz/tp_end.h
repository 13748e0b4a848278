// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/packet.h"
#include "transport/transport.h"

namespace urma::fuzz {

// A slice, as the end that offers it remembers it, and what its peer has received of it.
struct TrackedSlice {
  uint32_t channel = 0;  // the number of the end's channel, counted from the first
  transport::Class traffic = transport::Class::request;
  uint32_t packets = 0;
  bool withdrawn = false;
  bool over = false;  // its channel has ended, so nothing is promised any longer
  bool delivered = false;
  std::set<uint16_t> written = {};
  std::set<uint16_t> arrived = {};
  bool named = false;  // `tpmsn` is known
  uint32_t tpmsn = 0;
};

// One of two Transports that talk to each other, and the layer above it: a source whose packets say
// which slice they belong to, and a sink that compares what arrives with what its peer has sent.
class End final : public transport::PacketSource, public transport::PacketSink {
 public:
  End(const transport::Settings& settings, uint64_t seed, bool trusting)
      : self(settings.self),
        trusting_(trusting),
        entropy_(seed),
        transport(settings, entropy_, *this) {}

  const Endpoint self;
  End* other = nullptr;

  // ---- the script's commands

  void connect(const Endpoint& to, Time now) {
    peer = transport.know(to.address, to, {});
    if (!transport.knows(peer)) return;
    transport.channel(peer, now);
  }
  void offer(transport::Class traffic, uint32_t bytes) {
    if (channel == nullptr || slices.size() >= 1000) return;
    const auto id = static_cast<uint32_t>(slices.size());
    const uint32_t packet = channel->facts().packet_bytes;
    const uint32_t packets = bytes == 0 ? 1 : (bytes + packet - 1) / packet;
    if (!channel->offer({id, channels_}, traffic, bytes)) return;
    slices.push_back({.channel = channels_, .traffic = traffic, .packets = packets});
  }
  void expect_answers(bool more, Time now) {
    if (channel == nullptr || (!more && awaited_ == 0)) return;
    channel->expect_answers(more ? 1 : -1, now);
    awaited_ = more ? awaited_ + 1 : awaited_ - 1;
  }
  void expect_nothing(Time now) {
    while (channel != nullptr && awaited_ > 0) expect_answers(false, now);
  }
  // Returns whether everything that was offered and is still promised has been delivered.
  bool finished() const {
    for (const TrackedSlice& slice : slices) {
      if (!slice.over && !slice.delivered) return false;
    }
    return true;
  }

  // ---- PacketSource

  void write(std::span<transport::PacketSlot> packets) override {
    for (transport::PacketSlot& packet : packets) {
      if (packet.slice == transport::SliceRef{}) continue;
      require(packet.slice.slot < slices.size(), "only what was offered is pulled");
      TrackedSlice& slice = slices[packet.slice.slot];
      require(packet.slice.generation == slice.channel && !slice.over,
              "a slice is pulled by the channel that it was offered to");
      require(!slice.delivered, "a slice that was delivered is not sent again");
      require(packet.index < slice.packets, "a slice has no more packets than its bytes need");
      require(slice.written.insert(packet.index).second != packet.again,
              "a packet is sent for the first time once");
      packet.withdrawn = slice.withdrawn;
      emit({packet.slice.slot, packet.index}, *packet.frame);
    }
  }

  // ---- PacketSink

  bool admits(const transport::Received&) override { return room; }
  void accept(const transport::Received& packet, Time) override {
    require(room, "no packet is accepted for which there is no room");
    require(packet.peer == peer, "packets come from the only peer there is");
    if (trusting_) take(packet);
  }
  void delivered(PeerId, std::span<const transport::SliceRef> refs, Time) override {
    for (const transport::SliceRef ref : refs) {
      if (ref == transport::SliceRef{}) continue;
      require(ref.slot < slices.size(), "only what was offered is delivered");
      TrackedSlice& slice = slices[ref.slot];
      require(!slice.delivered && !slice.over, "a slice is delivered once, by a living channel");
      slice.delivered = true;
      if (!trusting_) continue;
      require(slice.arrived == slice.written, "what is delivered has arrived");
      require(slice.withdrawn || slice.arrived.size() == slice.packets, "and all of it");
      for (uint32_t i = 0; i < ref.slot; ++i) {
        const TrackedSlice& earlier = slices[i];
        require(earlier.over || earlier.delivered || earlier.traffic != slice.traffic,
                "slices of a class are delivered in the order of their offers");
      }
    }
  }
  void up(PeerId id, transport::Channel& made, Time) override {
    require(channel == nullptr, "a channel comes up when there is none");
    peer = id;
    channel = &made;
    ++channels_;
    awaited_ = 0;
    tpmsns_.clear();
  }
  void down(PeerId, transport::Why, Time) override {
    channel = nullptr;
    awaited_ = 0;
    for (TrackedSlice& slice : slices) slice.over = true;
  }

 private:
  struct Label {
    uint32_t slice;
    uint16_t index;
  };
  static constexpr uint16_t magic = 0x5eed;
  static constexpr size_t label_bytes = 8;

  static void emit(const Label& label, TxFrame& frame) {
    std::byte* at = frame.head + frame.head_bytes;
    store_be<4>(at, label.slice);
    store_be<2>(at + 4, label.index);
    store_be<2>(at + 6, magic);
    // Lengths of packets differ, so that padding is tested.
    frame.head_bytes = static_cast<uint8_t>(frame.head_bytes + label_bytes + label.slice % 4);
  }

  void take(const transport::Received& packet) {
    require(packet.bytes.size() >= label_bytes && load_be<2>(packet.bytes.data() + 6) == magic,
            "what arrives was sent");
    const auto id = static_cast<uint32_t>(load_be<4>(packet.bytes.data()));
    const auto index = static_cast<uint16_t>(load_be<2>(packet.bytes.data() + 4));
    require(id < other->slices.size(), "what arrives was offered");
    require(packet.bytes.size() == label_bytes + id % 4, "padding is taken off");
    TrackedSlice& slice = other->slices[id];
    require(slice.written.contains(index), "what arrives was written");
    require(slice.arrived.insert(index).second, "a packet is fresh once");
    require(!packet.withdrawn || slice.withdrawn, "only what was withdrawn is filler");
    require(packet.last == (index + 1u == slice.packets) || (packet.last && packet.withdrawn),
            "the last packet says so");
    if (!slice.named) require(tpmsns_.insert(packet.slice).second, "a TPMSN names one slice");
    require(!slice.named || slice.tpmsn == packet.slice, "a slice has one TPMSN");
    slice.named = true;
    slice.tpmsn = packet.slice;
  }

  const bool trusting_;  // packets of this channel are never forged
  SeededEntropy entropy_;
  uint32_t channels_ = 0;
  uint32_t awaited_ = 0;
  std::set<uint32_t> tpmsns_;  // the TPMSNs that have arrived on the channel

 public:
  transport::Transport transport;
  PeerId peer;
  transport::Channel* channel = nullptr;
  bool room = true;
  std::vector<TrackedSlice> slices;
};

}  // namespace urma::fuzz
