// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/region.h"
#include "drivers/frame_pool.h"
#include "drivers/impairment.h"
#include "drivers/lateness.h"
#include "drivers/sim/network.h"
#include "drivers/sim/open_memory.h"
#include "drivers/sim/remote_ends.h"

namespace urma::drivers::sim {

// The bytes of a packet with a payload of `mtu` bytes, at most.
constexpr uint32_t packet_bytes(uint32_t mtu) {
  return mtu + TxFrame::head_room + TxFrame::tail_room;
}

// A port of the network, which it keeps alive. Only the thread that runs the engine calls it.
class Port final : public PacketPort {
 public:
  // any: transfers use memory of this process that is not registered, too.
  enum class Rdma : uint8_t { no, yes, any };
  struct Settings {
    Eid address;  // the next free address if all zero
    uint32_t mtu = 4096;
    uint32_t buffer_bytes = 4 << 20;
    Impairment impairment;
    Lateness lateness;
    Duration scheduling_delay{};
    uint8_t service_level = 0;  // the lane of its packets
    Rdma rdma = Rdma::no;
    // If set, the network must have switches. The settings are those of the first such port.
    std::optional<Switches::Settings> switches = {};
    SettingList options = {};  // the options as they were read, for PortFacts::settings
  };
  static Result<std::unique_ptr<PacketPort>> open(const std::shared_ptr<Network>& network,
                                                  const Settings& settings);
  ~Port() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override { return counters_; }
  size_t lend(std::span<TxFrame*> frames) override;
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override { return held_.settled(); }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return {}; }
  bool only_packets() const override { return true; }
  DeviceReads* device_reads() override { return ends_ ? &open_memory_ : nullptr; }
  RemoteAccess* remote_access() override { return ends_ ? &*ends_ : nullptr; }
  VirtualClock* clock() override { return network_.get(); }

 private:
  friend class Network;
  static constexpr uint32_t frame_count = 1024;

  Port(std::shared_ptr<Network> network, const Settings& settings);
  void run_device();
  void plan();

  std::shared_ptr<Network> network_;
  const Settings settings_;
  PortFacts facts_;
  PortCounters counters_;
  ImpairedLine line_;      // for the impairment of this port
  ImpairedLine wire_;      // for that of the network, of packets that this port sends
  Impairment impairment_;  // without what the cable of a host of the switches has
  uint32_t index_ = 0;
  uint32_t place_ = 0;
  FramePool pool_{frame_count};
  LateFrames held_;  // frames in the device
  Time planned_ = never;
  OpenMemory open_memory_;
  std::optional<RemoteEnds> ends_;  // if it has rdma
  // Packets that have arrived, oldest first.
  RegionArray<uint32_t> inbox_;
  size_t inbox_first_ = 0;
  size_t inbox_count_ = 0;
  uint64_t inbox_bytes_ = 0;
};

}  // namespace urma::drivers::sim
