// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "urma/urma.hpp"

namespace urma::apps {

// The exit codes of the programs, for scripts.
enum class Exit : int {
  ok = 0,
  error = 1,
  usage = 2,
  threshold = 3,  // a check failed: urma_info --doctor, urma_perf --budget and --fail-if
  wrong_bytes = 4,
  peer_lost = 5,  // or was never reached
  version_mismatch = 6,
  capture_incomplete = 7,  // all else succeeded, but pcap(...) lost packets
  interrupted = 130,       // by Ctrl-C, as shells report it
};

// Ends the current operation. The message says what failed, why, and the fix.
class Failure : public std::exception {
 public:
  Failure(Exit exit, std::string message) : exit_(exit), message_(std::move(message)) {}

  Exit exit() const { return exit_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Exit exit_;
  std::string message_;
};

// Ends a program with Exit::ok: it was asked for something that is printed by now.
struct Answered {};

[[noreturn]] inline void usage(std::string message) {
  throw Failure(Exit::usage, std::move(message));
}

inline Exit exit_for(Status status) {
  switch (status) {
    case Status::invalid_argument:
      return Exit::usage;
    case Status::unknown:
    case Status::peer_unreachable:
    case Status::peer_restarted:
    case Status::not_found:
    case Status::timed_out:
    case Status::flushed:
    case Status::remote_access:  // the peer's registration has ended
      return Exit::peer_lost;
    case Status::version_mismatch:
      return Exit::version_mismatch;
    default:
      return Exit::error;
  }
}

// Returns the value, or throws a Failure that says what was being done.
template <class T>
T must(Result<T> result, std::string_view doing) {
  if (!result) {
    throw Failure(exit_for(result.status()), std::string(doing) + ": " + result.error().message);
  }
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// Returns the Failure for a work, or a call of this name, that should have succeeded.
inline Failure failed_work(std::string_view doing, Status status,
                           std::string_view what_ended = "a work") {
  const StatusInfo& info = describe(status);
  const Exit exit = exit_for(status);
  const std::string what = std::string(doing) + ": " + std::string(what_ended) + " ended as " +
                           std::string(info.name) + ". " + std::string(info.meaning);
  if (exit != Exit::peer_lost) return {exit, what + " Fix: " + std::string(info.cure)};
  return {
      exit,
      what + " The other side is lost. Fix: check whether it still runs; if not, start it again"};
}

}  // namespace urma::apps
