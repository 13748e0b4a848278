// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace urma::test {

// One block of wire_vectors.txt. The top of that file says what a block may contain.
struct WireVector {
  std::string header;
  std::string name;
  std::map<std::string, std::string> fields;  // except those that are members below
  std::string hex;
  bool ignored = false;
  bool reject = false;
  int line = 0;
};

// Throws if the file does not have this form.
std::vector<WireVector> read_wire_vectors(const std::string& path);

}  // namespace urma::test
