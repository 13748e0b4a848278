#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "apps/urma_perf/limit.h"
#include "drivers/dpdk/raw_port.h"

namespace urma::apps::perf {

// The limit of polled ports of DPDK: bare frames over another port of the same kind. For each frame
// of a burst, both ends compute a CRC of its data, as they do for the ICRC of a packet.
class DpdkLimit final : public Limit {
 public:
  // `device`: a device string, or a description of a device, which begins with one.
  DpdkLimit(Side& side, Place place, std::string_view device);

  std::string told() const override { return std::to_string(number_); }
  void meet(const std::string& told) override;
  std::string pattern() const override;
  std::string why_silent() const override;

  void begin() override;
  void run(int64_t until) override;

  bool receives() const override { return bandwidth() && !data_leaves(); }
  RawTally tally() const override { return tally_; }

 private:
  bool bandwidth() const { return side_.what().test->bandwidth(); }
  // Whether this side has the data of a write or a read.
  bool data_leaves() const { return (place_ == Place::client) != side_.what().test->reads(); }

  void open();
  void send(std::span<const std::byte> message);
  void drain();
  void ping(int64_t until);
  void pong(int64_t until);
  void send_bursts(int64_t until);
  void receive_bursts(int64_t until);

  Side& side_;
  Place place_;
  std::string device_;
  uint64_t number_ = 0;
  std::unique_ptr<drivers::dpdk::RawPort> port_;
  std::array<std::byte, 64> acknowledgement_{};
  std::span<const std::byte> out_;
  std::span<std::byte> in_;
  size_t got_ = 0;    // received bytes of the present message
  size_t at_ = 0;     // in the memory that bursts come from or go to
  uint32_t crc_ = 0;  // of the data of bursts
  RawTally tally_;
};

}  // namespace urma::apps::perf
