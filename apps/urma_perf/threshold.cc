// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/threshold.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/common/failure.h"
#include "apps/common/near_names.h"
#include "apps/common/output.h"

namespace urma::apps::perf {
namespace {

constexpr const char* operators = "<>";

// Blanks stand in no name and no unit.
std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase_if(out, [](char one) { return one == ' ' || one == '\t'; });
  return out;
}

[[noreturn]] void refuse_form(std::string_view text) {
  if (find_measure(text)) {
    usage(
        fmt::format("--fail-if: \"{0}\" has no bound. Fix: put the condition into quotes, because "
                    "a shell takes < and > for itself: --fail-if '{0}>5'",
                    text));
  }
  usage(
      fmt::format("--fail-if: \"{}\" is invalid. Fix: give a name, one of < <= > >=, a number and "
                  "its unit, such as 'p99>50us', 'bw<90Gbps' or 'wrong>0'",
                  printable(text)));
}

Measure measure_named(const std::string& name, std::string_view text) {
  if (auto measure = find_measure(name)) return *measure;
  const std::string near = near_names(name, measure_names());
  usage(fmt::format("--fail-if {}: no result has \"{}\". Fix: {}the names are {}", printable(text),
                    printable(name), near.empty() ? "" : "perhaps " + near + "; ",
                    usual_measure_names()));
}

// Returns how large the unit of a bound is, in the unit of the field.
double scale_for(const Measure& measure, const std::string& name, std::string_view unit,
                 std::string_view text) {
  if (unit.empty() && measure.bare > 0) return measure.bare;
  if (unit.empty()) {
    usage(fmt::format("--fail-if {0}: bits or bytes? Fix: give the unit, as {0}Gbps or {0}GB/s",
                      text));
  }
  if (const auto scale = scale_of(measure.kind, unit)) return *scale;
  usage(fmt::format("--fail-if {}: \"{}\" is not a unit of {}. Fix: give {}", printable(text),
                    printable(unit), name, units_of(measure.kind)));
}

}  // namespace

Threshold Threshold::read(std::string_view typed) {
  Threshold out;
  out.text_ = without_blanks(typed);
  const std::string_view text = out.text_;
  const size_t at = text.find_first_of(operators);
  if (at == text.npos || at == 0 || text[at - 1] == '=') refuse_form(text);
  out.name_ = text.substr(0, at);
  out.above_ = text[at] == '>';
  std::string_view rest = text.substr(at + 1);
  out.equal_ = rest.starts_with('=');
  if (out.equal_) rest.remove_prefix(1);
  const char* const end = rest.data() + rest.size();
  const auto [stop, failure] = std::from_chars(rest.data(), end, out.bound_);
  // No number of a result is negative, so such a bound would always or never be met.
  if (failure != std::errc{} || !std::isfinite(out.bound_) || std::signbit(out.bound_)) {
    refuse_form(text);
  }
  out.measure_ = measure_named(out.name_, text);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  out.scale_ = scale_for(out.measure_, out.name_, unit, text);
  if (!std::isfinite(out.bound())) refuse_form(text);
  const bool is_short = out.name_ != out.measure_.field;
  out.unit_ = !unit.empty()                                          ? " " + std::string(unit)
              : is_short && out.measure_.kind == Measure::Kind::time ? " us"
                                                                     : "";
  return out;
}

std::optional<std::string> Threshold::broken_by(const nlohmann::json& result) const {
  const auto of =
      fmt::format("{} {}, {} bytes: ", result["test"].get<std::string>(),
                  result["device"].get<std::string>(), result["size_bytes"].get<uint64_t>());
  const auto ends = fmt::format(", so --fail-if {} ends this run with 3", text_);
  const nlohmann::json& all = measure_.counter ? result.at("counters") : result;
  const auto found = all.find(measure_.field);
  if (found == all.end() || !found->is_number() || std::isnan(found->get<double>())) {
    return fmt::format("{}it has no {}{}", of, name_, ends);
  }
  const auto value = found->get<double>();
  const bool met = (equal_ && value == bound()) || (above_ ? value > bound() : value < bound());
  if (!met) return std::nullopt;
  return fmt::format("{}{} is {:.6g}{}{}", of, name_, value / scale_, unit_, ends);
}

}  // namespace urma::apps::perf
