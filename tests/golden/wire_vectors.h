#pragma once

#include <map>
#include <string>
#include <vector>

namespace urma::test {

// One block of wire_vectors.txt, which says at its top what it may hold.
struct WireVector {
  std::string header;
  std::string name;
  std::map<std::string, std::string> fields;  // without those below
  std::string hex;
  bool ignored = false;
  bool reject = false;
  int line = 0;
};

// Throws where the file is not as it says.
std::vector<WireVector> read_wire_vectors(const std::string& path);

}  // namespace urma::test
