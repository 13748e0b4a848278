// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "wire/ways.h"

namespace urma::test {

// The ways of shared memory, without memory: the test sets the state that they report.
class FakeWays final : public Ways {
 public:
  uint32_t way_to(const Endpoint&) const override { return 0; }
  bool reserve(uint32_t, uint32_t) override { return room; }
  std::byte* begin(uint32_t, uint32_t) override { return room ? at_once.data() : nullptr; }
  void end() override { ++sent_at_once; }
  void notify() override {}
  const NextLine* next_line(uint32_t) const override { return &line; }
  void sent_line(uint32_t, uint32_t bytes) override { sent_in_line = bytes; }
  State state(uint32_t) override { return now; }

  bool room = true;
  State now;
  std::array<std::byte, 256> at_once{};
  int sent_at_once = 0;
  NextLine line;
  std::atomic<uint32_t> mark{0};
  uint32_t sent_in_line = 0;  // bytes of the latest packet
};

}  // namespace urma::test
