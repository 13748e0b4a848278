// SPDX-License-Identifier: Apache-2.0
#include "apps/common/server_threads.h"

#include <exception>
#include <thread>

namespace urma::apps {

void run_together(std::span<const std::function<void()>> bodies, std::atomic<bool>& over) {
  std::vector<std::exception_ptr> failed(bodies.size());
  const auto run = [&](size_t i) {
    try {
      bodies[i]();
    } catch (const std::exception&) {
      failed[i] = std::current_exception();
    }
    over = true;
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < bodies.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& why : failed) {
    if (why) std::rethrow_exception(why);
  }
}

}  // namespace urma::apps
