// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tests/fuzz/input.h"
#include "transport/channel.h"

namespace urma::fuzz {

// A channel that keeps offered slices until the script pulls them.
class FakeChannel final : public transport::Channel {
 public:
  struct Offered {
    transport::SliceRef slice;
    uint32_t bytes;
  };

  bool full = false;
  std::vector<Offered> offered;
  std::vector<Offered> pulled;  // all of their packets, and not delivered
  Time progress{};

  bool offer(transport::SliceRef slice, transport::Class, uint32_t bytes) override {
    require(bytes <= 64 * 1024, "a slice has at most 64 KiB");
    if (full || offered.size() >= 64) return false;
    offered.push_back({slice, bytes});
    return true;
  }
  void expect_answers(int32_t change, Time) override {
    awaited_ += change;
    require(awaited_ >= 0, "no more answers are given up than were expected");
  }
  Time last_progress() const override { return progress; }
  const transport::Facts& facts() const override { return facts_; }

 private:
  const transport::Facts facts_{
      .packet_bytes = 1024, .tassn_window = 64, .reads = 4, .atomic_results = 3};
  int32_t awaited_ = 0;
};

}  // namespace urma::fuzz
