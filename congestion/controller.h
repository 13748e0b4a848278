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
  bool timed_out;  // nothing was heard for a retransmission time-out
};

// Decides the window of one channel. One event struct per event, so that a new field breaks none.
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
  uint64_t limit_bytes = 4 << 20;  // never more: what the receiver can buffer
};

struct ControllerKind {
  std::string_view name;
  std::string_view summary;
  Controller* (*make)(void* storage, const Settings& settings);
};

std::span<const ControllerKind> controllers();
// Null when there is none of that name.
const ControllerKind* find_controller(std::string_view name);

}  // namespace urma::congestion
