// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "apps/urma_info/finding.h"
#include "apps/urma_info/host.h"

namespace urma::apps::info {

// One check of a machine, with the name that is printed.
struct Check {
  std::string_view name;
  Finding (*run)(const Host& host);
};
std::span<const Check> all_checks();

// ---- checks_devices.cc: devices that a program would open first
Finding check_window_device(const Host& host);
Finding check_network_device(const Host& host);

// ---- checks_dpdk.cc: ports of DPDK, and what NICs need
Finding check_dpdk(const Host& host);

// ---- checks_verbs.cc: RDMA adapters
Finding check_verbs(const Host& host);

// ---- checks_files.cc: files by which processes find each other
Finding check_shared_memory(const Host& host);
Finding check_window_file(const Host& host);
Finding check_names(const Host& host);
Finding check_stale_files(const Host& host);
Finding check_dax(const Host& host);

// ---- checks_memory.cc
Finding check_huge_pages(const Host& host);
Finding check_locked_memory(const Host& host);
Finding check_address_space(const Host& host);

// ---- checks_limits.cc: limits of the process and its container
Finding check_open_files(const Host& host);
Finding check_processes(const Host& host);
Finding check_container_memory(const Host& host);
Finding check_container_processors(const Host& host);

// ---- checks_processors.cc
Finding check_processors(const Host& host);
Finding check_clock(const Host& host);

// ---- checks_network.cc
Finding check_interfaces(const Host& host);
Finding check_socket_buffers(const Host& host);
Finding check_kernel(const Host& host);

}  // namespace urma::apps::info
