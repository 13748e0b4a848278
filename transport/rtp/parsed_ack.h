// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "wire/cetph.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// The contents of a TPACK, TPNAK or TPSACK. It does not know which packets were sent. Tp makes one
// for each acknowledgement that arrives.
struct ParsedAck {
  Psn through{};          // this packet and all before it have arrived
  bool negative = false;  // a TPNAK: the packet after `through` is missing
  // A TPSACK: which packets after `through` have arrived.
  std::optional<Saetph> selective;
  std::optional<HeaderView<LdcpCetph::size>> congestion;  // the report of congestion, if any
  uint8_t queue = 0;                                      // UBQ of its packet; Tp sets it

  // Parses an acknowledgement. `rest` follows the RTPH; `first`: the oldest packet that is not
  // retired. Returns false if the acknowledgement is malformed.
  bool assign(const Rtph& header, std::span<const std::byte> rest, Psn first);
  // Returns the last packet on which it reports.
  Psn reported() const;
};

}  // namespace urma::transport
