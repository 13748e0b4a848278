// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/raw.h"
#include "apps/urma_perf/side.h"

namespace urma::apps::perf {

// The medium by which a device moves bytes: it decides which limit the device is compared with.
enum class LimitKind : uint8_t { sockets, shared_memory, polled_port, rdma_adapter };

// Decides by the driver of a device string. A device's description begins with the same word.
// Wrappers of a driver ("fault(loss=5%):udp:") change nothing.
LimitKind limit_kind(std::string_view device);
// Returns the device string without its wrappers, and without what a description adds to it.
std::string_view innermost_device(std::string_view device);

// One side's part in the raw loop that a case is compared with. The loop has the same two
// processes, memory and spinning, and moves the same amount of data in the same way, but without
// liburma.
//
//   half_round_trip      n bytes to the server, and n bytes back
//   post_to_completion   a write: n bytes to the server, and an acknowledgement back; a read: the
//                        reverse
//   bandwidth            bytes as fast as possible from the side that has them; the arrivals count
class Limit {
 public:
  virtual ~Limit() = default;

  // Returns the text that the other side needs. It is sent in a setup or its answer.
  virtual std::string told() const = 0;
  // Connects to the other side. The server calls it first. Nothing is sent before both have called
  // it.
  virtual void meet(const std::string& told) = 0;
  // Returns the name of the loop, for people.
  virtual std::string pattern() const = 0;
  // Returns why nothing came back, and the cure.
  virtual std::string why_silent() const = 0;

  // Begins a round. The server calls it first.
  virtual void begin() = 0;
  // Runs this side's part, in turns with the other tasks of the process.
  virtual void run(int64_t until) = 0;

  const Histogram& round_trips() const { return round_trips_; }
  // For bandwidth: returns whether this side receives.
  virtual bool receives() const = 0;
  virtual RawTally tally() const = 0;

 protected:
  Histogram round_trips_;
};

// Makes the limit with which this device is compared.
std::unique_ptr<Limit> make_limit(const Device& device, Side& side, Place place);
std::unique_ptr<Limit> make_limit(LimitKind kind, const Device& device, Side& side, Place place);

}  // namespace urma::apps::perf
