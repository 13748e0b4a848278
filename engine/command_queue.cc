#include "engine/command_queue.h"

#include <utility>

namespace urma::engine {
namespace {

// Returns the end of a list, where another command or list is appended.
Command** end_of(Command*& list) {
  Command** end = &list;
  while (*end != nullptr) end = &(*end)->next;
  return end;
}

}  // namespace

bool CommandQueue::run(Engine& engine, Time now) {
  // New commands go behind those that wait.
  *end_of(waiting_) = mailbox_.take();

  // Commands that are not done go behind the others; otherwise eight of them would keep all others
  // from running.
  bool any = false;
  Command* again = nullptr;
  Command** again_end = &again;
  for (uint32_t i = 0; waiting_ != nullptr && i < most_at_once; ++i) {
    Command& command = *std::exchange(waiting_, waiting_->next);
    if (command.run(command, engine, now)) {
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
