#include "apps/urma_info/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

#include "apps/common/failure.h"
#include "apps/urma_info/wrap.h"

namespace urma::info {
namespace {

int number(const StatusInfo& info) { return static_cast<int>(info.status); }

// How many letters must be put in, left out or changed to make one of the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// Those that were perhaps meant, the likeliest first.
std::string near_names(std::string_view text) {
  constexpr size_t most = 3;
  std::vector<std::pair<size_t, std::string_view>> found;
  for (const StatusInfo& info : all_statuses()) {
    const bool part = text.size() >= 3 && info.name.find(text) != info.name.npos;
    const size_t far = part ? 0 : distance(text, info.name);
    if (far <= 1 + text.size() / 3) found.emplace_back(far, info.name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string names;
  for (size_t i = 0; i < std::min(found.size(), most); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : " or ", found[i].second);
  }
  return names;
}

}  // namespace

const StatusInfo& find_status(std::string_view text) {
  int wanted = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  const bool is_number = failure == std::errc{} && end == text.data() + text.size();
  for (const StatusInfo& info : all_statuses()) {
    if (is_number ? number(info) == wanted : info.name == text) return info;
  }
  const std::string near = near_names(text.substr(0, 40));
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

}  // namespace urma::info
