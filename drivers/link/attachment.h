// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "urma/core/time.h"
#include "wire/link.h"

namespace urma::drivers::link {

// The device's half of attaching: which message it sends to the switch, and when. It keeps the
// first CNA that the switch gives to it, because the address of a port never changes. It does no
// I/O, and does not know where the switch is. LinkPort owns it; used by one thread at a time.
class Attachment {
 public:
  struct Settings {
    uint32_t cna = 0;  // 0: any
    uint8_t mtu_log2 = 10;
    uint64_t nonce = 0;  // another one for each opening of a port
  };
  enum class State : uint8_t { asking, attached, refused };

  Attachment(const Settings& settings, Time now) : settings_(settings), next_(now) {}

  State state() const { return state_; }
  uint32_t cna() const { return settings_.cna; }  // 0 until the switch has given one
  LinkRefusal refusal() const { return refusal_; }
  // Facts of the switch, once attached. One that was restarted may have other ones.
  uint8_t mtu_log2() const { return mtu_log2_; }
  congestion::Metering metering() const { return metering_; }
  uint64_t bytes_per_second() const { return bytes_per_second_; }  // 0: not known, or unlimited

  // Takes a message of the switch.
  void handle(const LinkControl& message, Time now);
  // Returns the message that is to leave now, if one is due.
  std::optional<LinkControl> due(Time now);
  // Returns when the next message is due.
  Time next() const { return next_; }
  // Returns the message that gives the CNA back.
  LinkControl farewell() const { return message_of(LinkMessage::detach); }

 private:
  static constexpr Duration ask_again = std::chrono::milliseconds(100);
  static constexpr Duration least_gap = std::chrono::milliseconds(10);  // between two messages
  static constexpr int asks_in_a_lease = 4;

  LinkControl message_of(LinkMessage type) const;
  void attached(const LinkControl& message, Time now);

  Settings settings_;
  State state_ = State::asking;
  LinkRefusal refusal_ = LinkRefusal::none;  // the switch's latest answer, if it refused
  uint8_t mtu_log2_ = 0;                     // of the switch's port; 0 until it has answered
  congestion::Metering metering_ = congestion::Metering::unknown;  // of the switch's port
  uint64_t bytes_per_second_ = 0;                                  // of the switch's port
  uint64_t cookie_ = 0;                                            // to be sent back to the switch
  Time sent_ = Time::min();                                        // of the latest message
  Time next_;                                                      // time of the next message
  Time lease_ends_ = Time::min();  // if the switch answers nothing until then, it has forgotten us
};

}  // namespace urma::drivers::link
