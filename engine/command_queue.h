#pragma once

#include "engine/command.h"

namespace urma::engine {

// Holds the control calls that are not done yet. A command that is not done is run again in later
// passes, in turn with the others, so that waiting commands never keep a new one from running. It
// does not know what a command does. The commands belong to their callers. `Engine` owns it.
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
  // Runs up to `most_at_once` commands once. Returns true if one of them is done now.
  [[gnu::cold]] bool run(Engine& engine, Time now);

 private:
  static constexpr uint32_t most_at_once = 8;

  Mailbox mailbox_;
  Command* waiting_ = nullptr;
};

}  // namespace urma::engine
