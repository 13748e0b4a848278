// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "apps/urma_notify/incoming.h"
#include "urma/urma.hpp"

namespace urma::apps::notify {

using Clock = std::chrono::steady_clock;

// One file from one sender, and the memory to which that sender writes. The receiver owns it and
// uses it on its thread; the sender knows it by its number.
struct Transfer {
  enum class State : uint8_t {
    open,       // accepted, but the sender has not begun
    receiving,  // blocks come
    verifying,  // all of the file is written, and its digest is computed
    over,       // it has succeeded or failed, and is about to be destroyed
  };

  Transfer(uint32_t transfer, const Completion& arrival, RemoteJetty answers, const Offer& offer,
           int folder, Segment memory)
      : number(transfer),
        from(arrival.from),
        from_jetty(arrival.from_jetty),
        back(answers),
        name(offer.name),
        bytes(offer.bytes),
        file(folder, offer),
        staging(std::move(memory)) {}

  uint32_t number;     // in immediates and messages of the sender
  PeerId from;         // the sender's device
  JettyId from_jetty;  // the sender's Jetty: messages of others are not about this transfer
  RemoteJetty back;    // the same Jetty, to which answers are sent
  std::string name;    // of the file, in the receiver's folder
  uint64_t bytes;      // of the whole file
  Incoming file;       // the file until it is complete and has its name
  Segment staging;     // the memory to which the sender writes: a slot for each block on its way
  State state = State::open;
  uint64_t next = 0;                 // the next block that is written to the file
  std::array<bool, slots> filled{};  // slots with blocks that arrived before their turn
  uint64_t resumed = 0;              // bytes that the receiver already has
  uint64_t finish_id = 0;            // id of the question that is answered once all is verified
  std::string sender_sha256;         // the sender's digest of the whole file
  bool asked = false;                // a probe was sent to the sender
  Clock::time_point began = Clock::now();  // for the speed that is reported
  Clock::time_point heard = began;         // when the sender last sent anything
};

}  // namespace urma::apps::notify
