#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/time.h"

namespace urma::congestion {

struct Acknowledged {
  Time now;
  Duration rtt;             // smoothed
  uint64_t bytes;           // newly acknowledged
  uint64_t inflight_bytes;  // before this acknowledgement
};

struct Lost {
  Time now;
  Duration rtt;  // smoothed
  uint64_t bytes;
  bool timed_out;  // no packet was received for a retransmission time-out
};

// Decides the window of one channel, which owns it and calls it on the engine's thread. It knows no
// packets and no peers. Each event is a struct, so that a new field changes no signature.
class Controller {
 public:
  static constexpr size_t storage = 64;

  virtual ~Controller() = default;
  virtual void handle(const Acknowledged& event) = 0;
  virtual void handle(const Lost& event) = 0;
  virtual uint64_t window_bytes() const = 0;
};

struct Settings {
  uint32_t packet_bytes = 4096;    // the channel's MTU
  uint64_t limit_bytes = 4 << 20;  // the window never exceeds what the receiver can buffer
};

struct ControllerKind {
  std::string_view name;
  std::string_view summary;
  Controller* (*make)(void* storage, const Settings& settings);
};

std::span<const ControllerKind> controllers();
// Returns null if there is no controller of that name.
const ControllerKind* find_controller(std::string_view name);

}  // namespace urma::congestion
