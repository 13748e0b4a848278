// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "urma/core/endpoint.h"

namespace urma::apps::stat {

// Answers requests of HTTP for /metrics until Ctrl-C, on one thread. A client that is slow, silent
// or sends nonsense delays no other one: it is dropped after a while, or earlier if there are many
// clients.
class Exporter {
 public:
  // How many clients are served at a time. A further one replaces the client that has been idle
  // for the longest time.
  static constexpr size_t most_clients = 32;

  // Throws a Failure if the address cannot be used.
  explicit Exporter(const Endpoint& at);
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  ~Exporter();

  // `text` returns the answer. If it throws a Failure, the client is told why, with the code 503.
  void run(const std::function<std::string()>& text);

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    int socket = -1;
    std::string request{};      // what has arrived of it
    std::string answer{};       // empty until the request is complete
    size_t sent = 0;            // of the answer
    Clock::time_point until{};  // when the client is dropped
    Clock::time_point moved{};  // when it last sent or took a byte
  };

  void sleep();
  void accept_clients();
  void drop(size_t index);
  void drop_idlest();
  bool serve(Client& client, const std::function<std::string()>& text) const;

  int listener_;
  std::vector<Client> clients_;
  Clock::time_point accepts_from_{};  // set when accept() finds no free descriptor
};

}  // namespace urma::apps::stat
