#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/export.h"

namespace urma {

// What one device has seen, taken at one moment. What each number counts, in which unit and since
// when, is said once, in `all_metrics`, which has a row for each of them in this order.
struct Statistics {
  uint64_t works = 0;
  uint64_t completions = 0;
  uint64_t receiver_not_ready = 0;
  uint64_t retries = 0;
  uint64_t timeouts = 0;
  uint64_t unknown = 0;
  uint64_t held = 0;
  uint64_t copied = 0;
  uint64_t copied_bytes = 0;
  uint64_t copied_past_caches = 0;
  uint64_t past_caches_from = UINT64_MAX;

  uint64_t executed = 0;
  uint64_t refused = 0;
  uint64_t not_ready = 0;
  uint64_t repeated = 0;
  uint64_t withdrawn = 0;
  uint64_t unheard = 0;
  uint64_t parked = 0;
  uint64_t too_early = 0;
  uint64_t datagrams_sent = 0;
  uint64_t datagrams_received = 0;
  uint64_t datagrams_dropped = 0;

  uint64_t packets_sent = 0;
  uint64_t retransmitted = 0;
  uint64_t filler = 0;
  uint64_t acks_sent = 0;
  uint64_t packets_received = 0;
  uint64_t duplicates = 0;
  uint64_t out_of_order = 0;
  uint64_t retransmission_timeouts = 0;
  uint64_t dropped_icrc = 0;
  uint64_t dropped_malformed = 0;
  uint64_t dropped_unknown_channel = 0;
  uint64_t dropped_other = 0;
  uint64_t setup_sent = 0;
  uint64_t setup_received = 0;
  uint64_t setup_cookies = 0;
  uint64_t setup_refused = 0;
  uint64_t setup_incarnation = 0;
  uint64_t setup_late = 0;
  uint64_t setup_declined = 0;
  uint64_t setup_unsent = 0;

  uint64_t peers = 0;
  uint64_t peers_restarted = 0;
  uint64_t peers_left = 0;
  uint64_t channels = 0;
  uint64_t channels_made = 0;
  uint64_t channels_not_made = 0;
  uint64_t channels_lost = 0;
  uint64_t channels_idle = 0;
  uint64_t paths_lost = 0;
  uint64_t paths_back = 0;
  uint64_t jetties = 0;
  uint64_t segments = 0;
  uint64_t not_fenced = 0;

  uint64_t frames_sent = 0;
  uint64_t frames_received = 0;
  uint64_t send_calls = 0;
  uint64_t receive_calls = 0;
  uint64_t send_failures = 0;
  uint64_t unreachable = 0;
  uint64_t faults_injected = 0;
  uint64_t uncaptured = 0;
  uint64_t passes = 0;
};

// One of them, for people and for programs that show them.
struct Metric {
  // Since the device was opened: it only grows. Now: it goes up and down.
  enum class Window : uint8_t { since_open, now };

  std::string_view name;  // as in Statistics
  std::string_view unit;
  Window window = Window::since_open;
  std::string_view part;                  // of the device: what it belongs to
  std::string_view meaning;               // a sentence
  uint64_t Statistics::*value = nullptr;  // UINT64_MAX stands for none
};
constexpr std::string_view name(Metric::Window window) {
  return window == Metric::Window::now ? "now" : "since open";
}

// In the order of Statistics.
URMA_API std::span<const Metric> all_metrics();

}  // namespace urma
