// SPDX-License-Identifier: Apache-2.0
#include "umdk/perf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "umdk/calls.h"

namespace urma::umdk {

std::atomic<bool> is_measured{false};

namespace {

// Durations fall into buckets, 16 for each power of two, so that a percentile is at most 1/16 too
// large. The last bucket begins at half an hour.
constexpr unsigned digits = 4;
constexpr uint64_t per_power = 1 << digits;
constexpr unsigned most_power = 41;
constexpr size_t buckets = (most_power - digits + 1) * per_power;

size_t bucket_of(uint64_t ns) {
  if (ns < per_power) return ns;
  const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - digits;
  return std::min<size_t>((shift << digits) + (ns >> shift), buckets - 1);
}

// Returns the longest duration of a bucket.
uint64_t most_of(size_t bucket) {
  if (bucket < per_power) return bucket;
  const size_t shift = (bucket >> digits) - 1;
  return ((bucket - (shift << digits) + 1) << shift) - 1;
}

// The calls of one type.
struct Calls {
  std::atomic<uint64_t> count{0};
  std::atomic<uint64_t> sum_ns{0};
  std::atomic<uint64_t> least_ns{UINT64_MAX};
  std::atomic<uint64_t> most_ns{0};
  std::array<std::atomic<uint32_t>, buckets> in_bucket{};
};

using Table = std::array<Calls, URMA_PERF_RECORD_TYPE_MAX>;

// Threads share few tables, so that what one counts rarely delays another.
constexpr size_t table_count = 8;
std::array<Table, table_count> tables;

Table& table_of_thread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t mine = next.fetch_add(1) % table_count;
  return tables[mine];
}

void clear(Calls& calls) {
  calls.count = calls.sum_ns = calls.most_ns = 0;
  calls.least_ns = UINT64_MAX;
  for (auto& bucket : calls.in_bucket) bucket = 0;
}

// The calls of one type, of all threads.
struct Sum {
  uint64_t count = 0;
  uint64_t sum_ns = 0;
  uint64_t least_ns = UINT64_MAX;
  uint64_t most_ns = 0;
  std::array<uint64_t, buckets> in_bucket{};

  // Returns the duration that `part` of the calls do not exceed.
  uint64_t percentile(double part) const {
    const auto wanted = static_cast<uint64_t>(part * static_cast<double>(count) + 0.5);
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets; ++i) {
      seen += in_bucket[i];
      if (seen >= wanted && seen > 0) return std::clamp(most_of(i), least_ns, most_ns);
    }
    return most_ns;
  }
};

Sum sum_of(size_t type) {
  Sum sum;
  for (const Table& table : tables) {
    const Calls& calls = table[type];
    sum.count += calls.count;
    sum.sum_ns += calls.sum_ns;
    sum.least_ns = std::min<uint64_t>(sum.least_ns, calls.least_ns);
    sum.most_ns = std::max<uint64_t>(sum.most_ns, calls.most_ns);
    for (size_t i = 0; i < buckets; ++i) sum.in_bucket[i] += calls.in_bucket[i];
  }
  return sum;
}

constexpr std::array<const char*, URMA_PERF_RECORD_TYPE_MAX> names = {
    "UB_JETTY_POST_SEND", "BOND_JETTY_POST_SEND", "UB_JFS_POST_SEND", "BOND_JFS_POST_SEND",
    "UB_JETTY_POST_RECV", "BOND_JETTY_POST_RECV", "UB_POST_JFR_RECV", "BOND_POST_JFR_RECV",
    "UB_POLL_JFC",        "BOND_POLL_JFC",        "UB_WAIT_JFC",      "BOND_WAIT_JFC",
    "UB_ACK_JFC",         "UB_REARM_JFC",         "BOND_REARM_JFC"};

std::string line_of(const char* name, const Sum& sum) {
  const auto ns = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  char text[256];
  std::snprintf(text, sizeof text, "%-20s %10llu %10llu %10llu %10llu %10llu %10llu %10llu\n", name,
                ns(sum.count), ns(sum.sum_ns / sum.count), ns(sum.least_ns), ns(sum.most_ns),
                ns(sum.percentile(0.9)), ns(sum.percentile(0.99)), ns(sum.percentile(0.9999)));
  return text;
}

std::string report() {
  std::string text =
      "call                      count     avg_ns     min_ns     max_ns     p90_ns     p99_ns   "
      "p9999_ns\n";
  for (size_t type = 0; type < names.size(); ++type) {
    const Sum sum = sum_of(type);
    if (sum.count > 0) text += line_of(names[type], sum);
  }
  return text;
}

void raise_to(std::atomic<uint64_t>& most, uint64_t value) {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void lower_to(std::atomic<uint64_t>& least, uint64_t value) {
  uint64_t seen = least.load(std::memory_order_relaxed);
  while (seen > value && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void count_call(urma_perf_record_type_t type, Duration took) {
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(took.count(), 0));
  Calls& calls = table_of_thread()[type];
  calls.count.fetch_add(1, std::memory_order_relaxed);
  calls.sum_ns.fetch_add(ns, std::memory_order_relaxed);
  calls.in_bucket[bucket_of(ns)].fetch_add(1, std::memory_order_relaxed);
  lower_to(calls.least_ns, ns);
  raise_to(calls.most_ns, ns);
}

}  // namespace urma::umdk

using namespace urma::umdk;

extern "C" {

urma_status_t urma_start_perf(void) {
  is_measured = false;
  for (Table& table : tables) {
    for (Calls& calls : table) clear(calls);
  }
  is_measured = true;
  return URMA_SUCCESS;
}

urma_status_t urma_stop_perf(void) {
  is_measured = false;
  return URMA_SUCCESS;
}

urma_status_t urma_get_perf_info(char* perf_buf, uint32_t* length) {
  if (perf_buf == nullptr || length == nullptr) return refuse_null(__func__, "perf_buf or length");
  return run(__func__, [&] {
    const std::string text = report();
    const size_t needed = text.size() + 1;
    if (*length < needed) {
      return refuse(URMA_EINVAL, "urma_get_perf_info",
                    "the text has %zu bytes, and the buffer %u. Fix: give a larger one", needed,
                    *length);
    }
    std::memcpy(perf_buf, text.c_str(), needed);
    *length = static_cast<uint32_t>(needed);
    return URMA_SUCCESS;
  });
}

}  // extern "C"
