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
  // always: it is shown in every table; plan: in every table of blocks, and without_plan: in every
  // other one; limit: in every table with limits; jetties: in every table whose rows differ in
  // their Jetties, and without_jetties: in every other one, for lack of room.
  enum class Shown : uint8_t {
    always,
    plan,
    without_plan,
    limit,
    jetties,
    without_jetties,
    if_wide
  };

  std::string_view title;
  int width;
  bool left;  // otherwise its texts end at the right
  Shown shown;
  int rank;  // of the columns that need a wide table: the lowest is the first to be added
  bool of_limit;
  std::string (*text)(const Result& result);
};

// The rows of a table.
struct Rows {
  bool limit = false;    // some have a limit
  bool jetties = false;  // they differ in their Jetties
  bool plan = false;     // they are lists of blocks
};
// Returns the columns of a table that is at most this wide, in their order from left to right.
// Those that are always shown, with limits, take 80 columns.
std::vector<const Column*> columns_for(size_t width, const Rows& rows);

// Formats a number with three significant digits: "0.0123", "2.04", "11.7", "1523".
std::string three_digits(double value);
// The same, with at most three decimals: "0.012", "<.001".
std::string short_number(double value);
// Formats a time given in us: "2.04", "1523", "1.17s".
std::string latency_text(double us);
// Formats a number like "987", "235k", "1.42M".
std::string rate_text(double per_second);

}  // namespace urma::apps::perf
