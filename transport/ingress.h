#pragma once

#include <array>
#include <span>

#include "transport/ctp_medium.h"
#include "transport/datagrams.h"
#include "transport/rtp_medium.h"
#include "transport/setup.h"

namespace urma::transport {

// Gathers packets of one burst for the layer above, which then takes them in few calls. It does not
// check packets. `Ingress` owns it; only the thread that runs the engine calls it.
class Batch {
 public:
  static constexpr size_t capacity = 64;

  explicit Batch(PacketSink& sink) : sink_(sink) {}

  // The next packet is put together here, and belongs to the batch once `add` is called.
  Received& next() { return packets_[count_]; }
  size_t index() const { return count_; }
  // Returns whether the layer above takes `next`.
  bool admits() { return sink_.admits(packets_[count_], count_); }
  void add(Time now) {
    if (++count_ == capacity) deliver(now);
  }
  void deliver(Time now) {
    if (count_ == 0) return;
    sink_.accept(std::span(packets_).first(std::exchange(count_, 0)), now);
  }

 private:
  PacketSink& sink_;
  std::array<Received, capacity> packets_;
  size_t count_ = 0;
};

// Takes received packets: verifies each packet, finds its channel, and hands it to the channel, to
// set-up, or as a datagram to the layer above. There is one class for each medium, which contains
// the loop over the burst. Packets that are dropped are counted by reason. Only the thread that
// runs the engine calls it.
class Ingress {
 public:
  struct Uses {
    Links& links;
    Setup& setup;
    Datagrams& datagrams;
  };
  virtual ~Ingress() = default;
  Ingress(const Ingress&) = delete;
  Ingress& operator=(const Ingress&) = delete;

  virtual void receive(std::span<const RxFrame> frames, Time now) = 0;

 protected:
  Ingress(const Common& common, const Uses& uses)
      : sink_(common.sink),
        counters_(common.counters),
        links_(uses.links),
        setup_(uses.setup),
        datagrams_(uses.datagrams),
        batch_(common.sink) {}

  // A set-up message may end channels that earlier packets of the burst belong to, so those are
  // delivered first.
  [[gnu::cold]] void take_setup(std::span<const std::byte> packet, const RxFrame& frame, Time now) {
    batch_.deliver(now);
    setup_.handle(packet, *frame.from, frame.path, now);
  }

  PacketSink& sink_;
  Counters& counters_;
  Links& links_;
  Setup& setup_;
  Datagrams& datagrams_;
  Batch batch_;
};

// Ingress of a medium that may lose and forge packets: verifies the ICRC of each packet, finds the
// channel by the TPN, and lets the channel judge the packet number. `Transport` owns it.
class RtpIngress final : public Ingress {
 public:
  RtpIngress(const Common& common, const Uses& uses, const OwnPaths& own_paths, Peers& peers,
             Tpns& tpns, RtpMedium& medium)
      : Ingress(common, uses), own_paths_(own_paths), peers_(peers), tpns_(tpns), medium_(medium) {}

  void receive(std::span<const RxFrame> frames, Time now) override;

 private:
  void take(const RxFrame& frame, Time now);
  void take_datagram(std::span<const std::byte> packet, const RxFrame& frame, Time now);
  void take_for_channel(const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                        Time now);
  void take_data(Tp& tp, const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                 Time now);
  [[gnu::cold]] void answer_unknown(const Rtph& header, const RxFrame& frame, Time now);

  const OwnPaths& own_paths_;
  Peers& peers_;
  Tpns& tpns_;
  RtpMedium& medium_;
  IcrcPrefix prefix_;
};

// Ingress of a medium that loses nothing, over which packets have neither an ICRC nor a number.
// Packets may lie where their sender can still change them, so fields on which a decision depends
// are copied before they are read. `Transport` owns it.
class CtpIngress final : public Ingress {
 public:
  CtpIngress(const Common& common, const Uses& uses, CtpMedium& medium)
      : Ingress(common, uses), medium_(medium) {}

  void receive(std::span<const RxFrame> frames, Time now) override;

 private:
  static constexpr size_t head_bytes = 128;
  using Head = std::array<std::byte, head_bytes>;

  void take(const RxFrame& frame, Time now);
  void take_without_channel(std::span<const std::byte> head, const RxFrame& frame, Time now);

  CtpMedium& medium_;
  std::array<Head, Batch::capacity> heads_;  // of the packets in the batch
};

}  // namespace urma::transport
