// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "transport/ingress.h"
#include "transport/rtp_medium.h"

namespace urma::transport {

// Ingress of a medium that may lose and forge packets: verifies the ICRC of each packet, finds the
// channel by the TPN, and lets the channel judge the packet number. `Transport` owns it.
class RtpIngress final : public Ingress {
 public:
  RtpIngress(const Common& common, const Uses& uses, const OwnPaths& own_paths, Peers& peers,
             Tpns& tpns, RtpMedium& medium)
      : Ingress(common, uses), own_paths_(own_paths), peers_(peers), tpns_(tpns), medium_(medium) {}

  void receive(std::span<const RxFrame> frames, Time now) override;

 private:
  // The channel of the packet before, within a burst, and what showed that.
  struct Latest {
    Tp* channel = nullptr;
    uint32_t source = 0;       // TPN
    uint32_t destination = 0;  // TPN
    const RxFrame* frame = nullptr;

    // Returns whether this packet is one of that channel for the same reasons.
    bool sends(const Rtph& header, const RxFrame& next) const {
      return header.destination == destination && header.source == source &&
             header.next == NextHeader::transaction &&
             header.opcode != static_cast<uint8_t>(TpOpcode::unreliable) &&
             next.path == frame->path && *next.from == *frame->from;
    }
  };

  void take(const RxFrame& frame, Time now);
  void take_datagram(std::span<const std::byte> packet, const RxFrame& frame, Time now);
  void take_for_channel(const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                        Time now);
  void take_for(Tp& tp, const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                Time now);
  void take_data(Tp& tp, const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                 Time now);
  [[gnu::cold]] void answer_unknown(const Rtph& header, const RxFrame& frame, Time now);

  Latest latest_;
  const OwnPaths& own_paths_;
  Peers& peers_;
  Tpns& tpns_;
  RtpMedium& medium_;
  IcrcPrefix prefix_;
};

}  // namespace urma::transport
