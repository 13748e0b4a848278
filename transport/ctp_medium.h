// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/ctp.h"
#include "transport/medium.h"

namespace urma::transport {

// A medium that loses nothing, keeps the order and vouches for its addresses: a window of shared
// memory. Channels are `Ctp`. A packet names no channel: there is one to each address, so a channel
// is found by the address that a packet comes from. Idle channels stay, since they cost no memory
// of their own.
class CtpMedium final : public MediumOf<Ctp, Pools> {
 public:
  CtpMedium(const Uses& uses, PacketSink& sink);

  // Returns the channel with the peer at `from`, or null.
  Ctp* channel_from(const Endpoint& from) {
    // Most packets come from the same address as the packet before.
    const uint64_t source = source_key(from);
    if (source != latest_source_) remember(source);
    return latest_channel_;
  }

  // Medium
  PacketChannel& make(Peer& peer, const Agreed& agreed, Time now) override;
  void destroy(PacketChannel& channel) override;
  PacketChannel* reset_by(const ArrivedSetup& reset) override;
  // Packets have no numbers, so each RESET may be about one that was sent.
  bool may_have_sent(const PacketChannel&, const SetupMessage&) override { return true; }
  bool finish(TxFrame& frame) override;
  Carrier carrier() const override { return Carrier::compact; }
  bool has_paths() const override { return false; }
  bool loses_packets() const override { return false; }
  bool may_come_from(const Eid& source, const Endpoint& from) override {
    return source == from.address;
  }
  uint32_t mtu_to_ask(const Peer&) const override { return settings_.mtu; }
  uint32_t as_large_as(uint32_t) const override { return 0; }
  void asking_changed(const Endpoint& to) override;
  bool no_room_at(const Endpoint& at) override;

 private:
  // Returns the part of an address that no two slots of a window share.
  static uint64_t source_key(const Endpoint& from) {
    return load_be<8>(from.address.bytes.data() + 8);
  }
  void remember(uint64_t source);
  void forget_latest() {
    latest_source_ = 0;
    latest_channel_ = nullptr;
  }

  PacketSink& sink_;
  Ways& ways_;
  FlatMap<uint64_t> by_source_;
  uint64_t latest_source_ = 0;     // where the latest packet came from; 0 if forgotten
  Ctp* latest_channel_ = nullptr;  // of that address
};

}  // namespace urma::transport
