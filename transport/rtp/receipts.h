// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "transport/rtp/received_window.h"
#include "transport/rtp/waits.h"
#include "urma/core/retransmission.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// Records which acknowledgement a receiver owes the sender for the packets that have arrived, and
// when it is due. One acknowledgement serves for several packets, so most are delayed; a packet
// that asks for an acknowledgement, or shows a hole, may make it due immediately.
//
// It does not know what packets contain, over which route they came, or how a frame is addressed.
// `Tp` owns it and passes what all channels share: the mode, whose fields "how this end receives"
// matter here, and the pool of bitmaps. Only the thread that runs the engine calls it.
class Receipts {
 public:
  using Arrival = ReceivedWindow::Arrival;
  using Pool = ReceivedWindow::Pool;

  // `peers_mode`: how the sender retransmits, and so which answer to a hole is of use to it.
  Receipts(Psn first, const Retransmission& mode, const Retransmission& peers_mode)
      : received_(first, std::min(mode.window_packets, ReceivedWindow::max_window),
                  peers_mode.keeps_out_of_order),
        hole_answer_(hole_answer(peers_mode)) {}

  // Returns whether all packets before this data packet have arrived.
  bool in_order(const Rtph& header) const { return number_of(header) == received_.expected(); }
  // Returns whether `receive` would return `fresh`.
  bool is_fresh(const Rtph& header, Pool& pool) const {
    return received_.classify(number_of(header), pool) == Arrival::fresh;
  }
  // Notes the arrival of a data packet and what is owed for it.
  Arrival receive(const Rtph& header, const Retransmission& mode, Time now, Pool& pool);
  // Returns whether a packet is missing that others, which were kept, have overtaken.
  bool has_hole() const { return received_.has_hole(); }

  // Returns whether an acknowledgement has to leave now. `waits` and `rtt`, the round trip, say how
  // long it is delayed if the mode does not.
  bool due(const Retransmission& mode, const Waits& waits, Duration rtt, Time now) const {
    return ack_now_ || nak_due_ || now >= deadline(mode, waits, rtt);
  }
  // Returns when a delayed acknowledgement becomes due; `never` if none is delayed.
  Time deadline(const Retransmission& mode, const Waits& waits, Duration rtt) const {
    return owed_ > 0 ? owed_since_ + delay(mode, waits, rtt) : never;
  }
  // Writes the TPACK, TPNAK or TPSACK that reports to the sender what has arrived, and returns its
  // size. After that no acknowledgement is owed. `header`: its TPNs are set. `out`: has room for an
  // RTPH, `report_bytes` and a SAETPH. `report_bytes`: how many bytes behind the RTPH are left to
  // the caller, for a report of congestion.
  size_t write(Rtph header, const Retransmission& mode, std::span<std::byte> out, Pool& pool,
               size_t report_bytes = 0);

  // Gives all memory back to the pool; the owner calls this before it destroys the object.
  void release(Pool& pool) { received_.release(pool); }

 private:
  // The answer to a packet that arrives out of order (UB 4.4): none, a TPSACK when acknowledgements
  // are due, a TPSACK immediately, or a TPNAK.
  enum class HoleAnswer : uint8_t { none, selective_owed, selective, negative };
  static HoleAnswer hole_answer(const Retransmission& peers_mode);
  static Duration delay(const Retransmission& mode, const Waits& waits, Duration rtt) {
    return mode.ack_delay > Duration{} ? mode.ack_delay : waits.ack_delay(rtt);
  }

  // Extends the 24 bits of the header to the PSN in [EPSN - 8M, EPSN + 8M - 1] (UB 4.3.4).
  Psn number_of(const Rtph& header) const {
    return Psn::unwrap(received_.expected() - 1, header.psn);
  }
  void arrived_in_order(bool hole_before, const Retransmission& mode, Time now);
  void kept_out_of_order(const Retransmission& mode, Time now);
  void dropped(Psn psn, bool answered);
  void owe(const Retransmission& mode, Time now);

  // Ordered by size, which keeps an idle channel small.
  ReceivedWindow received_;
  Psn highest_dropped_;  // of packets that arrived out of order and were not kept
  Time owed_since_{};    // when the oldest packet arrived that is not acknowledged
  uint32_t owed_ = 0;    // packets to acknowledge
  const HoleAnswer hole_answer_;
  bool ack_now_ = false;  // an acknowledgement is due immediately
  bool nak_due_ = false;
  bool nak_sent_ = false;  // and since then no packet in order, and no duplicate (UB 4.4.2)
};

}  // namespace urma::transport
