// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/receipts.h"

namespace urma::transport {

Receipts::HoleAnswer Receipts::hole_answer(const Retransmission& peers_mode) {
  const bool timeout = peers_mode.trigger == Retransmission::Trigger::timeout;
  if (peers_mode.scope == Retransmission::Scope::go_back_n) {
    return timeout ? HoleAnswer::none : HoleAnswer::negative;
  }
  return timeout ? HoleAnswer::selective_owed : HoleAnswer::selective;
}

Receipts::Arrival Receipts::receive(const Rtph& header, const Retransmission& mode, Time now,
                                    Pool& pool) {
  const Psn psn = number_of(header);
  const bool hole_before = received_.has_hole();
  const Arrival arrival = received_.receive(psn, pool);
  if (header.ack_request) ack_now_ = true;
  switch (arrival) {
    case Arrival::fresh:
      psn < received_.expected() ? arrived_in_order(hole_before, mode, now)
                                 : kept_out_of_order(mode, now);
      break;
    case Arrival::duplicate:
      // UB 4.4.3, UB 4.4.12: the sender has not received the acknowledgement and sends packets
      // again. The acknowledgement is repeated, and so may be a TPNAK for the next hole.
      nak_sent_ = false;
      ack_now_ = true;
      break;
    case Arrival::no_memory:
      // One TPNAK makes the sender start again at the hole, whatever its mode.
      dropped(psn, true);
      break;
    case Arrival::not_kept:
      dropped(psn, hole_answer_ == HoleAnswer::negative);
      break;
    case Arrival::invalid:
      break;
  }
  return arrival;
}

void Receipts::arrived_in_order(bool hole_before, const Retransmission& mode, Time now) {
  // UB 4.3.11: a TPACK is owed for it. After that, a TPNAK may report the next hole.
  owe(mode, now);
  nak_sent_ = false;
  nak_due_ = nak_due_ && (received_.has_hole() || highest_dropped_ >= received_.expected());
  // If this filled the last hole, the sender is notified immediately; if a hole remains, only when
  // the sender acts on each TPSACK.
  if (hole_before) {
    ack_now_ = ack_now_ || !received_.has_hole() || hole_answer_ == HoleAnswer::selective;
  }
}

void Receipts::kept_out_of_order(const Retransmission& mode, Time now) {
  switch (hole_answer_) {
    case HoleAnswer::none:  // UB 4.4.5
      return;
    case HoleAnswer::negative:  // UB 4.4.2: once
      nak_due_ = !nak_sent_;
      return;
    case HoleAnswer::selective_owed:  // UB 4.4.9
      return owe(mode, now);
    case HoleAnswer::selective:  // UB 4.4.7
      owe(mode, now);
      ack_now_ = true;
  }
}

void Receipts::dropped(Psn psn, bool answered) {
  highest_dropped_ = std::max(highest_dropped_, psn);
  if (answered) nak_due_ = !nak_sent_;
}

void Receipts::owe(const Retransmission& mode, Time now) {
  if (owed_++ == 0) owed_since_ = now;
  if (owed_ >= mode.ack_packets) ack_now_ = true;
}

size_t Receipts::write(Rtph header, const Retransmission& mode, std::span<std::byte> out,
                       Pool& pool, size_t report_bytes) {
  const bool selective =
      !nak_due_ && received_.has_hole() &&
      (hole_answer_ == HoleAnswer::selective || hole_answer_ == HoleAnswer::selective_owed);
  const bool reports = report_bytes > 0;
  const TpOpcode plain = reports ? TpOpcode::ack_cc : TpOpcode::ack;
  const TpOpcode with_bitmap = reports ? TpOpcode::selective_ack_cc : TpOpcode::selective_ack;
  header.opcode = static_cast<uint8_t>(selective ? with_bitmap : plain);
  // UB 4.3.7, UB 4.3.8: TPACK.PSN is the last packet received in order, TPNAK.PSN the first one
  // that is missing.
  header.psn = (received_.expected() - 1).wire();
  if (nak_due_) {
    header.status = static_cast<uint8_t>(TpStatus::completer_error);
    header.info = psn_error;
    header.psn = received_.expected().wire();
  }
  header.emit(out.first<Rtph::size>());
  size_t bytes = Rtph::size + report_bytes;
  if (selective) bytes += received_.selective(mode.bitmap_bits, pool).emit(out.subspan(bytes));
  // UB 4.4.2: one TPNAK until the next TPACK. A TPACK that only answers an ACK request does not
  // permit another TPNAK: it would arrive while the sender still acts on the first.
  nak_sent_ = nak_sent_ || nak_due_;
  nak_due_ = ack_now_ = false;
  owed_ = 0;
  return bytes;
}

}  // namespace urma::transport
