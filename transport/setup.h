// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/admission.h"
#include "transport/closings.h"
#include "transport/openings.h"
#include "transport/path_messages.h"

namespace urma::transport {

// Parses each set-up message that comes, checks that its source address fits the EID that it
// claims, and passes it to the part that owns messages of its type. Passes the timer of a peer to
// the part that set it. Each message that has no effect and gets no answer is counted by one reason
// (counters.h). Only the thread that runs the engine calls it.
class Setup {
 public:
  Setup(const Common& common, const SetupParts& parts);

  // Handles a packet that is neither addressed to a channel nor a datagram.
  [[gnu::cold]] void handle(std::span<const std::byte> packet, const Endpoint& from, uint8_t path,
                            Time now);
  [[gnu::cold]] void handle_timer(Peer& peer, Time now);

  SetupOutbox& outbox() { return outbox_; }
  const SetupOutbox& outbox() const { return outbox_; }
  Openings& openings() { return openings_; }
  Closings& closings() { return closings_; }
  const Closings& closings() const { return closings_; }
  PathMessages& paths() { return paths_; }

 private:
  const Common common_;
  Medium& medium_;
  SetupOutbox outbox_;
  Openings openings_;
  Admission admission_;
  Closings closings_;
  PathMessages paths_;
};

}  // namespace urma::transport
