// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "drivers/frame_pool.h"
#include "drivers/impairment.h"
#include "drivers/lateness.h"
#include "drivers/packet_port.h"

namespace urma::drivers::fault {

// The options of fault(...).
struct Settings {
  Impairment out;     // of packets that are sent
  Impairment in;      // of packets that arrive
  Lateness lateness;  // of reading what is sent
  uint64_t seed = 1;
  SettingList options = {};  // the options as they were read, for PortFacts::settings
};

// A port that loses, repeats, delays and damages packets of the port it owns, in each direction by
// rules of its own. Keeps delayed packets in memory of its own. Does not know what the packets
// contain. Only the thread that runs the engine calls it.
class FaultPort final : public PacketPort {
 public:
  FaultPort(std::unique_ptr<PacketPort> inner, const Settings& settings);
  ~FaultPort() override;

  Result<std::unique_ptr<PacketPort>> beside(const Eid& eid) override;
  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t metrics(std::span<uint64_t> out) override { return inner_->metrics(out); }
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override { return late_.settled(); }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return inner_->descriptors(); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  Bell* bell() override { return inner_->bell(); }
  DeviceReads* device_reads() override { return inner_->device_reads(); }
  bool only_packets() const override { return true; }
  Time next_arrival() const override;
  VirtualClock* clock() override { return inner_->clock(); }
  void abandon() override { inner_->abandon(); }

 private:
  static constexpr uint32_t frame_count = 512;
  static constexpr uint32_t buffer_count = 4096;
  static constexpr uint32_t buffer_bytes = 9216;

  struct Held {
    Time at;
    uint64_t order;
    uint32_t buffer;
  };
  struct Later {
    bool operator()(const Held& a, const Held& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  using Line = std::priority_queue<Held, std::vector<Held>, Later>;
  struct Packet {
    Endpoint peer;  // its destination, or its source
    uint32_t bytes;
    uint8_t path;
    Ecn ecn;
    uint16_t cci;
    uint8_t switch_queue = 0;
  };
  struct Sent {
    uint64_t until;  // free once the inner port has settled this many frames
    uint32_t buffer;
  };

  uint32_t take_buffer();
  // Returns whether a received frame is in a buffer of this port. Its cookie does not show this,
  // because the inner port may use any cookie.
  bool holds(const RxFrame& frame) const {
    return std::less_equal<>()(storage_.data(), frame.data) &&
           std::less<>()(frame.data, storage_.data() + storage_.bytes());
  }
  std::byte* bytes_of(uint32_t buffer) { return storage_.data() + size_t{buffer} * buffer_bytes; }
  void hold(Line& line, Time at, uint32_t buffer) { line.push({at, order_++, buffer}); }
  void read_due(Time now);
  void impair(const TxFrame& frame, Time now);
  void send_due(Time now);
  void reclaim();
  size_t take_in(std::span<RxFrame> frames, Time now);

  std::unique_ptr<PacketPort> inner_;
  const Settings settings_;
  uint64_t beside_ = 0;  // ports that were opened so
  PortFacts facts_;
  Prng prng_;
  FramePool pool_{frame_count};
  LateFrames late_;  // frames taken and not settled yet
  Region storage_;
  std::vector<Packet> packets_;
  std::vector<uint32_t> free_;
  Line out_;
  Line in_;
  ImpairedLine out_line_;
  ImpairedLine in_line_;
  std::vector<Sent> sent_;  // a ring of buffers that the inner port may still read
  size_t sent_first_ = 0;
  size_t sent_count_ = 0;
  uint64_t inner_taken_ = 0;
  uint64_t order_ = 0;
  uint64_t injected_ = 0;
};

}  // namespace urma::drivers::fault
