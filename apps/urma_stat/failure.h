#pragma once

#include <exception>
#include <string>
#include <utility>

namespace urma::stat {

// How urma_stat ends: for scripts.
enum class Exit : int {
  ok = 0,
  error = 1,
  usage = 2,
  interrupted = 130,  // Ctrl-C, as shells have it
};

// Ends the program. The message says what failed, why and the fix.
class Failure : public std::exception {
 public:
  Failure(Exit exit, std::string message) : exit_(exit), message_(std::move(message)) {}

  Exit exit() const { return exit_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Exit exit_;
  std::string message_;
};

}  // namespace urma::stat
