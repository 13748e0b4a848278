// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "transport/channel.h"
#include "transport/channel_view.h"
#include "transport/counters.h"
#include "transport/pools.h"
#include "transport/waiting_slices.h"

namespace urma::transport {

// The two ends of a channel, and what they agreed on.
struct ChannelEnds {
  PeerId peer;
  Tpn local{};
  Tpn remote{};
  Endpoint to;
  Facts facts;
};

// The common part of both kinds of packet channel: the slices that wait to be pulled, and when the
// peer last sent anything. Over media that lose packets the channel is a `Tp` (RTP), over others a
// `Ctp` (CTP). It decides when a slice leaves, not what the packets contain; its medium owns it.
// Only the thread that runs the engine calls it.
class PacketChannel : public Channel {
 public:
  // `index`: names the channel to the layer above. `pools` and `counters` outlive it.
  PacketChannel(uint32_t index, const ChannelEnds& ends, Pools& pools, Counters& counters,
                Time now);
  PacketChannel(const PacketChannel&) = delete;
  PacketChannel& operator=(const PacketChannel&) = delete;
  ~PacketChannel() override;

  // Channel
  bool offer(SliceRef slice, Class traffic, uint32_t bytes) final;
  void expect_answers(int32_t change, Time now) final;
  void note_not_ready() final {
    if (not_ready_ < UINT32_MAX) ++not_ready_;
  }
  Time last_progress() const final { return last_progress_; }
  const Facts& facts() const final { return facts_; }

  // Writes packets into `frames` and returns how many.
  virtual size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) = 0;
  virtual bool owes_ack(Time) const { return false; }
  // Writes the acknowledgement that is owed.
  virtual void fill_ack(TxFrame&) {}
  virtual bool wants_to_send(Time now) const = 0;
  // Asks the peer for a sign of life although nothing is outstanding; without this, the silence of
  // an idle channel has no consequence.
  void probe(Time now);

  // Returns when `handle_timer` is to be called next.
  virtual Time next_deadline() const = 0;
  // Returns why the channel is dead, if it is.
  [[gnu::cold]] virtual std::optional<Why> handle_timer(Time now) = 0;
  virtual Duration rtt() const = 0;
  // Describes the channel, or each of its paths. Returns how many views it wrote; 0 if they are
  // more than `out` has.
  [[gnu::cold]] virtual size_t view(std::span<ChannelView> out, Time now) const = 0;

  PeerId peer() const { return peer_; }
  uint32_t index() const { return index_; }
  Tpn local() const { return local_; }
  Tpn remote() const { return remote_; }
  const Endpoint& to() const { return to_; }
  // Returns whether the peer is reached at this endpoint over the channel.
  virtual bool leads_to(const Endpoint& endpoint) const { return to_ == endpoint; }
  bool heard() const { return heard_; }
  Time last_heard() const { return last_heard_; }
  bool idle() const { return !outstanding() && offered_.empty(); }

 protected:
  // Returns whether the peer is expected to send anything, so that its silence has a meaning.
  virtual bool outstanding() const = 0;

  // While something is outstanding, a silent peer is first asked, then declared dead.
  static constexpr Duration keep_alive_after = std::chrono::milliseconds(250);
  static constexpr Duration verdict_after = std::chrono::seconds(1);
  // The most that headers add to a packet; the exact size is known once it is written.
  static constexpr uint32_t header_allowance = 96;

  // As WaitingSlices::next_class.
  std::optional<Class> next_class(uint32_t requests) const {
    return offered_.next_class(shared_.offered, requests, facts_.packet_bytes);
  }
  // Returns the payload bytes of the first packet of the slice that a new burst begins with, or
  // nothing if none is offered.
  std::optional<uint32_t> offered_payload() const;
  void hear(Time now) {
    last_heard_ = now;
    heard_ = true;
  }

  const uint32_t index_;
  const PeerId peer_;
  const Tpn local_;
  const Tpn remote_;
  // Ordered by size, which keeps an idle channel small.
  const Endpoint to_;
  bool keep_alive_due_ = false;
  bool heard_ = false;  // a packet has come on this channel
  const Facts facts_;
  uint32_t awaited_ = 0;
  Pools& shared_;
  Counters& counters_;
  WaitingSlices offered_;
  Time last_heard_;  // when the peer last sent anything, or since when its silence counts
  Time last_progress_{};
  uint32_t not_ready_ = 0;  // answers of the peer that it is not ready; stops at its largest value
};

}  // namespace urma::transport
