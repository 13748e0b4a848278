// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "drivers/packet_port.h"
#include "drivers/pcap/capture_file.h"

namespace urma::drivers::pcap {

// The UDP port of CTP packets in captures, which distinguishes them from UTP (docs/protocol.md,
// section 14). CTP never travels on UDP.
inline constexpr uint16_t ctp_port = 4793;

// Captures the packets that go through the port it owns, without changing them. It offers no mapped
// memory, because copies to and from it would not be captured.
class PcapPort final : public PacketPort, public Ways {
 public:
  PcapPort(std::unique_ptr<PacketPort> inner, std::unique_ptr<CaptureFile> file,
           const CaptureSettings& settings);

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t metrics(std::span<uint64_t> out) override { return inner_->metrics(out); }
  size_t lend(std::span<TxFrame*> frames) override { return inner_->lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override { inner_->unlend(frames); }
  uint64_t settled() override { return inner_->settled(); }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override { inner_->release(frames); }
  std::span<const int> descriptors() const override { return inner_->descriptors(); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  Bell* bell() override { return inner_->bell(); }
  DeviceReads* device_reads() override { return inner_->device_reads(); }
  bool only_packets() const override { return true; }
  Ways* ways() override { return ways_ != nullptr ? this : nullptr; }
  Time next_arrival() const override { return std::min(inner_->next_arrival(), file_->due()); }
  VirtualClock* clock() override { return inner_->clock(); }
  void abandon() override;

  // Ways
  uint32_t way_to(const Endpoint& endpoint) const override;
  bool reserve(uint32_t way, uint32_t bytes) override { return ways_->reserve(way, bytes); }
  std::byte* begin(uint32_t way, uint32_t bytes) override;
  void end() override;
  void notify() override { ways_->notify(); }
  State state(uint32_t way) override { return ways_->state(way); }

 private:
  // The other end of a packet, the path of this device, and the packet's ECN field.
  struct Place {
    const Endpoint& other;
    uint8_t path = 0;
    Ecn ecn = Ecn::not_ect;
  };

  Duration time() const;
  template <class Fill>
  void note(Direction direction, Duration at, const Place& place, size_t bytes, Fill&& fill);

  std::unique_ptr<PacketPort> inner_;
  std::unique_ptr<CaptureFile> file_;
  PortFacts facts_;
  Ways* ways_;
  VirtualClock* clock_;
  std::vector<Endpoint> selves_;  // by path
  bool compact_;                  // its packets are CTP's

  // The endpoint of each way. Packets on ways beyond these are captured without an address.
  mutable std::array<Endpoint, 512> ends_;
  struct Begun {
    const std::byte* packet;
    uint32_t bytes;
    uint32_t way;
  };
  Begun begun_{};
};

}  // namespace urma::drivers::pcap
