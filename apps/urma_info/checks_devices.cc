// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/checks.h"
#include "apps/urma_info/split_error.h"

namespace urma::apps::info {
namespace {

Finding check_device(const Host& host, const std::string& device) {
  const Result<void> opened = host.open(device);
  if (opened) return ok("opens");
  const SplitError error = split_error(opened.error().message);
  return fix("does not open: " + error.what, error.fix);
}

}  // namespace

Finding check_window_device(const Host& host) {
  return check_device(host, std::string(default_device));
}

Finding check_network_device(const Host& host) { return check_device(host, "udp:"); }

}  // namespace urma::apps::info
