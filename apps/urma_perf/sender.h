// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "apps/urma_perf/options.h"
#include "apps/urma_perf/progress.h"
#include "apps/urma_perf/result.h"

namespace urma::apps::perf {

// A process that measures one flow, beside others: this program, forked before it has a device or a
// thread. It sets up its case, waits until all senders are ready, and measures one round.
class Sender {
 public:
  // Where a sender runs, and with which server.
  struct Place {
    const std::string& device;  // as of a Client
    const std::string& host;
    int processor = -1;            // negative means anywhere
    Progress* progress = nullptr;  // in memory that the process shares
  };
  Sender(const Options& options, const Place& place, const Case& what);
  // Kills the process if it still runs.
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Waits until the sender is ready. Returns false if it has ended instead, or at Ctrl-C.
  bool await_ready();
  void start();
  // Waits up to 0.1 s. Returns whether the sender has ended, or has a result.
  bool await_result() const;
  // Asks the sender for the result so far, as Ctrl-C would.
  void interrupt();
  // Waits for its end. Returns nothing if it has no result; `exit_code` says why.
  std::optional<Result> result();
  // Ends the process if it does not end by itself.
  void end();
  int exit_code() const { return exit_code_; }

 private:
  [[noreturn]] void measure(const Options& options, const Place& place, const Case& what,
                            int parent);

  pid_t process_ = -1;
  int channel_ = -1;  // to the process
  Case what_;
  int exit_code_ = 0;
  bool interrupted_ = false;
};

}  // namespace urma::apps::perf
