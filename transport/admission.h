// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/cookies.h"
#include "transport/setup_outbox.h"
#include "transport/setup_parts.h"

namespace urma::transport {

// Decides on each OPEN, by which a peer asks for a channel, whether to answer it with ACCEPT,
// REFUSE or RETRY. An OPEN that could end a channel, or cost memory that is short, must bring back
// a cookie. Only the thread that runs the engine calls it.
class Admission {
 public:
  Admission(const Common& common, const SetupParts& parts, SetupOutbox& outbox)
      : common_(common),
        peers_(parts.peers),
        tpns_(parts.tpns),
        paths_(parts.paths),
        medium_(parts.medium),
        outbox_(outbox),
        links_(parts.links),
        cookies_(common.entropy) {}

  void handle_open(const ArrivedSetup& open);
  // The timer of a half-open peer has fired.
  void handle_timer(Peer& peer, Time now);

 private:
  // If this many peers are half open, each OPEN must bring back a cookie.
  static constexpr uint32_t most_half_open = 64;

  bool is_for_another(const ArrivedSetup& open) const;
  bool is_malformed(const ArrivedSetup& open) const;
  void accept_again(const Peer& peer, const ArrivedSetup& open);
  void refuse(const ArrivedSetup& open, SetupReason reason);
  bool belongs_to_another(const ArrivedSetup& open);
  bool needs_cookie(const Eid& eid);
  bool acquainted(Peer*& peer, const ArrivedSetup& open);
  void admit(Peer* peer, const ArrivedSetup& open);
  void welcome(Peer& peer, const ArrivedSetup& open, uint8_t mtu_log2);
  void probe_longest_silent(Time now);

  const Common common_;
  Peers& peers_;
  Tpns& tpns_;
  PeerPaths& paths_;
  Medium& medium_;
  SetupOutbox& outbox_;
  Links& links_;
  const Cookies cookies_;
};

}  // namespace urma::transport
