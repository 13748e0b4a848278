// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "apps/urma_perf/measures.h"

namespace urma::apps::perf {

// A condition (--fail-if), such as "p99>50us": if a result meets it, the run fails.
class Threshold {
 public:
  // Reads NAME, one of < <= > >=, a number, and a unit. Blanks between them are ignored. Throws a
  // Failure (usage) that says what is wrong: the form, a name that no result has, or a unit of
  // another kind.
  static Threshold read(std::string_view text);

  // Returns what is wrong with this result, or nothing if it does not meet the condition. A result
  // that lacks the number fails, because it cannot be judged.
  std::optional<std::string> broken_by(const nlohmann::json& result) const;

  const std::string& text() const { return text_; }
  const Measure& measure() const { return measure_; }
  // Returns the bound in the unit of the measure's field.
  double bound() const { return bound_ * scale_; }

 private:
  std::string text_;  // without blanks
  std::string name_;
  Measure measure_;
  std::string unit_;  // for printing
  double scale_ = 1;
  double bound_ = 0;  // in this unit
  bool above_ = false;
  bool equal_ = false;
};

}  // namespace urma::apps::perf
