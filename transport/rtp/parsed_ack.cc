// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/parsed_ack.h"

#include "transport/rtp/loss.h"

namespace urma::transport {

bool ParsedAck::assign(const Rtph& header, std::span<const std::byte> rest, Psn first) {
  negative =
      header.status == static_cast<uint8_t>(TpStatus::completer_error) && header.info == psn_error;
  // UB 4.3.7, UB 4.3.8: TPACK.PSN is the last packet received in order, TPNAK.PSN the first one
  // that is missing.
  through = Psn::unwrap(first, header.psn);
  if (negative) through = through - 1;
  const auto opcode = static_cast<TpOpcode>(header.opcode);
  if (opcode == TpOpcode::ack_cc || opcode == TpOpcode::selective_ack_cc) {
    if (rest.size() < LdcpCetph::size) return false;
    congestion = rest.first<LdcpCetph::size>();
    rest = rest.subspan(LdcpCetph::size);
  }
  if (opcode != TpOpcode::selective_ack && opcode != TpOpcode::selective_ack_cc) return true;
  selective = Saetph::parse(rest);
  return selective.has_value();
}

Psn ParsedAck::reported() const {
  if (!selective) return through;
  return last_reported(through, Psn::unwrap(through, selective->max_received),
                       selective->bit_count);
}

}  // namespace urma::transport
