// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace urma::drivers::cxl {

// The kind of pages that the mapping of a window can have.
struct Pages {
  uint64_t bytes = 4096;  // the size of the pages of which the file is made
  bool asked =
      false;  // whether the system uses larger pages, where it has some, only if they are asked for
  std::string text;    // for people
  std::string advice;  // what to do for larger ones
};
Pages pages_of(int descriptor);

}  // namespace urma::drivers::cxl
