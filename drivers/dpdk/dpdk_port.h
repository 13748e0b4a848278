// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/region.h"
#include "drivers/dpdk/ether_device.h"
#include "drivers/dpdk/gather_choice.h"
#include "drivers/dpdk/gatherer.h"
#include "drivers/dpdk/station.h"
#include "drivers/dpdk/waiting_packets.h"
#include "drivers/packet_port.h"

namespace urma::drivers::dpdk {

// A packet port over one port of DPDK. A frame's head lies in a packet buffer, with room for the
// outer headers in front. `send` copies the pieces behind it, or chains buffers that name them to
// it (Gatherer). Received buffers are handed upwards. Owns the port, the station and all buffers.
// Only the thread that runs the engine calls it, except for `open` and the destructor.
class DpdkPort final : public PacketPort {
 public:
  // Errors: those of urma::open.
  static Result<std::unique_ptr<PacketPort>> open(const Settings& settings);
  ~DpdkPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t metrics(std::span<uint64_t> out) override { return device_->extended().read(out); }
  size_t lend(std::span<TxFrame*> frames) override;
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override { return settled_; }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return device_->interrupts().descriptors(); }
  void arm() override { device_->interrupts().arm(); }
  void disarm() override { device_->interrupts().disarm(); }
  Time next_arrival() const override;
  DeviceReads* device_reads() override { return readable_ ? &*readable_ : nullptr; }

 private:
  static constexpr uint32_t frame_count = 512;
  static constexpr uint32_t most_received = 1024;
  static constexpr size_t burst = 64;

  struct Frame : TxFrame {
    rte_mbuf* buffer = nullptr;  // null while the frame is free and its last buffer is in the port
  };
  struct Held {
    rte_mbuf* buffer = nullptr;
    Endpoint from;
  };
  // A packet to this port itself.
  struct Own {
    rte_mbuf* buffer;
    Ecn ecn;
  };
  // Packets to one queue that are handed to the port by one call.
  struct Burst {
    std::array<rte_mbuf*, burst> packets;
    size_t count = 0;
    uint16_t queue = 0;
  };

  DpdkPort(std::unique_ptr<EtherDevice> device, const Station::Settings& station,
           const Settings& settings, const GatherChoice& choice);
  void await_link();
  void state_facts(const Settings& settings);
  void state_settings(const Settings& settings);
  void state_gathering(const GatherChoice& choice);

  uint32_t flow_of(const TxFrame& frame) const;
  void copy(Frame& frame) const;
  void put_on_wire(rte_mbuf& packet, const Envelope& envelope, Ecn ecn, uint32_t flow) const;
  size_t flush(Burst& burst, Time now);
  bool keep_back(Frame& frame, Time now);
  void settle(Time now);
  void end_reads();
  bool fits(const TxFrame& frame) const { return frame.bytes() <= largest_; }
  void send_messages(Time now);
  void send_waiting(Time now);
  bool take_in(rte_mbuf& buffer, RxFrame& out, Time now);
  void hold(rte_mbuf& buffer, const Station::Arrival& arrival, RxFrame& out);
  size_t read(std::span<RxFrame> frames, Time now);
  size_t receive_own(std::span<RxFrame> frames);

  const pid_t opener_ = getpid();
  Gatherer gatherer_;  // the device's buffers refer to it
  std::unique_ptr<EtherDevice> device_;
  std::optional<ReadableMemory> readable_;  // if the device reads only mapped memory
  Station station_;
  const size_t largest_;  // the packets that the link carries
  const bool has_flows_;  // which are computed only if queues or source ports depend on them
  PortFacts facts_;
  PortCounters counters_;

  // Sending.
  RegionArray<Frame> frames_;
  std::vector<Frame*> free_;
  uint64_t taken_ = 0;
  uint64_t settled_ = 0;
  Time settled_at_{};        // when `settled_` last grew, or the port was restarted
  bool taken_back_ = false;  // the frames since then
  WaitingPackets waiting_;   // for the MAC address of their next hop
  std::vector<Own> own_;

  // Receiving.
  std::vector<Held> held_;
  std::vector<uint32_t> free_slots_;
  // Packets that came when the caller had no room: answers to questions may lie behind them.
  std::array<RxFrame, burst> backlog_;
  size_t backlog_first_ = 0;
  size_t backlog_end_ = 0;
  Time received_at_{};   // the time of the last `receive`
  bool unread_ = false;  // the last read has not shown that the port has no more packets
};

}  // namespace urma::drivers::dpdk
