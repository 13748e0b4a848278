// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "drivers/frame_pool.h"
#include "drivers/link/attachment.h"
#include "drivers/packet_port.h"

namespace urma::drivers::link {

// The options of link(...).
struct Settings {
  Endpoint at;       // the switch
  uint32_t cna = 0;  // 0: any
  uint8_t service_level = 0;
  bool per_packet = false;  // switches may send packets of a channel over different paths
  Duration most_late = std::chrono::milliseconds(1);  // how late this process may run
  SettingList options = {};
};

// A port to a UB switch, over the port that it owns: puts NTH in front of each packet, and takes it
// off again. Only the thread that runs the engine calls it, except for `open` and the destructor.
class LinkPort final : public PacketPort {
 public:
  // Attaches to the switch, which may take seconds. Errors: peer_unreachable (no answer),
  // address_in_use (the CNA is taken), no_resources (no port is left), version_mismatch.
  static Result<std::unique_ptr<PacketPort>> open(std::unique_ptr<PacketPort> inner,
                                                  const Settings& settings);
  ~LinkPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override;
  size_t metrics(std::span<uint64_t> out) override { return inner_->metrics(out); }
  size_t lend(std::span<TxFrame*> frames) override { return pool_.lend(frames); }
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override;
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override { return inner_->descriptors(); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  Bell* bell() override { return inner_->bell(); }
  DeviceReads* device_reads() override { return inner_->device_reads(); }
  bool only_packets() const override { return true; }
  Time next_arrival() const override;
  void abandon() override;

 private:
  static constexpr uint32_t frame_count = 512;
  static constexpr size_t burst = 64;
  // Messages to the switch that have not settled, at most.
  static constexpr uint32_t most_messages = 32;
  static constexpr uint32_t most_received = 2048;  // frames that are not released

  // A frame that the inner port has not settled yet: a message to the switch, or a packet whose
  // headers are in `frame`.
  struct Kept {
    uint64_t number;  // it has settled when the inner port has settled more frames than this
    TxFrame* frame;   // a message to the switch has none
  };
  struct Received {
    RxFrame inner;
    Endpoint from;
  };

  LinkPort(std::unique_ptr<PacketPort> inner, const Settings& settings, Time now);
  Result<void> attach();
  void fill_facts(const Settings& settings);
  void put_head(const TxFrame& from, TxFrame& to);
  void keep(const Kept& kept);
  void send_due_message(Time now);
  bool send_message(const LinkControl& message, Time now);
  bool unwrap(const RxFrame& frame, RxFrame& out, Time now);

  std::unique_ptr<PacketPort> inner_;
  const Endpoint switch_;
  const uint8_t service_level_;
  const bool per_packet_;
  PortFacts facts_;
  Attachment attachment_;
  FramePool pool_{frame_count};
  std::array<Kept, frame_count + most_messages> kept_;  // a ring, in the order of `number`
  size_t kept_first_ = 0;
  size_t kept_count_ = 0;
  uint64_t inner_taken_ = 0;
  uint64_t messages_sent_ = 0;  // to the switch, for which the engine has lent no frame
  uint64_t messages_settled_ = 0;
  std::vector<Received> received_;
  std::vector<uint32_t> free_;  // of received_
  uint64_t not_packets_ = 0;    // frames of the inner port that are not handed on
  uint64_t malformed_ = 0;
  uint64_t refused_ = 0;  // frames sent while the switch refuses this device
  bool abandoned_ = false;
};

}  // namespace urma::drivers::link
