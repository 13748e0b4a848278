// SPDX-License-Identifier: Apache-2.0
#include "base/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace urma {
namespace {

// Returns how many letters must be inserted, removed or replaced to make one word from the other.
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

}  // namespace

std::string near_names(std::string_view word, const std::vector<std::string>& names) {
  constexpr size_t most = 3;
  std::vector<std::pair<size_t, std::string_view>> found;
  for (const std::string& name : names) {
    const bool part = word.size() >= 3 && name.find(word) != name.npos;
    const size_t letters = part ? 0 : distance(word, name);
    // In a word of two or three letters, two other letters make another word.
    const bool similar = letters <= 1 + word.size() / 3 && letters * 2 <= word.size();
    if (part || similar) found.emplace_back(letters, name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (size_t i = 0; i < std::min(found.size(), most); ++i) {
    if (i > 0) out += " or ";
    out += found[i].second;
  }
  return out;
}

}  // namespace urma
