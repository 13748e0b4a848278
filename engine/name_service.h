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

// The well-known Jetty 1: answers who lives here under a name, and asks others. Questions and
// answers are Sends of one line of text, in the ordinary way: lost ones are repeated, a stranger's
// flood finds no receive slot, nor does it decide how often files are looked at. Engine thread.
class NameService {
 public:
  static constexpr size_t line_bytes = 1024;

  // `one_process`: whoever asks is this process itself (a simulated network).
  NameService(jetty::Jetties& jetties, transport::Transport& transport, DirtySet& dirty,
              bool one_process);

  // Names that this device publishes itself.
  // Takes the entries over, in place of those with the same names.
  void publish(Publications& names);
  void unpublish(std::string_view name);

  // One question, on the stack of whoever waits for its answer.
  struct Question {
    std::string name;
    Endpoint at;
    Time until{};
    std::optional<Retransmission> retransmission{};  // towards whoever is asked
    // The outcome, once `done`.
    bool done = false;
    Status status = Status::timed_out;
    std::string line;  // its room is reserved by whoever asks: line_bytes

    Question* next = nullptr;
    uint32_t number = 0;
    PeerId peer;
    Time ask_at{};
  };
  void ask(Question& question, Time now);
  // It is answered or its time is up; true when it need not be kept any more.
  bool check(Question& question, Time now);

  // Handles what has arrived. True: something has.
  bool pass(Time now);

 private:
  static constexpr uint16_t slots = 32;

  [[gnu::cold]] void handle(const Completion& arrival, std::string_view line, Time now);
  const Publication* find(std::string_view name, Time now);
  const Publications& neighbours(Time now);
  void handle_question(const Completion& arrival, uint32_t number, std::string_view name, Time now);
  void handle_answer(const Completion& arrival, std::string_view kind, uint32_t number,
                     std::string_view line);
  // One line of these words; not sent when there is no room, for it is asked again.
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
  // Where other processes of this user publish. Nothing: not for us to answer for them.
  std::optional<NameFiles> files_;
  Publications neighbours_;  // what they published when we looked last
  Time look_at_{};           // not again before
  Question* questions_ = nullptr;
  uint32_t next_number_ = 1;
};

}  // namespace urma::engine
