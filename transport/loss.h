#pragma once

#include "urma/base/time.h"
#include "urma/core/ids.h"

namespace urma::transport {

// What acknowledgements have shown: the basis for calling a packet lost.
struct LossEvidence {
  Psn highest_acknowledged;
  Time newest_acknowledged_sent;  // when the latest-sent acknowledged packet was sent
  Duration reorder_window;        // how much later a packet may arrive than one sent after it
};

inline constexpr int64_t reorder_packets = 3;

// Whether an unacknowledged packet is lost. Of a packet sent once, packets that overtook it are
// evidence, by number or by time; of one sent again only time is, because its number is old.
// (UB 6.4.2 names the holes of a TPSACK; which of them to believe is the sender's.)
constexpr bool is_lost(Psn psn, Time sent, bool again, const LossEvidence& evidence) {
  if (!again && evidence.highest_acknowledged - psn >= reorder_packets) return true;
  return sent + evidence.reorder_window < evidence.newest_acknowledged_sent;
}

}  // namespace urma::transport
