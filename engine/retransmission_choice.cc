// SPDX-License-Identifier: Apache-2.0
#include "engine/retransmission_choice.h"

#include <bit>

namespace urma::engine {
namespace {

using Scope = Retransmission::Scope;
using Trigger = Retransmission::Trigger;
using Rto = Retransmission::Rto;

constexpr Duration least_base = std::chrono::microseconds(4);
// With a longer time-out, few retransmissions would fit into the 1 s after which a silent peer
// counts as lost (docs/protocol.md 6).
constexpr Duration most_base = std::chrono::milliseconds(200);
// Peers may delay acknowledgements for this long (docs/protocol.md 7).
constexpr Duration least_sensible_base = std::chrono::microseconds(200);
constexpr Duration most_ack_delay = std::chrono::milliseconds(10);
constexpr uint8_t most_exponent = 8;

std::string objection_to_time_out(const Retransmission& mode) {
  if (mode.rto == Rto::measured) {
    return mode.rto_base < Duration{} ? "rto_base is negative. Fix: leave it out" : "";
  }
  if (mode.rto_base < least_base || mode.rto_base > most_base) {
    return "rto_base is not within 4 us to 200 ms. Fix: choose a value from 4 us to 200 ms, or "
           "Rto::measured";
  }
  if (mode.rto_exponent > most_exponent) return "rto_exponent is above 8. Fix: choose 0 to 8";
  return {};
}

std::string objection_to_sizes(const Retransmission& mode) {
  if (mode.window_packets < 1 || mode.window_packets > 2048) {
    return "window_packets is out of range. Fix: choose 1 to 2048";
  }
  if (mode.bitmap_bits < 64 || mode.bitmap_bits > 1024 || !std::has_single_bit(mode.bitmap_bits)) {
    return "bitmap_bits is invalid. Fix: choose 64, 128, 256, 512 or 1024";
  }
  if (mode.ack_packets < 1 || mode.ack_packets > 1024 || mode.ack_delay < Duration{} ||
      mode.ack_delay > most_ack_delay) {
    return "ack_packets or ack_delay is out of range, so acknowledgements would be too late. Fix: "
           "choose ack_packets from 1 to 1024, and ack_delay up to 10 ms";
  }
  return {};
}

}  // namespace

Retransmission retransmission_for(const drivers::PortFacts& port) {
  Retransmission mode = sel_rack;
  // If packets overtake one another on this medium, an overtaken packet is not a lost one.
  if (port.reorders) mode.reorder_packets = 0;
  return mode;
}

std::string objection(const Retransmission& mode, const drivers::PortFacts& port) {
  if (!is_valid(mode.scope) || !is_valid(mode.trigger) || !is_valid(mode.rto)) {
    return "its scope, trigger or rto has a value that its enumeration does not have. Fix: use "
           "sel_rack, or another of named_retransmissions()";
  }
  if (mode.scope == Scope::go_back_n && mode.trigger == Trigger::rack) {
    return "rack needs to know which packets have arrived, which go-back-N does not report. Fix: "
           "choose sel-rack or gbn-fast";
  }
  if (mode.scope == Scope::selective && !mode.keeps_out_of_order) {
    return "selective retransmission needs a peer that keeps packets out of order. Fix: set "
           "keeps_out_of_order, or choose gbn-fast";
  }
  // UB 4.4.11
  if (port.reorders && mode.scope == Scope::go_back_n && mode.trigger == Trigger::fast) {
    return "gbn-fast sends a whole window again for each packet that is overtaken, and packets "
           "overtake one another on this medium. Fix: choose sel-rack or gbn-timeout";
  }
  if (port.reorders && !mode.keeps_out_of_order) {
    return "packets overtake one another on this medium, and each that arrives early would be "
           "dropped. Fix: set keeps_out_of_order, or choose sel-rack";
  }
  if (std::string why = objection_to_time_out(mode); !why.empty()) return why;
  return objection_to_sizes(mode);
}

std::string warning(const Retransmission& mode, const drivers::PortFacts& port) {
  if (port.lossless) return "this medium loses nothing, so no mode retransmits anything";
  if (port.reorders && mode.trigger == Trigger::fast) {
    return "packets overtake one another on this medium, and each that is overtaken is sent again; "
           "sel-rack and the timeout modes wait";
  }
  if (mode.rto != Rto::measured && mode.rto_base < least_sensible_base) {
    return "peers may delay acknowledgements by 100 us and more, so the last packets are sent "
           "again before these arrive; a longer rto_base avoids that";
  }
  if (mode.trigger == Trigger::timeout) {
    return "each loss stops the channel for a time-out; sel-rack avoids that";
  }
  if (mode.scope == Scope::go_back_n) {
    return "each loss sends all packets of a round trip again; sel-rack sends one";
  }
  return {};
}

}  // namespace urma::engine
