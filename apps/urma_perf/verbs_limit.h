// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "apps/urma_perf/port_limit.h"
#include "drivers/verbs/raw_port.h"

namespace urma::apps::perf {

// The limit of RDMA adapters: datagrams between two queue pairs beside those of the devices.
class VerbsLimit final : public PortLimit {
 public:
  // `device`: a device string, or a description of a device, which begins with one.
  VerbsLimit(Side& side, Place place, std::string_view device);

  std::string told() const override { return port_->address(); }
  void meet(const std::string& told) override;
  std::string pattern() const override;
  std::string why_silent() const override;

 private:
  drivers::RawPort& port() override { return *port_; }

  std::unique_ptr<drivers::verbs::RawDatagramPort> port_;
};

}  // namespace urma::apps::perf
