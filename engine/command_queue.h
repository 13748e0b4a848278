// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "engine/command.h"

namespace urma::engine {

// Holds the control calls that are not done yet. A command that is not done is run again in later
// passes, in turn with the others, so that waiting commands never keep a new one from running. It
// does not know what a command does, nor how it is run. The commands belong to their callers.
// `Engine` owns it.
class CommandQueue {
 public:
  // ---- any thread

  // The command must live until it is done.
  void push(Command& command) { mailbox_.push(command); }
  // Returns whether a command has arrived that no pass has taken.
  bool arrived() const { return mailbox_.any(); }

  // ---- the engine thread

  // Returns whether a command that a pass has taken is not done.
  bool waits() const { return waiting_ != nullptr; }
  // Calls `run` for up to `most_at_once` commands, once for each; `run` returns whether its command
  // is done. Returns true if one of them is done now.
  template <class Function>
  [[gnu::cold]] bool run(Function&& run);

 private:
  static constexpr uint32_t most_at_once = 8;

  // Returns the end of a list, where another command or list is appended.
  static Command** end_of(Command*& list) {
    Command** end = &list;
    while (*end != nullptr) end = &(*end)->next;
    return end;
  }

  Mailbox mailbox_;
  Command* waiting_ = nullptr;
};

template <class Function>
bool CommandQueue::run(Function&& run) {
  // New commands go behind those that wait.
  *end_of(waiting_) = mailbox_.take();

  // Commands that are not done go behind the others; otherwise eight of them would keep all others
  // from running.
  bool any = false;
  Command* again = nullptr;
  Command** again_end = &again;
  for (uint32_t i = 0; waiting_ != nullptr && i < most_at_once; ++i) {
    Command& command = *std::exchange(waiting_, waiting_->next);
    if (run(command)) {
      Mailbox::finish(command);
      any = true;
      continue;
    }
    command.next = nullptr;
    *again_end = &command;
    again_end = &command.next;
  }
  *end_of(waiting_) = again;
  return any;
}

}  // namespace urma::engine
