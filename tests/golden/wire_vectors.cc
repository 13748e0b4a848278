// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/wire_vectors.h"

#include <fstream>
#include <stdexcept>

namespace urma::test {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

void set(WireVector& vector, const std::string& name, const std::string& value) {
  if (name == "hex") {
    vector.hex = value;
  } else if (name == "ignored") {
    vector.ignored = true;
  } else if (name == "reject") {
    vector.reject = true;
  } else if (!vector.fields.emplace(name, value).second) {
    throw std::runtime_error(name + " stands twice in [" + vector.header + "] " + vector.name);
  }
}

}  // namespace

std::vector<WireVector> read_wire_vectors(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<WireVector> vectors;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t bracket = line.find("] ");
    const size_t equals = line.find(" = ");
    if (line.front() == '[' && bracket != line.npos) {
      vectors.push_back({.header = line.substr(1, bracket - 1),
                         .name = line.substr(bracket + 2),
                         .fields = {},
                         .hex = {},
                         .line = number});
    } else if (equals != line.npos && !vectors.empty()) {
      set(vectors.back(), line.substr(0, equals), line.substr(equals + 3));
    } else {
      throw std::runtime_error(path + ":" + std::to_string(number) + " is not understood");
    }
  }
  return vectors;
}

}  // namespace urma::test
