// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "apps/urma_switch/forwarder.h"
#include "tests/catch.h"
#include "wire/cci.h"

namespace urma::test {

using namespace std::chrono_literals;

inline Endpoint host_at(uint8_t number, uint16_t port = 4792) {
  return {ipv4(10, 0, 0, number), port};
}

// The part of a device that a switch sees.
struct FakeDevice {
  Endpoint at;
  uint32_t cna = 0;  // 0: any
  uint64_t nonce = 1;

  LinkControl asks(uint64_t cookie = 0) const {
    return {.type = LinkMessage::attach, .cna = cna, .nonce = nonce, .cookie = cookie};
  }
  LinkControl leaves() const { return {.type = LinkMessage::detach, .cna = cna, .nonce = nonce}; }
};

inline std::vector<std::byte> packet_between(uint32_t from, uint32_t to, size_t bytes = 100,
                                             uint16_t cci = 0, LinkWord word = {}) {
  std::vector<std::byte> out(bytes, std::byte{0x5a});
  const std::span<std::byte> all(out);
  word.emit(all.first<LinkWord::size>());
  Cna24Nth{.source = from, .destination = to, .cci = cci}.emit(
      all.subspan<LinkWord::size, Cna24Nth::size>());
  return out;
}

}  // namespace urma::test
