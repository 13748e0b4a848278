// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/waker.h"
#include "urma/core/options.h"

namespace urma::engine {

// Records which side is the keeper, which ensures that passes are run: the application while it
// polls or waits, else the service thread (`ServiceThread`). It runs no pass itself, and does not
// know when the application polled last. While the application is the keeper, the service thread
// sleeps at its timer; a thread that changes anything for which the service thread waits first
// stores the change and then sets the timer.
//
// An application may poll for a moment now and then, and otherwise look at memory that a peer
// writes, or do something else. If it were the keeper after each such moment, its peers would wait
// each time until the service thread takes over. So each brief time as the keeper doubles how many
// polls it takes to become the keeper again.
//
// Writers: `service_keeps_` - the service thread takes over and gives back, the application recalls
// and hands over; `empty_polls_` - each thread that polls, and some counts are lost; `recalled_at_`
// - the thread that recalls; `brief_times_` - the service thread.
class Keeper {
 public:
  // The waker is not owned, and outlives this object.
  Keeper(Threads threads, Waker& waker)
      : threads_(threads), waker_(waker), service_keeps_(threads == Threads::served) {}
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // ---- any thread

  bool service_keeps() const { return service_keeps_.load(std::memory_order_relaxed); }
  // Call it when the application has polled and found nothing. After many such polls the
  // application is the keeper again.
  void polled_empty();
  // The application waits, and is the keeper from now on.
  void recall();
  // The application goes to sleep at a descriptor of its own: from now on the service thread is the
  // keeper.
  void hand_over();
  // An application thread has left the engine's descriptors. If the application is the keeper, the
  // service thread's timer is set, so that it soon checks whether to take over.
  void left_descriptors();
  // Ends the service thread; the caller then wakes it. Only after `start`.
  void stop();
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }

  // ---- the service thread

  // Creates the timer, before the thread starts. Errors: no_resources.
  Result<void> start();
  // The application polled last at `polled_at`.
  void take_over(Time polled_at);
  // The application has not polled for a while, so what it polled before does not count.
  void polls_paused() { empty_polls_.store(0, std::memory_order_relaxed); }
  void give_back() { service_keeps_.store(false); }
  void set_timer(Duration after);
  // Sleeps until the timer fires.
  void await_timer();

  // The service thread takes over when the application has not polled for this long. At first it
  // also checks this often.
  static constexpr Duration take_over_after = std::chrono::microseconds(200);
  // An application that polled for less than this after it was recalled was the keeper briefly.
  static constexpr Duration brief = 5 * take_over_after;

 private:
  const Threads threads_;
  Waker& waker_;
  int timer_ = -1;
  std::atomic<bool> service_keeps_;
  std::atomic<bool> stop_{false};
  std::atomic<Time> recalled_at_{};
  std::atomic<uint32_t> brief_times_{0};  // in a row
  // Polls that found nothing since the service thread took over.
  alignas(64) std::atomic<uint32_t> empty_polls_{0};
};

}  // namespace urma::engine
