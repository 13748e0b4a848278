// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/checks.h"

namespace urma::apps::info {

std::span<const Check> all_checks() {
  static constexpr Check table[] = {
      {"device cxl:", check_window_device},
      {"device udp:", check_network_device},
      {"device dpdk:", check_dpdk},
      {"device verbs:", check_verbs},
      {"shared memory", check_shared_memory},
      {"window file", check_window_file},
      {"names", check_names},
      {"stale files", check_stale_files},
      {"dax devices", check_dax},
      {"huge pages", check_huge_pages},
      {"locked memory", check_locked_memory},
      {"address space", check_address_space},
      {"open files", check_open_files},
      {"processes", check_processes},
      {"container memory", check_container_memory},
      {"container cpu", check_container_processors},
      {"processors", check_processors},
      {"clock", check_clock},
      {"interfaces", check_interfaces},
      {"socket buffers", check_socket_buffers},
      {"kernel", check_kernel},
  };
  return table;
}

}  // namespace urma::apps::info
