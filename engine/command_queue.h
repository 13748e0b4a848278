#pragma once

#include "engine/command.h"

namespace urma::engine {

// Which control calls have not been done yet? A command that is not done is run again in later
// passes, in turn with the others, so that no number of waiting ones keeps a new one from running.
// It does not know what a command does. The commands belong to their callers. `Engine` owns it.
class CommandQueue {
 public:
  // ---- any thread

  // The command must live until it is done.
  void push(Command& command) { mailbox_.push(command); }
  // Returns whether a command came that no pass has seen.
  bool arrived() const { return mailbox_.any(); }

  // ---- the engine thread

  // Returns whether a command that was run is not done.
  bool waits() const { return waiting_ != nullptr; }
  // Runs a few commands once. Returns true if one of them is done.
  [[gnu::cold]] bool run(Engine& engine, Time now);

 private:
  static constexpr uint32_t most_at_once = 8;

  Mailbox mailbox_;
  Command* waiting_ = nullptr;
};

}  // namespace urma::engine
