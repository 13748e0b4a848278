// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/setup_outbox.h"
#include "transport/setup_parts.h"

namespace urma::transport {

// Asks peers for channels: sends OPEN until ACCEPT, REFUSE or a time-out, with the cookie that a
// RETRY gives. An answer counts only if it repeats the 24-bit TPN, the attempt and the 64-bit
// incarnation of the OPEN, so only an observer of the path can forge one; a RESET, which anyone can
// forge, only causes an OPEN. It does not know how a peer decides (`Admission`). Only the thread
// that runs the engine calls it.
class Openings {
 public:
  Openings(const Common& common, const SetupParts& parts, SetupOutbox& outbox)
      : common_(common),
        peers_(parts.peers),
        tpns_(parts.tpns),
        own_paths_(parts.own_paths),
        paths_(parts.paths),
        medium_(parts.medium),
        outbox_(outbox),
        links_(parts.links) {}

  // Returns the channel of the peer. If there is none, returns null and asks for it, unless it is
  // being asked for or the device closes. The channel of a device to itself is made here.
  PacketChannel* channel(Peer& peer, Time now);
  // Asks for a channel. A channel in use stays until the new one replaces it.
  void begin(Peer& peer, Time now);
  // Sets how packets to this peer are retransmitted. If a channel exists or is being asked for with
  // another mode, asks for a new one.
  void choose(Peer& peer, const Retransmission& mode, Time now);

  void handle_retry(const ArrivedSetup& retry);
  void handle_accept(const ArrivedSetup& accept);
  void handle_refuse(const ArrivedSetup& refuse);
  void handle_reset(const ArrivedSetup& reset);
  // The timer of a peer that is being asked has fired.
  void handle_timer(Peer& peer, Time now);

 private:
  Peer* asked(const ArrivedSetup& answer);
  void handle_late_accept(const ArrivedSetup& accept);
  OutgoingSetup open_for(const Peer& peer) const;
  void send_open(Peer& peer, Time now);
  void push(Peer& peer, const OutgoingSetup& open, Time now);
  void make_to_self(Peer& peer, Time now);

  const Common common_;
  Peers& peers_;
  Tpns& tpns_;
  OwnPaths& own_paths_;
  PeerPaths& paths_;
  Medium& medium_;
  SetupOutbox& outbox_;
  Links& links_;
  uint32_t attempts_ = 0;
};

}  // namespace urma::transport
