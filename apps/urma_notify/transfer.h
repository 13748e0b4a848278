#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "apps/urma_notify/incoming.h"
#include "urma/urma.hpp"

namespace urma::apps::notify {

using Clock = std::chrono::steady_clock;

// One file from one sender, and the memory to which that sender writes.
struct Transfer {
  enum class State : uint8_t { open, receiving, verifying, over };

  Transfer(uint32_t transfer, const Completion& arrival, RemoteJetty answers, const Offer& offer,
           int folder, Segment memory)
      : number(transfer),
        from(arrival.from),
        from_jetty(arrival.from_jetty),
        back(answers),
        name(offer.name),
        bytes(offer.bytes),
        file(folder, offer.name, offer.bytes, offer.replace),
        staging(std::move(memory)) {}

  uint32_t number;
  PeerId from;
  JettyId from_jetty;
  RemoteJetty back;
  std::string name;
  uint64_t bytes;
  Incoming file;
  Segment staging;
  State state = State::open;
  uint64_t next = 0;                 // the next block that is written to the file
  std::array<bool, slots> filled{};  // slots with blocks that arrived before their turn
  uint64_t resumed = 0;              // bytes that the receiver already has
  uint64_t finish_id = 0;            // id of the question that is answered once all is verified
  uint32_t sender_check = 0;
  bool asked = false;  // a probe was sent to the sender
  Clock::time_point began = Clock::now();
  Clock::time_point heard = began;
};

}  // namespace urma::apps::notify
