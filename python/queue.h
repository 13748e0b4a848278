// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>

#include "python/arguments.h"
#include "urma/urma.hpp"

namespace urma::python {

// A completion queue of a Jetty, which any number of threads of Python may wait for. The library
// lets one thread at a time poll a queue. So one of the waiting threads polls, for itself and for
// the others, and these wait until it has polled something; then another one may be the one that
// polls. An event loop does not wait: it takes turns, and arms the queue, whose descriptor wakes
// it.
//
// All members are guarded by the GIL, which a thread releases while it polls or waits.
class Queue {
 public:
  // How a turn of an event loop ended.
  enum class Turn : int {
    armed,  // the queue is empty: its descriptor becomes readable when it is not
    again,  // the queue has more, or the loop should run other tasks first
    busy,   // a thread polls; it calls the watch when it is done
    over,   // the queue has ended
  };

  explicit Queue(const char* call) : call_(call) {}
  virtual ~Queue();
  Queue(const Queue&) = delete;

  // Waits until `done` returns true. Returns false after `limit`, and when the queue has ended.
  // Raises KeyboardInterrupt, and what else a handler of a signal raises.
  template <class Done>
  bool wait(Done done, Duration limit);
  // Polls once, unless another thread does. Returns how many completions there were.
  size_t poll_once();
  Turn turn();
  int descriptor();

  // Other than ok: why there will be no further completions.
  Status over() const { return over_; }
  bool foreign() const { return born_ != forks(); }
  void refuse_if_foreign() const { refuse_if_forked(born_, call_); }

  // Sets and returns the watch of an event loop (_aio.py), or None: it is told when the queue
  // should be polled again, when arrivals are there, and when the queue ends.
  void attach(py::object watch) { watch_ = std::move(watch); }
  const py::object& watch() const { return watch_; }

 protected:
  // The calls of the library, of which the first two are made without the GIL.
  virtual size_t poll(std::span<Completion> out) = 0;
  virtual std::span<const Completion> sleep(Duration limit) = 0;
  virtual bool arm() = 0;
  virtual Result<int> make_descriptor() = 0;
  // Takes one completion; must not run code of Python.
  virtual void settle(const Completion& completion) = 0;
  // Called after completions were taken, when this thread no longer polls; may run code of Python.
  virtual void settled() = 0;

  // Makes this thread the one that polls. Threads that wait let it go first.
  void seize();
  // Ends that.
  void let_go();
  // For the thread that polls: takes completions. A limit of zero does not sleep.
  size_t pass(Duration limit);
  void tell_watch(const char* what) const;
  void end(Status why) { over_ = why; }

 private:
  // Threads that do not poll sleep here. `turns` is also guarded by the GIL.
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t turns = 0;
  };
  // Signals are handled this often.
  static constexpr Duration slice = std::chrono::milliseconds(50);

  bool is_taken() const { return polling_ || seizers_ > 0; }
  void sleep_beside(Duration limit);

  const char* const call_;
  const unsigned born_ = forks();
  std::unique_ptr<Gate> gate_ = std::make_unique<Gate>();
  bool polling_ = false;      // a thread polls
  unsigned seizers_ = 0;      // threads that are about to
  bool turned_away_ = false;  // an event loop could not take its turn
  Status over_ = Status::ok;
  py::object watch_ = py::none();
};

template <class Done>
bool Queue::wait(Done done, Duration limit) {
  const auto begin = std::chrono::steady_clock::now();
  bool slept = false;
  bool ended = false;
  for (;;) {
    if (done()) {
      ended = true;
      break;
    }
    refuse_if_foreign();
    if (over_ != Status::ok) break;
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (slept && passed >= limit) break;
    const Duration left = passed >= limit ? Duration{} : limit - passed;
    if (is_taken()) {
      sleep_beside(std::min(left, slice));
    } else {
      seize();
      const size_t count = pass(std::min(left, slice));
      let_go();
      if (count > 0) settled();
    }
    slept = true;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  // Sleeping has disarmed the queue.
  if (slept && !watch_.is_none()) tell_watch("poll_soon");
  return ended;
}

}  // namespace urma::python
