#pragma once

#include <array>
#include <memory>
#include <vector>

#include "drivers/driver.h"
#include "drivers/frame_pool.h"

namespace urma::drivers::paths {

// Several ports as one: each is a path of its own.
class PathsPort final : public PacketPort {
 public:
  // 2 to `most_paths` ports, none of them lossless, all on one clock.
  PathsPort(std::vector<std::unique_ptr<PacketPort>> ports, Balance balance,
            const SettingList& options);
  ~PathsPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override;
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return descriptors_; }
  Time next_arrival() const override;
  VirtualClock* clock() override { return ports_[0].inner->clock(); }
  void abandon() override;

 private:
  static constexpr uint32_t frame_count = 1024;
  static constexpr size_t most_waiting = 64;  // frames that one port has not taken
  static constexpr size_t most_unsettled = 1 << 14;
  static constexpr Duration patience = std::chrono::milliseconds(5);

  struct Port {
    std::unique_ptr<PacketPort> inner;
    // Taken from above and not yet by the port, oldest first, with their numbers in `sent_`.
    std::array<TxFrame*, most_waiting> waiting;
    std::array<uint64_t, most_waiting> numbers;
    size_t count = 0;
    uint64_t taken = 0;  // frames that it has taken since open
    Time refused_since = never;
  };
  // One frame that `send` took: read until its port has settled so many of its own.
  struct Sent {
    static constexpr uint64_t waits = UINT64_MAX;
    uint64_t until = waits;
    uint8_t path = 0;
  };

  void pass_on(Port& port, Time now);
  void drop(Port& port);
  void forget(Port& port, size_t count);

  std::vector<Port> ports_;
  PortFacts facts_;
  FramePool pool_{frame_count};
  std::vector<int> descriptors_;
  std::vector<Sent> sent_;  // ring, by number
  uint64_t sent_first_ = 0;
  uint64_t sent_next_ = 0;
  uint64_t dropped_ = 0;
  size_t first_to_receive_ = 0;
};

}  // namespace urma::drivers::paths
