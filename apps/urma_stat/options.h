// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "urma/core/endpoint.h"

namespace urma::apps::stat {

// The checked command line.
struct Options {
  enum class Mode : uint8_t { help, version, metrics, show };

  Mode mode = Mode::show;
  std::string process;          // the number or the name of a process; empty means all
  std::optional<double> watch;  // seconds between two looks
  std::optional<uint64_t> count;
  std::optional<uint32_t> user;  // whose devices; by default of all users that may be seen
  bool peers = false;            // show channels instead of counters
  bool all = false;              // also what is 0 or idle
  bool wide = false;             // all columns
  bool json = false;
  bool prometheus = false;
  std::optional<Endpoint> listen;  // answer requests for --prometheus there, instead of printing
};

// Throws a Failure (usage) that says what is wrong and what would be valid.
Options parse_options(int count, char** arguments);

// Returns one screen of help.
std::string help();

// The same for urma_top.
Options parse_top_options(int count, char** arguments);
std::string top_help();

}  // namespace urma::apps::stat
