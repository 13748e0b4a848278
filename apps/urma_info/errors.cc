// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/errors.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "apps/common/failure.h"
#include "apps/common/near_names.h"
#include "apps/urma_info/wrap.h"

namespace urma::apps::info {
namespace {

int number(const StatusInfo& info) { return static_cast<int>(info.status); }

}  // namespace

const StatusInfo& find_status(std::string_view text) {
  int wanted = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  const bool is_number = failure == std::errc{} && end == text.data() + text.size();
  for (const StatusInfo& info : all_statuses()) {
    if (is_number ? number(info) == wanted : info.name == text) return info;
  }
  std::vector<std::string> names;
  for (const StatusInfo& info : all_statuses()) names.emplace_back(info.name);
  const std::string near = apps::near_names(text.substr(0, 40), names);
  throw apps::Failure(
      apps::Exit::usage,
      fmt::format("--error: there is no status \"{}\". Fix: {}urma_info --error lists all",
                  text.substr(0, 80), near.empty() ? "" : "perhaps " + near + "; "));
}

nlohmann::json to_json(const StatusInfo& info) {
  return {{"name", info.name},
          {"number", number(info)},
          {"meaning", info.meaning},
          {"causes", std::vector<std::string>(info.causes().begin(), info.causes().end())},
          {"cure", info.cure}};
}

std::string to_text(const StatusInfo& info) {
  constexpr size_t indent = 9;
  std::string out = fmt::format("{} ({})\n", info.name, number(info));
  out += wrap_after("  Means: ", info.meaning, indent);
  for (const std::string_view cause : info.causes()) out += wrap_after("  Cause: ", cause, indent);
  return out + wrap_after("  Fix:   ", info.cure, indent);
}

std::string to_line(const StatusInfo& info) {
  constexpr size_t indent = 25;
  const std::string_view begin = info.meaning.substr(0, info.meaning.find_first_of(":."));
  return wrap_after(fmt::format("{:>3}  {:<19} ", number(info), info.name), begin, indent);
}

}  // namespace urma::apps::info
