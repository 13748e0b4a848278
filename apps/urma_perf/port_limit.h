// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "apps/urma_perf/limit.h"
#include "drivers/raw_port.h"

namespace urma::apps::perf {

// The limit of a port whose frames this process sends by itself: bare frames over another port of
// the same kind. For each frame of a burst, both ends compute a CRC of its data, as they do for the
// ICRC of a packet. The derived class opens the port, and finds the other end.
class PortLimit : public Limit {
 public:
  PortLimit(Side& side, Place place) : side_(side), place_(place) {}

  void begin() override;
  void run(int64_t until) override;

  bool receives() const override { return bandwidth() && !data_leaves(); }
  RawTally tally() const override { return tally_; }

 protected:
  // Returns the port, once the other end may have been told of it.
  virtual drivers::RawPort& port() = 0;
  Place place() const { return place_; }
  bool bandwidth() const { return side_.what().test->bandwidth(); }

 private:
  // Whether this side has the data of a write or a read.
  bool data_leaves() const { return (place_ == Place::client) != side_.what().test->reads(); }

  void send(std::span<const std::byte> message);
  void drain();
  void ping(int64_t until);
  void pong(int64_t until);
  void send_bursts(int64_t until);
  void receive_bursts(int64_t until);

  Side& side_;
  Place place_;
  drivers::RawPort* port_ = nullptr;  // since `begin`
  std::array<std::byte, 64> acknowledgement_{};
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  size_t got_ = 0;    // received bytes of the present message
  size_t at_ = 0;     // in the memory that bursts come from or go to
  uint32_t crc_ = 0;  // of the data of bursts
  RawTally tally_;
};

}  // namespace urma::apps::perf
