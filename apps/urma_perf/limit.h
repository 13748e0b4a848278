#pragma once

#include <array>
#include <optional>

#include "apps/urma_perf/raw_udp.h"
#include "apps/urma_perf/side.h"

namespace urma::perf {

// One side's part in the raw loop that a case is compared with: same two processes, same memory,
// same spinning, same amount of data the same way, nothing of liburma.
//
//   half_round_trip      n bytes there, n back
//   post_to_completion   a write: n there, an acknowledgement's worth back; a read the other way
//   bandwidth            bursts from the side whose bytes move; what arrived is counted
class Limit {
 public:
  Limit(Side& side, Place place, const Eid& address);

  Endpoint endpoint() const { return {address_, socket_.port()}; }
  void meet(const Endpoint& other);

  void begin();
  // This side's part, in turns with whatever else the process has to do.
  void run(int64_t until);

  const Histogram& round_trips() const { return round_trips_; }
  // Bandwidth: where it is this side that receives.
  bool receives() const { return receiver_.has_value(); }
  RawTally tally() const { return receiver_ ? receiver_->tally : RawTally{}; }

 private:
  void begin_ping_pong();
  void begin_bursts();

  Side& side_;
  Place place_;
  Eid address_;
  RawSocket socket_;
  std::array<std::byte, 64> acknowledgement_{};
  std::optional<RawPing> ping_;
  std::optional<RawPong> pong_;
  std::optional<RawSender> sender_;
  std::optional<RawReceiver> receiver_;
  Histogram round_trips_;
};

}  // namespace urma::perf
