#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dirty_set.h"
#include "engine/name_files.h"
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

  // Adds names that this device publishes, by moving the entries; replaces those of the same names.
  void publish(Publications& names);
  void unpublish(std::string_view name);

  // A question, on the stack of the thread that waits for the answer. The first four members are
  // set by the caller of `ask`.
  struct Question {
    std::string name;                                // the published name that is asked for
    Endpoint at;                                     // the device that is asked
    Time until{};                                    // then the question ends as timed out
    std::optional<Retransmission> retransmission{};  // of the channel to the asked device
    // The outcome, valid once `done` is true.
    bool done = false;
    Status status = Status::timed_out;
    std::string line;  // the answer; the caller reserves line_bytes

    // Only NameService uses these.
    Question* next = nullptr;  // in the list of open questions
    uint32_t number = 0;       // the answer repeats it
    PeerId peer;               // the asked device, once it is known
    Time ask_at{};             // when the question is sent, or repeated
  };
  void ask(Question& question, Time now);
  // Call it in each pass. Returns true, and forgets the question, once it has been answered or has
  // timed out.
  bool check(Question& question, Time now);

  // Handles messages that have arrived. Returns true if there were any.
  bool pass(Time now);

 private:
  static constexpr uint16_t slots = 32;

  [[gnu::cold]] void handle(const Completion& arrival, std::string_view line, Time now);
  const Publication* find(std::string_view name, Time now);
  const Publications& neighbours(Time now);
  void handle_question(const Completion& arrival, uint32_t number, std::string_view name, Time now);
  void handle_answer(const Completion& arrival, std::string_view kind, uint32_t number,
                     std::string_view line);
  // Sends one line made of these words. Drops it if there is no room, because the asking side
  // repeats its question.
  void send(PeerId to, std::string_view word, uint32_t number, std::string_view rest);
  void post_receive(uint16_t slot);

  transport::Transport& transport_;
  DirtySet& dirty_;
  const bool one_process_;
  std::shared_ptr<jetty::Jfc> jfc_;
  std::shared_ptr<jetty::Queues> queues_;
  uint32_t index_;
  std::vector<std::byte> receive_buffers_;
  std::vector<std::string> sending_;  // by tag
  std::vector<uint16_t> free_to_send_;
  Publications published_;
  // The names of other processes of this user, if this device answers for them.
  std::optional<NameFiles> files_;
  Publications neighbours_;  // these names, as the directory was last read
  Time look_at_{};           // the earliest time to read it again
  Question* questions_ = nullptr;
  uint32_t next_number_ = 1;
};

}  // namespace urma::engine
