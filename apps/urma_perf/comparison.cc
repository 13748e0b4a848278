// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/common/failure.h"
#include "apps/common/output.h"
#include "apps/urma_perf/columns.h"
#include "apps/urma_perf/json_output.h"

namespace urma::apps::perf {
namespace {

using nlohmann::json;

json read_results(const std::string& path) {
  std::ifstream in(path);
  errno = in ? 0 : errno;
  if (std::filesystem::is_directory(path)) errno = EISDIR;
  if (errno != 0) {
    throw Failure(Exit::usage, fmt::format("compare: {} cannot be read: {}. Fix: name files that "
                                           "urma_perf --json-file has written",
                                           path, std::strerror(errno)));
  }
  const json whole = json::parse(in, nullptr, false);
  const bool ours = whole.is_object() && whole.contains("schema") &&
                    whole["schema"] == json_schema && whole.contains("results") &&
                    whole["results"].is_array();
  if (!ours) {
    throw Failure(Exit::usage, fmt::format("compare: {} is not of schema {}. Fix: name files that "
                                           "urma_perf --json-file has written",
                                           path, json_schema));
  }
  return whole["results"];
}

// The measured values of one result that are compared, and those of its rounds.
struct Measured {
  explicit Measured(const json& result) {
    const std::string test = result.at("test");
    latency = !test.ends_with("_bw") || result.contains("rate");
    const char* const field = latency ? "p50_us" : "messages_per_second";
    value = result.at(field);
    least = most = value;
    for (const json& round : result.at("rounds")) {
      least = std::min<double>(least, round.at(field));
      most = std::max<double>(most, round.at(field));
    }
  }
  bool apart(const Measured& other) const { return most < other.least || other.most < least; }

  bool latency;
  double value;
  double least;
  double most;
};

// Returns whether two results are of the same case: all that a user can choose is the same.
bool same_case(const json& a, const json& b) {
  const bool same_rate = a.value("rate", 0.0) == b.value("rate", 0.0);
  const bool same_processes = a.value("traffic", "") == b.value("traffic", "") &&
                              a.value("processes", 0) == b.value("processes", 0);
  const bool same_blocks = a.value("blocks", 0) == b.value("blocks", 0) &&
                           a.value("block_bytes", 0) == b.value("block_bytes", 0) &&
                           a.value("entries", 0) == b.value("entries", 0);
  // Files of earlier versions do not have this field.
  const bool same_memory = a.value("memory", "host") == b.value("memory", "host");
  return same_rate && same_processes && same_blocks && same_memory &&
         std::ranges::all_of(std::array{"test", "device", "size_bytes", "depth", "jetties",
                                        "signal_every", "order", "mode", "atomic", "fence_every",
                                        "threads_mode", "verified", "spread_bytes"},
                             [&](const char* field) { return a.at(field) == b.at(field); });
}

std::string compared(const json& before, const json& after) {
  const Measured a(before);
  const Measured b(after);
  if (!(a.least > 0 && b.least > 0)) {
    throw Failure(Exit::usage,
                  "compare: a measured time or rate is not above 0. Fix: name files "
                  "as urma_perf --json-file has written them");
  }
  const double ratio = b.value / a.value;
  const bool better = a.latency == (ratio < 1);
  const auto text = [&](const Measured& one) {
    return one.latency ? three_digits(one.value) + "us" : rate_text(one.value) + "/s";
  };
  return fmt::format("{:<15} {:>5} {:<24} {:>8} {:>8} {:>6.3f} {}\n",
                     printable(before.at("test").get<std::string>()),
                     size_text(before.at("size_bytes").get<uint64_t>()),
                     printable(before.at("device").get<std::string>()), text(a), text(b), ratio,
                     !a.apart(b) ? "same"
                     : better    ? "better"
                                 : "worse");
}

}  // namespace

void print_comparison(const std::string& before, const std::string& after) {
  const json first = read_results(before);
  const json second = read_results(after);
  std::string lines;
  try {
    for (const json& one : first) {
      const auto other =
          std::ranges::find_if(second, [&](const json& it) { return same_case(one, it); });
      if (other != second.end()) lines += compared(one, *other);
    }
  } catch (const json::exception& error) {
    throw Failure(Exit::usage, fmt::format("compare: a result lacks a field: {}. Fix: name files "
                                           "that urma_perf --json-file has written",
                                           error.what()));
  }
  if (lines.empty()) {
    throw Failure(
        Exit::usage,
        fmt::format("compare: {} and {} have no measurement in common: test, device, size "
                    "and options. Fix: measure the same in both",
                    before, after));
  }
  print(fmt::format("{:<15} {:>5} {:<24} {:>8} {:>8} {:>6}\n", "test", "size", "device", "before",
                    "after", "ratio") +
        lines + "same: the rounds of the two overlap.\n");
}

}  // namespace urma::apps::perf
