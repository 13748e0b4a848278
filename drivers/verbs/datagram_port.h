// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/region.h"
#include "drivers/packet_port.h"
#include "drivers/verbs/adapter.h"
#include "drivers/verbs/address_book.h"
#include "drivers/verbs/datagram_queue.h"
#include "drivers/verbs/registered.h"
#include "drivers/verbs/reliable_ends.h"
#include "drivers/verbs/resolver.h"

namespace urma::drivers::verbs {

// A packet port over one queue pair for datagrams. Frames and receive buffers are in memory that is
// registered at open. A packet is one datagram: a front with the sender's service id, then the
// packet, gathered from registered segments or copied behind its head. Owns all objects of the
// adapter. Only the thread that runs the engine calls it, except for `open` and the destructor.
class DatagramPort final : public PacketPort {
 public:
  // Errors: those of urma::open.
  static Result<std::unique_ptr<PacketPort>> open(const Settings& settings);
  ~DatagramPort() override;

  const PortFacts& facts() const override { return facts_; }
  PortCounters counters() const override { return counters_; }
  size_t lend(std::span<TxFrame*> frames) override;
  size_t send(std::span<TxFrame* const> frames, Time now) override;
  void unlend(std::span<TxFrame* const> frames) override;
  uint64_t settled() override { return settled_; }
  size_t receive(std::span<RxFrame> frames, Time now) override;
  void release(std::span<const RxFrame> frames) override;
  std::span<const int> descriptors() const override {
    return std::span(descriptors_).first(objects_->ends ? 3 : 2);
  }
  void arm() override;
  void disarm() override;
  Time next_arrival() const override;
  DeviceReads* device_reads() override {
    return gathers_ || objects_->ends ? &objects_->segments : nullptr;
  }
  RemoteAccess* remote_access() override { return objects_->ends.get(); }

 private:
  static constexpr uint32_t frame_count = 512;
  static constexpr uint32_t receive_count = 1024;
  static constexpr size_t burst = 64;
  static constexpr size_t most_waiting = 256;
  static constexpr ptrdiff_t most_waiting_for_one = 64;

  struct Frame : TxFrame {
    uint64_t number = 0;  // of those that `send` has taken, when it was posted
  };
  // A packet whose destination is not known yet, all of it behind its head.
  struct Waiting {
    Frame* frame;
    Time until;
  };
  struct Buffer {
    Endpoint from;
    bool lent = false;
  };
  // All that belongs to the adapter, in the order in which it is made.
  struct Objects {
    Objects(Adapter opened, bool opens) : adapter(std::move(opened)), segments(adapter, opens) {}

    Adapter adapter;
    Region memory;
    Memory registered;
    RegisteredSegments segments;
    std::optional<DatagramQueue> queue;
    std::unique_ptr<Resolver> resolver;
    std::optional<AddressBook> book;
    std::unique_ptr<ReliableEnds> ends;  // null without them
  };
  struct Batch;

  DatagramPort(std::unique_ptr<Objects> objects, const Settings& settings);
  void state_facts();
  void state_settings(const Settings& settings);

  std::byte* buffer_at(uint32_t index) const;
  void pass(Frame& frame, Time now);
  void keep_waiting(Frame& frame, Time now);
  void lay(Frame& frame, const Destination& to);
  void begin_work(Frame& frame, const Destination& to);
  bool gather(const Frame& frame);
  void add_whole(const Frame& frame);
  void flush();
  void send_waiting(Time now);
  void settle();
  void post_buffers(std::span<const uint32_t> indices);
  void post_all_buffers();
  bool take_in(const ibv_wc& completion, RxFrame& out, Time now);
  void end_sends();
  void restart();
  void tend(Time now);

  // The front of a datagram: a mark, the sender's service id, and four zero bytes.
  static constexpr size_t front_bytes = 8;

  const pid_t opener_ = getpid();
  std::unique_ptr<Objects> objects_;
  std::array<int, 3> descriptors_;
  const bool gathers_;
  const unsigned most_parts_;  // of a gathered packet
  const size_t slot_bytes_;    // of a frame
  const size_t buffer_bytes_;  // of a received datagram
  const size_t largest_;       // packet
  PortFacts facts_;
  PortCounters counters_;
  uint32_t generation_ = 0;  // of the queue pair: it grows when that is reset
  bool gone_ = false;        // the adapter

  // Sending.
  RegionArray<Frame> frames_{frame_count};
  std::vector<Frame*> free_;
  std::unique_ptr<Batch> batch_;
  std::array<Frame*, frame_count> posted_{};  // a ring, in the order of posting
  uint64_t posted_first_ = 0;
  uint64_t posted_end_ = 0;
  std::vector<Waiting> waiting_;
  uint64_t taken_ = 0;
  uint64_t settled_ = 0;

  // Receiving.
  std::array<Buffer, receive_count> buffers_;
  Time received_at_{};  // the time of the last `receive`
};

}  // namespace urma::drivers::verbs
