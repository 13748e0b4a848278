// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/devices.h"

#include <fmt/format.h>

#include "apps/common/failure.h"
#include "apps/common/output.h"

namespace urma::apps::perf {

Service service_for(std::string_view test, bool self) {
  return {.name = self ? "urma_perf_self" : "urma_perf",
          .role = "server",
          .serve = self ? fmt::format("urma_perf --self {}", test) : "urma_perf server",
          .ask = fmt::format("urma_perf {}", test)};
}

Device open_device(const std::string& text, const DeviceChoices& choices) {
  DeviceOptions options{.threads = choices.mode.threads,
                        .congestion = choices.congestion,
                        .profile = choices.profile};
  if (choices.retransmit != nullptr) options.retransmission = choices.retransmit->mode;
  Device device = must(urma::open(text, options), "opening the device");
  const std::string description = device.description();
  const size_t warning = description.find("(warning: ");
  if (warning != std::string::npos) print_error(description.substr(warning));
  return device;
}

}  // namespace urma::apps::perf
