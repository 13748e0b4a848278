#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "apps/urma_notify/incoming.h"
#include "urma/urma.hpp"

namespace urma::notify {

using Clock = std::chrono::steady_clock;

// One file from one sender, with the memory into which it writes.
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
  uint64_t next = 0;                 // block to be written to the file
  std::array<bool, slots> filled{};  // blocks that came before their turn
  uint64_t resumed = 0;              // bytes that need not come
  uint64_t finish_id = 0;            // of the question that is answered when all is verified
  uint32_t sender_check = 0;
  bool asked = false;  // for a sign of life
  Clock::time_point began = Clock::now();
  Clock::time_point heard = began;
};

}  // namespace urma::notify
