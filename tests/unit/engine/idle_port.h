#pragma once

#include <memory>
#include <span>

#include "congestion/controller.h"
#include "drivers/driver.h"
#include "engine/engine.h"

namespace urma::test {

// A port to which no packet ever comes, and which has no frames to send.
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

 private:
  drivers::PortFacts facts_;
};

// These engines are not part of a simulation.
class NotDriven final : public drivers::VirtualClock::Driven {
 public:
  Time pass(Time) override { return never; }
};

inline engine::EngineSettings idle_settings() {
  return {.life = Incarnation(77),
          .controller = &congestion::controllers().front(),
          .limits = {.jetties = 8, .peers = 32, .segments = 8}};
}

}  // namespace urma::test
