// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/options.h"

#include <charconv>
#include <string_view>

namespace urma::nixl {
namespace {

constexpr uint32_t most_depth = 32768;
constexpr uint32_t least_timeout_ms = 10;
constexpr uint32_t most_timeout_ms = 3'600'000;

const std::string* find(const nixl_b_params_t& params, const char* name) {
  const auto at = params.find(name);
  return at == params.end() ? nullptr : &at->second;
}

Error invalid(const char* name, const std::string& value, const std::string& fix) {
  return {Status::invalid_argument,
          std::string(name) + ": \"" + value + "\" is invalid. Fix: give " + fix};
}

Result<uint32_t> number(const nixl_b_params_t& params, const char* name, uint32_t otherwise,
                        uint32_t least, uint32_t most) {
  const std::string* const text = find(params, name);
  if (text == nullptr) return otherwise;
  uint32_t value = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < least || value > most) {
    return invalid(name, *text,
                   "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

}  // namespace

Result<Options> read_options(const nixl_b_params_t& params) {
  Options out;
  if (const std::string* const device = find(params, "device")) out.device = *device;
  const Result<uint32_t> depth = number(params, "depth", out.depth, 2, most_depth);
  if (!depth) return depth.error();
  out.depth = *depth;
  const Result<uint32_t> limit =
      number(params, "timeout_ms", out.timeout_ms, least_timeout_ms, most_timeout_ms);
  if (!limit) return limit.error();
  out.timeout_ms = *limit;
  if (const std::string* const guarded = find(params, "guarded")) {
    if (*guarded != "yes" && *guarded != "no") return invalid("guarded", *guarded, "yes or no");
    out.guarded = *guarded == "yes";
  }
  return out;
}

nixl_b_params_t default_options() {
  const Options usual;
  return {{"device", usual.device},
          {"depth", std::to_string(usual.depth)},
          {"timeout_ms", std::to_string(usual.timeout_ms)},
          {"guarded", usual.guarded ? "yes" : "no"}};
}

}  // namespace urma::nixl
