// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace urma::test {

// Returns whether a message contains these words. (Catch2's own matcher changed its name in version
// 3.)
inline bool mentions(std::string_view message, std::string_view words) {
  return message.find(words) != message.npos;
}

}  // namespace urma::test
