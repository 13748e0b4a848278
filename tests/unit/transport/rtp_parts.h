// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/transport/parts.h"
#include "transport/rtp_medium.h"

namespace urma::test {

// The parts over a medium that may lose packets. `paths`: addresses of this device.
class RtpParts : public Parts<transport::RtpMedium> {
 public:
  explicit RtpParts(uint8_t paths = 0, Duration idle_timeout = {})
      : Parts(settings_for(paths, idle_timeout), own_paths) {}

 private:
  static transport::Settings settings_for(uint8_t paths, Duration idle_timeout) {
    transport::Settings out = defaults();
    out.idle_timeout = idle_timeout;
    for (uint8_t i = 0; i < paths; ++i) {
      out.paths.set(i, host(static_cast<uint8_t>(1 + 10 * i)));
    }
    return out;
  }
};

}  // namespace urma::test
