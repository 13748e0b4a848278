// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/extended_counters.h"

#include <rte_ethdev.h>

#include <algorithm>
#include <cstring>

#include "base/futex.h"
#include "base/signals_blocked.h"
#include "urma/core/statistics.h"

namespace urma::drivers::dpdk {
namespace {

constexpr Duration longest_sleep = std::chrono::hours(1);

std::string unit_of(std::string_view name) {
  if (name.ends_with("bytes")) return "bytes";
  return name.ends_with("packets") ? "packets" : "events";
}

// The basic statistics, by the names that they have among the extended ones.
struct Basic {
  const char* name;
  uint64_t rte_eth_stats::*value;
};
constexpr Basic basics[] = {{"rx_good_packets", &rte_eth_stats::ipackets},
                            {"tx_good_packets", &rte_eth_stats::opackets},
                            {"rx_good_bytes", &rte_eth_stats::ibytes},
                            {"tx_good_bytes", &rte_eth_stats::obytes},
                            {"rx_missed_errors", &rte_eth_stats::imissed},
                            {"rx_errors", &rte_eth_stats::ierrors},
                            {"tx_errors", &rte_eth_stats::oerrors},
                            {"rx_mbuf_allocation_errors", &rte_eth_stats::rx_nombuf}};

// Returns a number of statistics, which is negative after a failure.
size_t size_of(int count) { return static_cast<size_t>(std::max(count, 0)); }

}  // namespace

ExtendedCounters::~ExtendedCounters() {
  if (!running_) return;
  ended_.store(true, std::memory_order_release);
  ask();
  pthread_join(thread_, nullptr);
}

void ExtendedCounters::watch(uint16_t port) {
  const std::lock_guard lock(mutex_);
  port_ = port;
  watches_ = true;
  if (!names_.empty()) return;
  if (!basic_) {
    std::vector<rte_eth_xstat_name> names(size_of(rte_eth_xstats_get_names(port, nullptr, 0)));
    const int got =
        rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(names.size()));
    names.resize(std::min({names.size(), size_of(got), most}));
    for (const rte_eth_xstat_name& one : names) names_.emplace_back(one.name);
  }
  if (!names_.empty()) return;
  basic_ = true;
  for (const Basic& one : basics) names_.emplace_back(one.name);
}

void ExtendedCounters::forget() {
  const std::lock_guard lock(mutex_);
  watches_ = false;
}

Result<void> ExtendedCounters::start() {
  const auto entry = [](void* self) -> void* {
    static_cast<ExtendedCounters*>(self)->run();
    return nullptr;
  };
  const SignalsBlocked blocked;
  if (const int why = pthread_create(&thread_, nullptr, entry, this); why != 0) {
    return error(Status::no_resources,
                 std::string("dpdk: starting the thread of the statistics: ") + std::strerror(why));
  }
  pthread_setname_np(thread_, "urma-dpdk");
  running_ = true;
  return {};
}

std::vector<ObservedMetric> ExtendedCounters::metrics() const {
  std::vector<ObservedMetric> out;
  for (const std::string& name : names_) {
    out.push_back({.name = "dpdk_" + name,
                   .unit = unit_of(name),
                   .window = std::string(urma::name(Metric::Window::since_open)),
                   .part = "port of DPDK",
                   .meaning = "The port's extended statistic " + name + "."});
  }
  return out;
}

size_t ExtendedCounters::read(std::span<uint64_t> out) {
  const size_t count = std::min(out.size(), names_.size());
  for (size_t i = 0; i < count; ++i) out[i] = latest_[i].load(std::memory_order_relaxed);
  ask();
  return count;
}

void ExtendedCounters::ask() {
  wanted_.fetch_add(1, std::memory_order_release);
  futex_wake_all(wanted_);
}

// ---- the thread

void ExtendedCounters::run() {
  uint32_t done = 0;
  while (!ended_.load(std::memory_order_acquire)) {
    const uint32_t wanted = wanted_.load(std::memory_order_acquire);
    if (wanted == done) {
      futex_wait(wanted_, wanted, longest_sleep);
      continue;
    }
    done = wanted;
    look();
  }
}

void ExtendedCounters::look() {
  const std::lock_guard lock(mutex_);
  if (watches_) basic_ ? read_basic() : read_extended();
}

void ExtendedCounters::read_basic() {
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_, &stats) != 0) return;
  for (size_t i = 0; i < std::size(basics); ++i) note(i, stats.*basics[i].value);
}

void ExtendedCounters::read_extended() {
  std::vector<rte_eth_xstat> values(size_of(rte_eth_xstats_get(port_, nullptr, 0)));
  const int got = rte_eth_xstats_get(port_, values.data(), static_cast<unsigned>(values.size()));
  values.resize(std::min(values.size(), size_of(got)));
  for (const rte_eth_xstat& one : values) {
    if (one.id < names_.size()) note(one.id, one.value);
  }
}

void ExtendedCounters::note(size_t place, uint64_t value) {
  if (value < seen_[place]) before_[place] += seen_[place];
  seen_[place] = value;
  latest_[place].store(before_[place] + value, std::memory_order_relaxed);
}

}  // namespace urma::drivers::dpdk
