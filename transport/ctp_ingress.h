// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "transport/ctp_medium.h"
#include "transport/ingress.h"

namespace urma::transport {

// Ingress of a medium that loses nothing, over which packets have neither an ICRC nor a number.
// Packets may lie where their sender can still change them, so fields on which a decision depends
// are copied before they are read, or read once. `Transport` owns it.
class CtpIngress final : public Ingress {
 public:
  CtpIngress(const Common& common, const Uses& uses, CtpMedium& medium)
      : Ingress(common, uses), medium_(medium) {}

  void receive(std::span<const RxFrame> frames, Time now) override;

 private:
  using Head = std::array<std::byte, 128>;

  bool take_expected(const RxFrame& frame, Time now);
  void take(const RxFrame& frame, Time now);
  void take_without_channel(std::span<const std::byte> head, const RxFrame& frame, Time now);

  CtpMedium& medium_;
};

}  // namespace urma::transport
