#pragma once

#include <cstdint>
#include <string>

namespace urma::drivers::cxl {

// Which pages a window's mapping can have.
struct Pages {
  uint64_t bytes = 4096;  // the file is made of
  bool asked = false;     // larger ones are used where the system has some, if they are asked for
  std::string text;       // for people
  std::string advice;     // what to do for larger ones
};
Pages pages_of(int descriptor);

}  // namespace urma::drivers::cxl
