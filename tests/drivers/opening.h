// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "drivers/driver.h"
#include "tests/catch.h"

namespace urma::test {

inline Result<std::unique_ptr<drivers::PacketPort>> try_open_port(std::string_view text) {
  const auto device = drivers::parse_device_string(text);
  if (!device) return device.error();
  return drivers::open_port(*device);
}

// Tries to open the device, which must fail with one cure and a message that contains `says`.
inline void check_refused(const std::string& device, Status status, std::string_view says) {
  INFO(device);
  const auto port = try_open_port(device);
  REQUIRE_FALSE(port.ok());
  INFO(port.error().message);
  CHECK(port.status() == status);
  CHECK(port.error().message.find(says) != std::string::npos);
  const size_t fix = port.error().message.find("Fix: ");
  CHECK(fix != std::string::npos);
  CHECK(port.error().message.find("Fix: ", fix + 1) == std::string::npos);
}

}  // namespace urma::test
