// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <span>

#include "urma/core/time.h"
#include "wire/tp_headers.h"

namespace urma::test {

// How many bytes more a sender has sent than its line can carry.
struct Excess {
  double bytes_per_second = 0;
  double bytes = 0;
  double most = 0;
  Time at{};

  void add(size_t sent, Time now) {
    const double carried = bytes_per_second * std::chrono::duration<double>(now - at).count();
    bytes = std::max(bytes - carried, 0.0) + static_cast<double>(sent);
    most = std::max(most, bytes);
    at = now;
  }
};

inline bool is_data(std::span<const std::byte> packet) {
  const auto header = Rtph::parse(packet.first<Rtph::size>());
  return header && header->opcode == static_cast<uint8_t>(TpOpcode::data);
}

}  // namespace urma::test
