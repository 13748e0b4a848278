// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/probes.h"
#include "transport/arrived_setup.h"
#include "transport/channel_timers.h"
#include "transport/packet_channel.h"
#include "transport/peers.h"
#include "transport/tpns.h"

namespace urma::transport {

// The medium that packets travel over, with all channels of the device: it makes, finds, fills and
// ends them.
// There are two: `RtpMedium` may lose, repeat and reorder packets, `CtpMedium` does not. A device
// has one of them for as long as it is open. Calls for each burst, not for each packet, are
// virtual. It does not know why channels are made and ended. Only the thread that runs the engine
// calls it.
class Medium {
 public:
  // The parts of the device that the medium uses; all outlive it.
  struct Uses {
    const Settings& settings;
    Peers& peers;
    Tpns& tpns;
    Counters& counters;
  };
  virtual ~Medium() = default;
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;

  // ---- channels

  // Makes the channel of a peer that has none, as both ends agreed. It cannot fail: there may be as
  // many channels as peers.
  struct Agreed {
    const SetupMessage& theirs;
    uint32_t mtu = 0;
    Duration first_rtt{};  // zero if it was not measured
    ReportOffer ours{};    // what this end has offered in its OPEN or ACCEPT
  };
  virtual PacketChannel& make(Peer& peer, const Agreed& agreed, Time now) = 0;
  virtual void destroy(PacketChannel& channel) = 0;
  // Returns null if no channel has this index.
  virtual PacketChannel* find(uint32_t index) = 0;
  virtual uint32_t size() const = 0;
  // Returns whether everything that was offered to any channel has been acknowledged.
  virtual bool idle() = 0;
  // Describes the first channels, as many as `out` has room for, each whole. What only the caller
  // knows stays unknown.
  struct Viewed {
    size_t views = 0;
    uint32_t channels = 0;
  };
  [[gnu::cold]] Viewed view(std::span<ChannelView> out, Time now);
  // Returns the channel silent for longest among those that no caller here needs, or null.
  virtual PacketChannel* longest_silent() = 0;

  // Returns the channel with this TPN at this device, or null.
  PacketChannel* with_tpn(uint32_t tpn) { return find(tpns_.channel(tpn)); }
  // Returns the channel whose two TPNs the message names, or null. The second function also returns
  // null if the peer is not reached at `from`.
  PacketChannel* named(const SetupMessage& message);
  PacketChannel* named(const SetupMessage& message, const Endpoint& from);
  // As the second `named`. If there is no such channel, counts why the message is ignored.
  PacketChannel* meant(const ArrivedSetup& arrived);
  // Returns the channel that a RESET is about, or counts why it is ignored and returns null.
  virtual PacketChannel* reset_by(const ArrivedSetup& reset) = 0;
  // Returns whether a packet that the RESET answers may have been sent on this channel.
  virtual bool may_have_sent(const PacketChannel& channel, const SetupMessage& reset) = 0;

  // ---- sending

  // Writes packets of channels that have something to send, each channel once. Returns how many.
  virtual size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) = 0;
  // Completes a frame that belongs to no channel. Returns false if it cannot leave.
  virtual bool finish(TxFrame& frame) = 0;
  // The channel may have something to send.
  void wake(const PacketChannel& channel) { pools_.active.add(channel.index()); }
  bool wants_to_send() const { return pools_.active.size() > 0; }
  // While set-up messages wait, no channel writes past its queue.
  void hold_for_setup(bool waits) { pools_.setup_waits = waits; }

  ChannelTimers& timers() { return timers_; }
  const ChannelTimers& timers() const { return timers_; }

  // ---- what set-up asks of a medium

  virtual Carrier carrier() const = 0;
  // Returns whether a device may have several addresses, and change them.
  virtual bool has_paths() const = 0;
  // Returns whether packets may be lost, so that how they are retransmitted matters.
  virtual bool loses_packets() const = 0;
  // Returns whether packets from `from` may carry this EID as their source.
  virtual bool may_come_from(const Eid& source, const Endpoint& from) = 0;
  // Returns the payload of a full packet to ask the peer for; less after OPENs without an answer.
  virtual uint32_t mtu_to_ask(const Peer& peer) const = 0;
  // Returns how long a set-up packet must be to show that the path carries packets of `payload`
  // bytes; 0 if it may have any length.
  virtual uint32_t as_large_as(uint32_t payload) const = 0;
  // Called when a peer at `at` begins or ceases to be asked for a channel.
  virtual void asking_changed(const Endpoint&) {}
  // Returns true if no packet can reach `at` because the medium has no room for another peer.
  virtual bool no_room_at(const Endpoint&) { return false; }

 protected:
  Medium(const Uses& uses, Pools& pools, Duration idle_timeout);

  ChannelEnds ends_of(const Peer& peer, const Agreed& agreed) const;
  // Says which congestion control a channel uses, and why.
  virtual void view_control(const PacketChannel&, ChannelView&) const {}

  const Settings& settings_;
  Peers& peers_;
  Tpns& tpns_;
  Counters& counters_;
  Pools& pools_;
  ChannelTimers timers_;
};

// The part of a medium that does not depend on whether it loses packets, for channels of the class
// `Kind`. `Kind` is final, so calls of it within the loops here are direct.
template <class Kind, class KindPools>
class MediumOf : public Medium {
 public:
  template <class... Limits>
  MediumOf(const Uses& uses, Duration idle_timeout, Limits... limits)
      : Medium(uses, own_pools_, idle_timeout),
        own_pools_(limits...),
        channels_(uses.settings.peers) {}

  PacketChannel* find(uint32_t index) final {
    return channels_.live(index) ? &channels_.at(index) : nullptr;
  }
  uint32_t size() const final { return channels_.size(); }
  bool idle() final {
    bool all = true;
    channels_.for_each([&](const Kind& channel) { all = all && channel.idle(); });
    return all;
  }
  PacketChannel* longest_silent() final {
    PacketChannel* longest = nullptr;
    channels_.for_each([&](Kind& channel) {
      const Peer& peer = *peers_.find(channel.peer());
      const bool needed = !channel.idle() && !channel.silent();
      if (needed || peer.asked_for || peer.eid == settings_.eid) return;
      if (longest == nullptr || channel.last_heard() < longest->last_heard()) longest = &channel;
    });
    return longest;
  }

  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) final {
    size_t used = 0;
    // Each channel has one turn: if it has more to send than fits, it goes to the end of the line.
    for (uint32_t turns = own_pools_.active.size(); turns > 0 && used < frames.size(); --turns) {
      const uint32_t index = own_pools_.active.take();
      if (!channels_.live(index)) continue;
      Kind& channel = channels_.at(index);
      // However much there is to send, one frame is kept for an acknowledgement, without which the
      // peer would send everything again.
      const bool acks = channel.owes_ack(now);
      const size_t filled =
          channel.fill(source, frames.subspan(used, frames.size() - used - acks), now);
      probes::transmit(channel.peer(), filled);
      used += filled;
      if (acks) channel.fill_ack(*frames[used++]);
      if (channel.wants_to_send(now)) own_pools_.active.add(index);
      timers_.arm_no_later(channel);
    }
    return used;
  }

 protected:
  KindPools own_pools_;
  Slab<Kind> channels_;
};

}  // namespace urma::transport
