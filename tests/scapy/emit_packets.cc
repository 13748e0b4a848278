// SPDX-License-Identifier: Apache-2.0
// One side of the wire test; wire_scapy.py is the other.
//
//   emit_packets SEED ROUNDS    prints packets of every kind with random fields
//   emit_packets parse          reads packets, prints what they say

#include <iostream>
#include <vector>

#include "tests/scapy/packet_lines.h"

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() == 1 && words[0] == "parse") {
    urma::test::parse_packets();
    return 0;
  }
  if (words.size() == 2) {
    urma::test::make_packets(std::stoull(words[0]), std::stoull(words[1]));
    return 0;
  }
  std::cerr << "usage: emit_packets SEED ROUNDS | emit_packets parse\n";
  return 2;
}
