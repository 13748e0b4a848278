// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace urma::apps::info {

// An error's message, split where its cure begins.
struct SplitError {
  std::string what;
  std::string fix;
};
inline SplitError split_error(std::string_view text) {
  constexpr std::string_view mark = ". Fix: ";
  const size_t at = text.find(mark);
  if (at == text.npos) return {std::string(text), {}};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + mark.size()))};
}

}  // namespace urma::apps::info
