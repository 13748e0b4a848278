// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace urma::apps {

// The first Ctrl-C asks for the results so far: loops check `interrupted` and end. The second one
// ends the process immediately.
void handle_signals();
bool interrupted();
// Asks for the same as the first Ctrl-C. Any thread may call it.
void interrupt();

// While an object of this class exists, Ctrl-C ends the process immediately. For calls that cannot
// be interrupted, before the program has done anything that it must report or undo.
class EndsAtOnce {
 public:
  EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
  ~EndsAtOnce();
};

// Becomes readable with the first Ctrl-C, for a thread that sleeps in poll. Created by
// `handle_signals`.
int interrupt_descriptor();

}  // namespace urma::apps
