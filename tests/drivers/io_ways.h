// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/driver.h"

namespace urma::test {

// Returns the value in effect of a setting of this port; empty if it has none of this name.
inline std::string setting(const drivers::PacketPort& port, std::string_view name) {
  const auto& all = port.facts().settings;
  const auto found = std::ranges::find(all, name, &Setting::name);
  return found != all.end() ? std::string(found->value) : std::string();
}

// Returns whether the kernel has what the driver needs of io_uring, and permits it to this process.
inline bool kernel_has_uring() {
  utsname system{};
  uname(&system);
  if (std::atoi(system.release) < 6) return false;
  std::array<uint32_t, 30> parameters{};  // struct io_uring_params
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, parameters.data()));
  if (ring >= 0) close(ring);
  return ring >= 0;
}

// Returns the options by which a udp: device has each way of I/O that this machine has: none, and
// io_uring if this build, the system and the kernel have it. A driver that does not use it although
// they do fails the tests.
inline std::vector<std::string> io_ways() {
  const std::string uring = "?io=uring";
  const auto port = drivers::open_port(drivers::parse_device_string("udp:" + uring).value());
  const bool has_library = port.ok() || port.status() != Status::unsupported;
  if (!has_library || !kernel_has_uring()) return {""};
  return {"", uring};
}

}  // namespace urma::test
