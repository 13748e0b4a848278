#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/export.h"

namespace urma {

// The counters of one device, all taken at the same moment (Device::stats). `all_metrics` has a row
// for each field, in the same order, with what it counts, its unit and its window; urma_stat prints
// these rows.
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
  uint64_t paced_packets = 0;
  uint64_t paced_trains = 0;
  uint64_t acks_sent = 0;
  uint64_t packets_received = 0;
  uint64_t duplicates = 0;
  uint64_t out_of_order = 0;
  uint64_t retransmission_timeouts = 0;
  uint64_t packets_marked = 0;
  uint64_t overtaken_reports = 0;
  uint64_t notifications = 0;
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
  uint64_t channels_without_reports = 0;
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

// The explanation of one field of Statistics, for programs that show it. Texts live as long as the
// library.
struct Metric {
  // since_open: counted since the device was opened; only grows. now: the present value.
  enum class Window : uint8_t { since_open, now };

  std::string_view name;  // of the field
  std::string_view unit;  // "packets"
  Window window = Window::since_open;
  std::string_view part;     // the part of the device to which the metric belongs
  std::string_view meaning;  // a sentence
  uint64_t Statistics::*value =
      nullptr;  // the field; UINT64_MAX in it means that there is no value
};
// Returns the name of the window: "since open" or "now".
constexpr std::string_view name(Metric::Window window) {
  return window == Metric::Window::now ? "now" : "since open";
}

// Returns the explanations of all fields of Statistics, in their order. Any thread may call it.
URMA_API std::span<const Metric> all_metrics();

}  // namespace urma
