// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "engine/line_jetty.h"
#include "engine/name_message.h"
#include "engine/published_names.h"
#include "engine/questions.h"
#include "transport/transport.h"

namespace urma::engine {

// Answers questions about published names, and asks other devices (docs/protocol.md). Questions and
// answers are lines of text. Lost questions are repeated. Called by the thread that runs the pass.
class NameService {
 public:
  // `one_process`: all questions come from this process (a simulated network).
  NameService(LineJetty& lines, transport::Transport& transport, bool one_process);

  // The names for which this device answers.
  PublishedNames& published() { return published_; }

  void ask(Question& question, Time now) { questions_.add(question, now); }
  // Call it in each pass. Returns true, and forgets the question, once it has been answered or has
  // timed out.
  bool check(Question& question, Time now);
  // Forgets a question for which `check` has not returned true.
  void withdraw(const Question& question) { questions_.remove(question); }

  // Handles a line that has arrived. Returns false if it is not about names.
  [[gnu::cold]] bool handle(PeerId from, std::string_view line, Time now);

 private:
  void answer(PeerId asker, const NameMessage& question, Time now);
  void send(PeerId to, const NameMessage& message);

  LineJetty& lines_;
  transport::Transport& transport_;
  PublishedNames published_;
  Questions questions_;
};

}  // namespace urma::engine
