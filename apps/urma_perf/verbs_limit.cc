// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/verbs_limit.h"

#include "apps/common/failure.h"

namespace urma::apps::perf {

VerbsLimit::VerbsLimit(Side& side, Place place, std::string_view device) : PortLimit(side, place) {
  auto port = drivers::verbs::open_raw_port(innermost_device(device));
  if (!port) throw Failure(Exit::error, "--limit: " + port.error().message);
  port_ = std::move(*port);
}

void VerbsLimit::meet(const std::string& told) {
  if (auto met = port_->connect(told); !met) {
    throw Failure(Exit::error, "--limit: " + met.error().message);
  }
}

std::string VerbsLimit::pattern() const {
  return bandwidth() ? "verbs bursts, CRC" : "verbs ping-pong";
}

std::string VerbsLimit::why_silent() const {
  return "bare datagrams do not come back from the server. Fix: verbs: devices at both ends, on "
         "adapters of one network, or leave --limit out";
}

}  // namespace urma::apps::perf
