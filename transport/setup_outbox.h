// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "transport/medium.h"
#include "transport/own_paths.h"

namespace urma::transport {

// A set-up message that waits to be sent.
struct OutgoingSetup {
  Endpoint to;
  Addresses addresses;
  SetupMessage message;
  uint32_t padded_to = 0;  // bytes of the whole packet, at least
  uint8_t path = 0;        // our path that it leaves on
};

// The set-up messages that this device is about to send, in order. It fills in the fields that
// describe this device, and limits RESETs. It does not repeat messages: their senders have timers,
// so a message that finds no room is counted and dropped. Only the thread that runs the engine
// calls it.
class SetupOutbox {
 public:
  static constexpr uint32_t capacity = 64;

  SetupOutbox(const Settings& settings, const OwnPaths& own_paths, Medium& medium,
              Counters& counters);

  // Returns a message in which the fields that describe this device are set. `peer`: the receiver,
  // if the message has to name the retransmission mode for it.
  SetupMessage ours(SetupType type, const Peer* peer = nullptr) const;
  // Return what this device offers about reports of congestion: in an OPEN; in an ACCEPT, to the
  // end that has sent `open`. It is the default offer if the device has nothing to offer.
  ReportOffer offer() const;
  ReportOffer offer_to(const SetupMessage& open) const;
  // As `ours`, addressed from this end of the peer's channel to the other end.
  SetupMessage on_channel(SetupType type, const Peer& peer) const;
  Addresses addresses_to(const Eid& eid) const {
    return {.source = settings_.eid, .destination = eid};
  }

  void push(const OutgoingSetup& message);
  // Sends `message` back on the path on which `to` came.
  void answer(const ArrivedSetup& to, SetupMessage message);
  // Says that a packet came for a channel that does not exist; at most 10 times in 10 ms.
  [[gnu::cold]] void reset(const SetupMessage& about, const Endpoint& to, uint8_t path, Time now);

  bool waits() const { return count_ > 0; }
  // Returns whether a question may be sent; a question that found no room would count as
  // unanswered. Half of the room is for answers and channels.
  bool may_ask() const { return count_ < capacity / 2; }
  // Writes messages into frames. Returns how many.
  [[gnu::cold]] size_t fill(std::span<TxFrame* const> frames);

 private:
  bool write(const OutgoingSetup& message, TxFrame& frame);

  const Settings& settings_;
  const OwnPaths& own_paths_;
  Medium& medium_;
  Counters& counters_;
  std::array<OutgoingSetup, capacity> ring_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint32_t resets_left_ = 0;
  Time resets_refilled_{};
};

}  // namespace urma::transport
