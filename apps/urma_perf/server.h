// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/captures.h"
#include "apps/common/dialogue.h"
#include "apps/urma_perf/completions.h"
#include "apps/urma_perf/engine_threads.h"
#include "apps/urma_perf/options.h"
#include "apps/urma_perf/session.h"

namespace urma::apps::perf {

// The server on one address. It has one device, one thread and one loop (and a thread for each
// further engine of the device), and any number of clients, each with a Session. It spins while a
// client measures, and sleeps otherwise.
class Server {
 public:
  // `over` is shared with the servers on other addresses.
  Server(const Options& options, const std::string& device, std::atomic<bool>& over);

  // Prints the server's address to stdout, or to the descriptor of --report-to.
  void say_where();
  // Runs until Ctrl-C or `over`; with --once, until the first client has left.
  void run();

  static constexpr size_t most_clients = 64;
  // Half of the berths, and of the room for messages that wait, is enough for all clients together.
  // So stalled clients cannot keep a message from another one.
  static Dialogue::Options dialogue_options(Jfc& completions);

 private:
  Session::Pace pace() const;
  void handle(const Completion& completion);
  // Returns false if the completion is not of a running case.
  bool handle_of_case(size_t queue, const Completion& completion);
  void handle_dialogue(const Completion& completion);
  void handle_message(const Session::Client& from, const Message& question);
  void greet(const Session::Client& from, const Message& question);
  Message welcome(const Session::Client& from, const Message& question);
  void run_limits();
  void look_after_clients();
  void say_goodbye();

  const Options& options_;
  const std::string device_text_;
  std::atomic<bool>& over_;
  const bool says_clients_;                      // with --verbose, or to a person at a terminal
  apps::Captures captures_{"urma_perf server"};  // destroyed after the device
  Device device_;
  std::vector<std::unique_ptr<Session>> sessions_;
  EngineThreads engine_threads_;  // handle completions of the sessions
  Jfc& completions_;              // of the first engine: of the dialogue, too
  Dialogue dialogue_;
  Taker taker_;
  uint64_t clients_ = 0;  // so far
  std::array<std::byte, 8>
      probed_{};  // probes of all clients read into this buffer, and the bytes are not used
};

}  // namespace urma::apps::perf
