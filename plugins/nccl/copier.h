// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace urma::nccl {

// Copies data from stages to its place in a thread of its own, while NCCL's thread copies other
// data into the stages of peers. Any thread calls it. Calls neither lock nor allocate.
class Copier {
 public:
  // One copy, which belongs to the caller of `start` until `take`.
  struct alignas(64) Job {
    enum class State : uint32_t { unused, filling, ready, done };
    std::atomic<State> state{State::unused};
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    size_t bytes = 0;
  };

  // Starts the thread if `wanted`; otherwise `start` takes no copy.
  explicit Copier(bool wanted);
  Copier(const Copier&) = delete;
  ~Copier();

  // Starts a copy. Returns null if it is too small, or too many are under way: then the caller
  // copies.
  Job* start(std::byte* to, const std::byte* from, size_t bytes);
  // Returns whether the copy is done. Then the job may be used for another one.
  static bool take(Job& job);
  // Waits until the copy is done, and takes it. In a child of fork, which does not have the thread,
  // this call and the next one return immediately.
  void finish(Job& job) const;
  // Waits until no copy is under way.
  void drain() const;

 private:
  bool has_thread() const;
  void run();
  bool run_jobs();

  std::array<Job, 64> jobs_;
  std::atomic<uint32_t> started_{0};  // how many copies, so that the thread can sleep
  std::atomic<bool> ended_{false};
  const pid_t process_;
  std::thread thread_;
};

}  // namespace urma::nccl
