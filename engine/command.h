// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"
#include "urma/core/time.h"

namespace urma::engine {

class Engine;

// A control call on its way to the thread that runs the passes. It is on the caller's stack until
// it is done.
struct Command {
  // A pass calls this. It returns false to be called again in a later pass.
  bool (*run)(Command& self, Engine& engine, Time now) = nullptr;
  Command* next = nullptr;
  enum Done : uint32_t { waits, finished, slept_for };
  std::atomic<uint32_t> done{waits};

  bool is_done() const { return done.load(std::memory_order_acquire) == finished; }
  // For the calling thread: sleeps until the command is done, at most `limit`. May return
  // spuriously.
  void await(Duration limit) {
    uint32_t state = waits;
    done.compare_exchange_strong(state, slept_for, std::memory_order_acq_rel);
    if (state != finished) futex_wait(done, slept_for, limit);
  }
};

// Passes commands from any thread to the engine. Used on the control path only.
// Writers: `first_` - callers push, the engine takes all.
class Mailbox {
 public:
  void push(Command& command) {
    command.next = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(command.next, &command, std::memory_order_seq_cst)) {
    }
  }
  bool any() const { return first_.load(std::memory_order_seq_cst) != nullptr; }

  // For the engine: takes all commands, and returns them oldest first.
  Command* take() {
    if (first_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Command* newest = first_.exchange(nullptr, std::memory_order_acquire);
    Command* oldest = nullptr;
    while (newest != nullptr) {
      Command* older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    return oldest;
  }

  // For the engine: lets the caller continue. The command may no longer exist after this.
  static void finish(Command& command) {
    // Usually the caller itself runs this pass, and does not sleep.
    const uint32_t state = command.done.exchange(Command::finished, std::memory_order_acq_rel);
    if (state == Command::slept_for) futex_wake_all(command.done);
  }

 private:
  std::atomic<Command*> first_{nullptr};
};

}  // namespace urma::engine
