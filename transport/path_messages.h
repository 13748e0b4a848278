// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/openings.h"

namespace urma::transport {

// The messages about paths on channels that exist (docs/protocol.md, Paths): PATHS lists the
// addresses of this device, NOTED confirms it; a QUESTION asks whether a path carries packets, an
// ANSWER says that it does. Each channel's `Routes` decide how to react to them. Only the thread
// that runs the engine calls it.
class PathMessages {
 public:
  PathMessages(const Common& common, const SetupParts& parts, SetupOutbox& outbox,
               Openings& openings)
      : common_(common),
        peers_(parts.peers),
        own_paths_(parts.own_paths),
        medium_(parts.medium),
        outbox_(outbox),
        links_(parts.links),
        openings_(openings) {}

  // Replaces the addresses of this device, and notifies its peers.
  void lead(const PathList& paths, Time now);
  // Returns whether each peer that has a channel has confirmed the latest list.
  bool all_noted();
  // Sends the messages that are due about the paths of a peer with a channel.
  void tend(Peer& peer, Time now);

  void handle_paths(const ArrivedSetup& paths);
  void handle_noted(const ArrivedSetup& noted);
  void handle_question(const ArrivedSetup& question);
  void handle_answer(const ArrivedSetup& answer);

 private:
  void tell(Peer& peer, Time now);
  void send_paths(const Peer& peer, uint8_t route);
  void send_question(const Peer& peer, const RouteHealth::Question& question);
  void send(const Peer& peer, const Route& route, const SetupMessage& message,
            uint32_t padded_to = 0);
  PacketChannel* meant(const ArrivedSetup& arrived);

  const Common common_;
  Peers& peers_;
  OwnPaths& own_paths_;
  Medium& medium_;
  SetupOutbox& outbox_;
  Links& links_;
  Openings& openings_;
};

}  // namespace urma::transport
