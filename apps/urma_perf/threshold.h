// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace urma::apps::perf {

// A condition (--fail-if), such as "p99_us>5": if a result meets it, the run fails.
class Threshold {
 public:
  // Reads FIELD, one of < <= > >=, and a number, without blanks. Returns nothing if the text is
  // something else.
  static std::optional<Threshold> read(std::string_view text);
  static constexpr std::string_view valid =
      "FIELD, one of < <= > >=, and a number, such as p99_us>5 or bytes_per_second<1e9; FIELD is a "
      "number that --json prints for each result";

  // Returns what is wrong with this result, or nothing if it does not meet the condition. Throws a
  // Failure (usage) if the result has no such number.
  std::optional<std::string> broken_by(const nlohmann::json& result) const;

 private:
  std::string text_;
  std::string field_;
  bool above_ = false;
  bool equal_ = false;
  double bound_ = 0;
};

}  // namespace urma::apps::perf
