// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_feed/messages.h"

#include <fstream>
#include <functional>

namespace urma::apps::feed {

uint64_t this_host() {
  static const uint64_t host = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    return std::getline(file, id) ? std::hash<std::string>()(id) | 1 : 0;
  }();
  return host;
}

Stamp stamp_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return {.nanoseconds = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
                         static_cast<uint64_t>(now.tv_nsec),
          .host = this_host()};
}

Wording wording() {
  return {.program = "urma_feed", .most_bytes = max_send_bytes, .shorten = "give a shorter --to"};
}

}  // namespace urma::apps::feed
