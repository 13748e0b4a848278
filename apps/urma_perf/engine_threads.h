// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/urma_perf/completions.h"

namespace urma::apps::perf {

// The completion queues of a server: one for each engine of its device. The first belongs to the
// server's own thread. Each other one has a thread here, which polls it while a client measures. A
// device with one engine has no such thread.
class EngineThreads {
 public:
  // Called by the thread of a queue, for each of its completions.
  using Handle = std::function<void(size_t queue, const Completion&)>;

  // `polls`: as ThreadsMode.
  EngineThreads(Device& device, uint32_t entries, bool polls, Handle handle);
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;
  ~EngineThreads();

  const std::vector<Jfc*>& queues() const { return queues_; }
  // idle: nothing arrives. asleep: the threads sleep until something does.
  enum class Pace : uint8_t { idle, asleep, measured };
  void set_pace(Pace pace);
  // Returns once the threads have handled all completions that were there: works of a client which
  // has been told that they ended have arrived, but perhaps in a queue that was not polled since.
  // Gives up when other clients have kept a queue full for a second.
  void catch_up();
  // While the result exists, no thread handles a completion.
  [[nodiscard]] std::vector<std::unique_lock<std::mutex>> pause();

 private:
  struct One {
    explicit One(Jfc queue) : completions(std::move(queue)) {}

    Jfc completions;
    std::mutex handling;
    std::atomic<uint64_t> caught_up{0};  // the latest request after which it was empty
    std::thread thread;
  };
  void run(size_t queue, One& one);

  const bool polls_;
  const Handle handle_;
  std::mutex changing_;  // held while these two change
  std::condition_variable changed_;
  std::atomic<Pace> pace_{Pace::idle};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> requests_{0};  // to catch up
  Jfc first_;
  std::vector<std::unique_ptr<One>> others_;
  std::vector<Jfc*> queues_;
};

}  // namespace urma::apps::perf
