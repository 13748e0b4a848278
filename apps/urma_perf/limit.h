#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/raw.h"
#include "apps/urma_perf/side.h"

namespace urma::perf {

// The medium by which a device moves bytes: it decides which limit the device is compared with.
enum class LimitKind : uint8_t { sockets, shared_memory };

// By the driver of a device string, which is what a description begins with, too: wrappers of a
// driver ("fault(loss=5%):udp:") change nothing.
LimitKind limit_kind(std::string_view device);

// One side's part in the raw loop that a case is compared with: same two processes, same memory,
// same spinning, same amount of data the same way, nothing of liburma.
//
//   half_round_trip      n bytes there, n back
//   post_to_completion   a write: n there, an acknowledgement's worth back; a read the other way
//   bandwidth            as fast as they go from the side whose bytes move; what arrived is counted
class Limit {
 public:
  virtual ~Limit() = default;

  // The text that the other side needs, for a setup and its answer.
  virtual std::string told() const = 0;
  // The server's first. Nothing is sent before both have met.
  virtual void meet(const std::string& told) = 0;
  // Which loop it is, for people.
  virtual std::string pattern() const = 0;
  // Nothing came back: why, and the cure.
  virtual std::string why_silent() const = 0;

  // A round begins. The server's first.
  virtual void begin() = 0;
  // This side's part, in turns with whatever else the process has to do.
  virtual void run(int64_t until) = 0;

  const Histogram& round_trips() const { return round_trips_; }
  // Bandwidth: where it is this side that receives.
  virtual bool receives() const = 0;
  virtual RawTally tally() const = 0;

 protected:
  Histogram round_trips_;
};

// `address`: the device's.
std::unique_ptr<Limit> make_limit(LimitKind kind, Side& side, Place place, const Eid& address);

}  // namespace urma::perf
