#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dirty_set.h"
#include "engine/name_message.h"
#include "engine/published_names.h"
#include "engine/questions.h"
#include "jetty/jetty.h"
#include "transport/transport.h"

namespace urma::engine {

// The well-known Jetty 1 (docs/protocol.md): answers questions about published names, and asks
// other devices. Questions and answers are Sends of one line of text. Lost questions are repeated.
// A flood of questions finds no receive slot, and files are not read more often because of it.
// Called by the thread that runs the pass.
class NameService {
 public:
  static constexpr size_t line_bytes = 1024;

  // `one_process`: all questions come from this process (a simulated network).
  NameService(jetty::Jetties& jetties, transport::Transport& transport, DirtySet& dirty,
              bool one_process);

  // The names for which this device answers.
  PublishedNames& published() { return published_; }

  void ask(Question& question, Time now) { questions_.add(question, now); }
  // Call it in each pass. Returns true, and forgets the question, once it has been answered or has
  // timed out.
  bool check(Question& question, Time now);

  // Returns whether messages have arrived that `pass` has not handled.
  bool waits() const { return jfc_->ready(); }
  // Handles messages that have arrived. Returns true if there were any.
  bool pass(Time now);

 private:
  static constexpr uint16_t slots = 32;

  [[gnu::cold]] void handle(const Completion& arrival, const NameMessage& message, Time now);
  void answer(const Completion& arrival, const NameMessage& question, Time now);
  // If there is no room for the message, it is dropped: the device that asks repeats its question.
  void send(PeerId to, const NameMessage& message);
  void post_receive(uint16_t slot);

  transport::Transport& transport_;
  DirtySet& dirty_;
  std::shared_ptr<jetty::Jfc> jfc_;
  std::shared_ptr<jetty::Queues> queues_;
  uint32_t index_;
  std::vector<std::byte> receive_buffers_;
  std::vector<std::string> sending_;  // by tag
  std::vector<uint16_t> free_to_send_;
  PublishedNames published_;
  Questions questions_;
};

}  // namespace urma::engine
