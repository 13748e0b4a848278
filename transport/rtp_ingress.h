// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "transport/batch.h"
#include "transport/ingress.h"
#include "transport/rtp_medium.h"

namespace urma::transport {

// Ingress of a medium that may lose and forge packets: verifies the ICRC of each packet, finds the
// channel by the TPN, and lets the channel judge the packet number. `Transport` owns it.
class RtpIngress final : public Ingress {
 public:
  RtpIngress(const Common& common, const Uses& uses, const OwnPaths& own_paths, Peers& peers,
             Tpns& tpns, RtpMedium& medium)
      : Ingress(common, uses),
        batch_(common.sink),
        own_paths_(own_paths),
        peers_(peers),
        tpns_(tpns),
        medium_(medium) {}

  void receive(std::span<const RxFrame> frames, Time now) override;

 private:
  void take(const RxFrame& frame, Time now);
  void take_datagram(std::span<const std::byte> packet, const RxFrame& frame, Time now);
  void take_for_channel(const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                        Time now);
  void take_data(Tp& tp, const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                 Time now);
  [[gnu::cold]] void answer_unknown(const Rtph& header, const RxFrame& frame, Time now);

  // A set-up message may end channels that earlier packets of the burst belong to, so those are
  // delivered first.
  [[gnu::cold]] void take_setup(std::span<const std::byte> packet, const RxFrame& frame, Time now) {
    batch_.deliver(now);
    setup_.handle(packet, *frame.from, frame.path, now);
  }

  Batch batch_;
  const OwnPaths& own_paths_;
  Peers& peers_;
  Tpns& tpns_;
  RtpMedium& medium_;
  IcrcPrefix prefix_;
};

}  // namespace urma::transport
