// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "jetty/peers.h"
#include "jetty/target/executor.h"
#include "jetty/target/refusals.h"
#include "transport/upper.h"

namespace urma::jetty {

// Messages that are either delivered immediately or dropped: they are not answered, and nothing of
// them is recorded (UB: UNO). Their sender need not be a known peer, and any sender can claim any
// address, so a wrong token in a datagram has no consequence for the peer's channel. The Target
// owns it; only the thread that runs the engine calls it.
class Datagrams {
 public:
  Datagrams(PeerStates& peers, Addressees& addressees, Executor& executor,
            transport::Channels& channels, EventSink& events)
      : peers_(peers),
        addressees_(addressees),
        executor_(executor),
        refusals_(executor, channels, events) {}

  enum class Outcome : uint8_t {
    delivered,
    dropped,  // no receive slot, no such Jetty, too long, or a wrong token
    ignored,  // its sender guesses tokens
    malformed,
  };
  Outcome handle(const transport::Received& packet, Time now);

 private:
  bool ignores(PeerId from, Time now) const;
  void ignore(PeerId from, Time until);
  Outcome deliver_slowly(const transport::Received& packet, const MessageHeaders& headers,
                         std::span<const std::byte> data, Time now);

  PeerStates& peers_;
  Addressees& addressees_;
  Executor& executor_;
  Refusals refusals_;
  Time unknown_peers_ignored_until_{};
};

}  // namespace urma::jetty
