// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace urma::apps::perf {

// A number of a result under one of the names by which --fail-if knows it: the name of its field in
// the JSON, the title of its column, or the short name that users of other tools type.
struct Measure {
  enum class Kind : uint8_t { time, bandwidth, rate, count, percent, ratio, number };

  std::string field;
  Kind kind;
  // A bound of 1 without a unit, in the unit of the field; 0 if a bound needs a unit.
  double bare = 1;
  std::string_view
      needs{};           // the option without which no result has the number; empty: each has it
  bool counter = false;  // the field is one of the counters
};

// Returns nothing if no result can have a number of this name.
std::optional<Measure> find_measure(std::string_view name);
// Returns all names, for finding the nearest one.
std::vector<std::string> measure_names();
// Returns a text of the usual names, for errors.
std::string_view usual_measure_names();

// Returns how large this unit is in the unit of the field; nothing if it is not a unit of the kind.
// Without a unit, `Measure::bare` holds.
std::optional<double> scale_of(Measure::Kind kind, std::string_view unit);
// Returns the kind and its units in words: "a time: ns, us, ms or s".
std::string_view units_of(Measure::Kind kind);

}  // namespace urma::apps::perf
