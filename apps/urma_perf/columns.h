// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apps/urma_perf/result.h"

namespace urma::apps::perf {

// A column of the table of results.
struct Column {
  // always: it is shown in every table; limit: in every table with limits.
  enum class Shown : uint8_t { always, limit, if_wide };

  std::string_view title;
  int width;
  bool left;  // otherwise its texts end at the right
  Shown shown;
  int rank;  // of the columns that need a wide table: the lowest is the first to be added
  bool of_limit;
  std::string (*text)(const Result& result);
};

// Returns the columns of a table that is at most this wide, in their order from left to right.
// Those that are always shown take 80 columns. `limit`: some row has a limit.
std::vector<const Column*> columns_for(size_t width, bool limit);

// Formats a number with three significant digits: "0.0123", "2.04", "11.7", "1523".
std::string three_digits(double value);
// The same, with at most three decimals: "0.012", "<.001".
std::string short_number(double value);
// Formats a number like "987", "235k", "1.42M".
std::string rate_text(double per_second);

}  // namespace urma::apps::perf
