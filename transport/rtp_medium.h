// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/medium.h"
#include "transport/own_paths.h"
#include "transport/rtp/tp.h"

namespace urma::transport {

// A medium that may lose, repeat and reorder packets, and whose addresses can be forged: UDP.
// Channels are `Tp`; each packet names one by its TPN and carries an ICRC. Peers may be reached
// over several paths.
class RtpMedium final : public MediumOf<Tp, RtpPools> {
 public:
  RtpMedium(const Uses& uses, const OwnPaths& own_paths);

  // Returns null if no channel has this index.
  Tp* tp(uint32_t index) { return channels_.live(index) ? &channels_.at(index) : nullptr; }

  // Medium
  PacketChannel& make(Peer& peer, const Agreed& agreed, Time now) override;
  void destroy(PacketChannel& channel) override;
  PacketChannel* reset_by(const ArrivedSetup& reset) override { return meant(reset); }
  bool may_have_sent(const PacketChannel& channel, const SetupMessage& reset) override;
  bool finish(TxFrame& frame) override;
  Carrier carrier() const override { return Carrier::unreliable; }
  bool has_paths() const override { return true; }
  bool loses_packets() const override { return true; }
  bool may_come_from(const Eid& source, const Endpoint& from) override;
  uint32_t mtu_to_ask(const Peer& peer) const override;
  uint32_t as_large_as(uint32_t payload) const override;

 private:
  const Retransmission* mode_of(const Peer& peer, uint32_t features);
  // Returns the controller of channels whose peer gives these reports.
  const congestion::ControllerKind& controller_for(ReportForm reports) const;
  void view_control(const PacketChannel& channel, ChannelView& out) const override;

  const OwnPaths& own_paths_;
  const congestion::Settings pacing_;  // the part that is the same for each channel
  Slab<Retransmission> modes_;         // of channels that do not use Settings::retransmission
};

}  // namespace urma::transport
