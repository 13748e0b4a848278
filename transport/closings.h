// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/setup_outbox.h"
#include "transport/setup_parts.h"

namespace urma::transport {

// Ends channels by agreement, with CLOSE and CLOSED. A device that closes says goodbye to its
// peers, which then know that its incarnation has ended. An idle channel is closed because its
// memory is worth more than the round trip that the next channel costs; both ends must agree, so
// that no packet in flight arrives for a closed channel. Works posted meanwhile use the next
// channel and execute once, as after any change of channel. Only the thread that runs the engine
// calls it.
class Closings {
 public:
  Closings(const Common& common, const SetupParts& parts, SetupOutbox& outbox)
      : common_(common),
        peers_(parts.peers),
        medium_(parts.medium),
        outbox_(outbox),
        links_(parts.links) {}

  // Says goodbye to all peers that have a channel.
  void say_goodbye(Time now);
  // Returns whether all peers have confirmed the goodbye, or the last try has timed out.
  bool closed() const { return links_.leaving() && peers_.goodbyes() == 0; }
  // Asks the peer whether its idle channel may be closed.
  void ask(Peer& peer, Time now);

  void handle_close(const ArrivedSetup& close);
  void handle_closed(const ArrivedSetup& closed);
  // The timer of a peer to which CLOSE was sent has fired.
  void handle_timer(Peer& peer, Time now);

 private:
  void ask_again(Peer& peer, Time now);
  void send(Peer& peer, SetupReason reason, unsigned number_of_try, Time now);

  const Common common_;
  Peers& peers_;
  Medium& medium_;
  SetupOutbox& outbox_;
  Links& links_;
};

}  // namespace urma::transport
