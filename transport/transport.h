// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "transport/announced_paths.h"
#include "transport/ctp_ingress.h"
#include "transport/rtp_ingress.h"

namespace urma::transport {

// The transport of one device: its peers and their channels. Frames come in by `receive` and leave
// by `fill`; time passes by `handle_timers`. This class only puts the parts together: each part is
// a member below, and uses only members above it. It reads no clock and does no I/O. Only the
// thread that runs the engine calls it.
class Transport final : public Channels, public AnnouncedPaths {
 public:
  // `entropy` and `sink` outlive the transport.
  Transport(const Settings& settings, Entropy& entropy, PacketSink& sink);

  // ---- peers

  // holds: the caller keeps the PeerId, so the peer is not forgotten as long as a channel to it can
  // be made. meets: it may be forgotten like one that has come by itself. finds: nothing is made.
  enum class Acquaintance : uint8_t { holds, meets, finds };
  // Returns the peer at the address `at` with this EID (zero means any) and this incarnation
  // (zero means any). The same arguments name the same peer as long as its incarnation
  // lives. Returns a null handle if the limit on peers is reached and none can be forgotten.
  // `also`: its other addresses.
  PeerId know(const Eid& eid, const Endpoint& at, Incarnation life,
              std::span<const Endpoint> also = {}, Acquaintance how = Acquaintance::holds);
  // Sets how packets to this peer are retransmitted, instead of Settings::retransmission. A channel
  // that was made with another mode is replaced.
  void choose(PeerId peer, const Retransmission& mode, Time now);

  struct PeerFacts {
    Eid eid;
    Endpoint at;
    Incarnation life{};
    bool connected = false;
    Duration rtt{};
    const Routes* routes = nullptr;  // if there are several; valid until another call
  };
  // Returns nothing if this incarnation is over.
  std::optional<PeerFacts> facts(PeerId peer);

  // ---- Channels

  Channel* channel(PeerId peer, Time now) override;
  bool knows(PeerId peer) override { return peers_.find(peer) != nullptr; }
  Eid eid(PeerId peer) override;
  Why why_not(PeerId peer) override;
  Channel* unreliable(PeerId peer) override;

  // ---- the pass of the engine

  void receive(std::span<const RxFrame> frames, Time now);
  // Writes packets and messages that are to be sent into frames. Returns how many frames it filled.
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now);
  // Returns whether `fill` may have something to write.
  bool wants_to_send() const {
    return setup_.outbox().waits() || medium_.wants_to_send() || datagrams_.waits();
  }
  // Returns whether set-up messages wait for frames. There is room for a few dozen; further ones
  // are dropped.
  bool setup_waits() const { return setup_.outbox().waits(); }
  // The driver has released this many of all frames that `fill` has written, the oldest first.
  void settled(uint64_t frames) { datagrams_.settled(frames); }
  // Handles at most 64 deadlines of channels and 64 of peers.
  void handle_timers(Time now);
  Time next_deadline() const;

  // ---- closing the device

  // Says goodbye to all peers; `closed` returns true when they have confirmed it, or the last try
  // has timed out. Channels end without a `down`.
  void close(Time now) { setup_.closings().say_goodbye(now); }
  bool closed() const { return setup_.closings().closed(); }
  // Returns whether everything that was offered has been acknowledged.
  bool idle() { return medium_.idle(); }

  // ---- the addresses of this device

  const Endpoint& self() const { return settings_.self; }
  const PathList& paths() const override { return own_paths_.current(); }
  void announce_paths(const PathList& paths, Time now) override { setup_.paths().lead(paths, now); }
  bool paths_confirmed() override { return setup_.paths().all_noted(); }
  void close_path(uint8_t number) override { own_paths_.close(number); }
  // Returns the totals by path of this device; zeros if there is only one path.
  const AllPathTotals& path_totals() const { return own_paths_.totals(); }

  // ---- statistics

  const Counters& counters() const { return counters_; }
  const PeerNews& news() const { return news_; }
  struct Counts {
    uint32_t peers = 0;
    uint32_t channels = 0;
  };
  Counts counts() const { return {.peers = peers_.size(), .channels = medium_.size()}; }
  // Describes the first channels; see Medium.
  Medium::Viewed view(std::span<ChannelView> out) { return medium_.view(out, now_); }

 private:
  Common common() { return {settings_, entropy_, sink_, counters_, news_}; }
  Medium& make_medium();
  Ingress& make_ingress();
  [[gnu::cold]] void handle_channel_timer(PacketChannel& channel, Time now);
  void end_dead_channel(const PacketChannel& channel, Why why, Time now);

  const Settings settings_;
  Entropy& entropy_;
  PacketSink& sink_;
  Counters counters_;
  PeerNews news_;
  OwnPaths own_paths_;
  Peers peers_;
  Tpns tpns_;
  PeerPaths peer_paths_;
  std::variant<std::monostate, RtpMedium, CtpMedium> media_;
  Medium& medium_;  // the one of them that the device has
  Links links_;
  Setup setup_;
  Datagrams datagrams_;
  std::variant<std::monostate, RtpIngress, CtpIngress> ingresses_;
  Ingress& ingress_;  // of that medium
  uint64_t frames_filled_ = 0;
  Time now_{};  // of the latest call that had a time
};

}  // namespace urma::transport
