// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "urma/core/result.h"

namespace urma::drivers::dpdk {

// EAL, the runtime of DPDK: one per process, never ended. It is started by the first device with
// what the machine offers, and changes nothing else of the process: the calling thread keeps its
// affinity and its signal mask, the process keeps its limits, no signal handler is installed, and
// no NIC is taken that was not named. EAL's own threads take no signals.
class Eal {
 public:
  // Starts EAL if it does not run. `arguments` are added to those of the driver, separated by
  // spaces; the first device decides. A failure is final, as EAL cannot be started twice. Errors:
  // no_resources, invalid_argument (a later device has other arguments), forked (a child of the
  // process that started it).
  static Result<const Eal*> start(const std::string& arguments);

  bool huge_pages() const { return huge_pages_; }
  const std::string& arguments() const { return given_; }
  // All arguments, for people.
  const std::string& command_line() const { return command_line_; }

 private:
  explicit Eal(const std::string& given);
  Result<void> init();

  std::string given_;
  std::string command_line_;
  bool huge_pages_ = false;
};

// While this object exists, the calling thread takes no SIGPIPE: a port whose peer closed a socket
// writes to it. A signal that came meanwhile is removed, unless one was pending before.
class NoSigpipe {
 public:
  NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  ~NoSigpipe();

 private:
  bool was_pending_ = false;
  bool was_blocked_ = false;
};

}  // namespace urma::drivers::dpdk
