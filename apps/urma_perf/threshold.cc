// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/threshold.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/common/failure.h"

namespace urma::apps::perf {

std::optional<Threshold> Threshold::read(std::string_view text) {
  const size_t at = text.find_first_of("<>");
  if (at == text.npos || at == 0) return std::nullopt;
  Threshold out;
  out.text_ = text;
  out.field_ = text.substr(0, at);
  out.above_ = text[at] == '>';
  std::string_view rest = text.substr(at + 1);
  out.equal_ = rest.starts_with('=');
  if (out.equal_) rest.remove_prefix(1);
  const char* const end = rest.data() + rest.size();
  const auto [stop, failure] = std::from_chars(rest.data(), end, out.bound_);
  if (failure != std::errc{} || stop != end || !std::isfinite(out.bound_)) return std::nullopt;
  return out;
}

std::optional<std::string> Threshold::broken_by(const nlohmann::json& result) const {
  const auto found = result.find(field_);
  if (found == result.end() || !found->is_number()) {
    usage(
        fmt::format("--fail-if {}: the result of {} has no number \"{}\". Fix: name a number that "
                    "urma_perf --json prints for each result",
                    text_, result["test"].get<std::string>(), field_));
  }
  const double value = found->get<double>();
  const bool met = (equal_ && value == bound_) || (above_ ? value > bound_ : value < bound_);
  if (!met) return std::nullopt;
  return fmt::format("{} {}, {} bytes: {} is {:.6g}, so --fail-if {} ends this run with 3",
                     result["test"].get<std::string>(), result["device"].get<std::string>(),
                     result["size_bytes"].get<uint64_t>(), field_, value, text_);
}

}  // namespace urma::apps::perf
