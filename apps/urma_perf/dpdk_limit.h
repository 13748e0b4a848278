// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "apps/urma_perf/port_limit.h"
#include "drivers/dpdk/raw_port.h"

namespace urma::apps::perf {

// The limit of ports of DPDK. Both ends open a port beside that of their device, by the same
// number.
class DpdkLimit final : public PortLimit {
 public:
  // `device`: a device string, or a description of a device, which begins with one.
  DpdkLimit(Side& side, Place place, std::string_view device);

  std::string told() const override { return std::to_string(number_); }
  void meet(const std::string& told) override;
  std::string pattern() const override;
  std::string why_silent() const override;

 private:
  drivers::RawPort& port() override;
  void open();

  std::string device_;
  uint64_t number_ = 0;
  std::unique_ptr<drivers::RawPort> port_;
};

}  // namespace urma::apps::perf
