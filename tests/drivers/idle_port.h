// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drivers/packet_port.h"

namespace urma::test {

// A port at which nothing arrives, and which lends no frames. Other ports of tests derive from it,
// and override the functions that they need.
class IdlePort : public drivers::PacketPort {
 public:
  const drivers::PortFacts& facts() const override { return facts_; }
  drivers::PortCounters counters() const override { return {}; }
  size_t lend(std::span<TxFrame*>) override { return 0; }
  size_t send(std::span<TxFrame* const>, Time) override { return 0; }
  void unlend(std::span<TxFrame* const>) override {}
  uint64_t settled() override { return 0; }
  size_t receive(std::span<RxFrame>, Time) override { return 0; }
  void release(std::span<const RxFrame>) override {}
  std::span<const int> descriptors() const override { return {}; }

 protected:
  drivers::PortFacts facts_;
};

}  // namespace urma::test
