// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/machine.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/common/failure.h"

namespace urma::apps::perf {
namespace {

// Set if this process bound its threads: then the other side runs on another processor.
std::atomic<bool> pinned{false};

// The second field of a schedstat file.
int64_t wait_in(const std::filesystem::path& schedstat) {
  std::ifstream in(schedstat);
  int64_t ran = 0;
  int64_t waited = 0;
  return in >> ran >> waited ? waited : 0;
}

// Returns the core to which a processor belongs, as a text; the processor's own number if the
// machine does not say.
std::string core_of(int processor) {
  std::ifstream in(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor));
  std::string siblings;
  return in >> siblings ? siblings : std::to_string(processor);
}

}  // namespace

std::vector<int> processors() {
  cpu_set_t allowed;
  std::vector<int> first_of_core;
  std::vector<int> siblings;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {0};
  std::vector<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    const std::string core = core_of(i);
    const bool seen = std::find(cores.begin(), cores.end(), core) != cores.end();
    (seen ? siblings : first_of_core).push_back(i);
    if (!seen) cores.push_back(core);
  }
  first_of_core.insert(first_of_core.end(), siblings.begin(), siblings.end());
  return first_of_core;
}

void pin(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &only);
  pinned = true;
  if (sched_setaffinity(0, sizeof only, &only) == 0) return;
  throw Failure(Exit::usage,
                fmt::format("processor {} cannot be used. Fix: choose another --cpu (see: nproc, "
                            "taskset -p $$)",
                            processor));
}

void unpin() {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);  // the kernel ignores those that do not exist
  sched_setaffinity(0, sizeof all, &all);
}

int64_t waited_for_processor_this_thread() { return wait_in("/proc/thread-self/schedstat"); }

int64_t waited_for_processor() {
  int64_t sum = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    sum += wait_in(task.path() / "schedstat");
  }
  return sum;
}

void spin() {
  static const bool alone = !pinned && processors().size() < 2;
  if (alone) sched_yield();
}

}  // namespace urma::apps::perf
