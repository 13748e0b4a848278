#pragma once

namespace urma::apps {

// Ctrl-C asks for the summary so far: loops look at `interrupted` and come to an end. The second
// one exits at once.
void handle_signals();
bool interrupted();

// While one of these exists, Ctrl-C ends the process at once. For calls that cannot be interrupted,
// before anything has begun that would have to be summed up or undone.
class EndsAtOnce {
 public:
  EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
  ~EndsAtOnce();
};

// Becomes readable with the first Ctrl-C, for a thread asleep in poll. Made by `handle_signals`.
int interrupt_descriptor();

}  // namespace urma::apps
