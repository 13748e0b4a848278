#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "apps/urma_perf/completions.h"
#include "apps/urma_perf/mailbox.h"
#include "apps/urma_perf/options.h"
#include "apps/urma_perf/session.h"

namespace urma::perf {

// `urma_perf server`: one device, one thread, one loop, any number of clients, each a Session. It
// spins while a client measures and sleeps otherwise.
class Server {
 public:
  explicit Server(const Options& options);

  // Until Ctrl-C, or with --once until the first client is gone.
  Exit run();

 private:
  void say_where() const;
  void handle(const Completion& completion);
  void handle_message(const Session::Client& from, const std::string& text);
  void greet(const Session::Client& from, const Message& question);
  void run_limits();
  void look_after_clients();
  void say_goodbye();

  const Options& options_;
  Device device_;
  Jfc completions_;  // of the mailbox and of all sessions
  Mailbox mailbox_;
  Taker taker_;
  std::vector<std::unique_ptr<Session>> sessions_;
  uint64_t clients_ = 0;               // so far
  std::array<std::byte, 8> probed_{};  // what probes read; nobody looks at it
};

}  // namespace urma::perf
