// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/self.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "apps/common/captures.h"
#include "apps/common/failure.h"
#include "apps/common/interrupt.h"
#include "apps/urma_perf/clock.h"
#include "apps/urma_perf/devices.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t start_patience = 10 * second;

std::vector<std::string> arguments_for(const Options& options, const std::string& device,
                                       int processor, int report_to) {
  std::vector<std::string> arguments = {"urma_perf",
                                        "server",
                                        "--once",
                                        "--device",
                                        device.empty() ? std::string(default_device) : device,
                                        "--report-to",
                                        std::to_string(report_to)};
  arguments.emplace_back(options.threads_mode->option);
  if (options.retransmit != nullptr) {
    arguments.insert(arguments.end(), {"--retransmit", std::string(options.retransmit->name)});
  }
  if (!options.congestion.empty()) {
    arguments.insert(arguments.end(), {"--cc", options.congestion});
  }
  if (options.profile) arguments.emplace_back("--profile");
  if (options.verbose) arguments.emplace_back("--verbose");
  if (processor >= 0) arguments.insert(arguments.end(), {"--cpu", std::to_string(processor)});
  return arguments;
}

// Runs between fork and exec, so nothing here allocates.
[[noreturn]] void become(char* const* arguments, pid_t parent, int report_to) {
  // So that the server ends with its parent, even if the parent is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Ctrl-C is sent to the whole foreground group, but the client decides when the server ends.
  setpgid(0, 0);
  fcntl(report_to, F_SETFD, 0);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

}  // namespace

ChildServer::ChildServer(const Options& options, const std::string& device, int processor) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Failure(Exit::error, fmt::format("--self: making a pipe: {}. Fix: close some files",
                                           std::strerror(errno)));
  }
  std::vector<std::string> words = arguments_for(options, device, processor, ends[1]);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) become(arguments.data(), parent, ends[1]);
  const int why = errno;
  close(ends[1]);
  if (process_ > 0) at_ = read_line(ends[0]);
  close(ends[0]);
  if (process_ < 0) {
    throw Failure(Exit::error, fmt::format("--self: starting the server: {}. Fix: end some "
                                           "processes",
                                           std::strerror(why)));
  }
  if (!at_.empty()) return;
  // The server has printed its error on stderr. Its exit code becomes that of this process.
  const bool ended = wait(interrupted() ? 0 : second);
  if (!ended) {
    kill(process_, SIGKILL);
    wait(second);
  }
  const bool exited = ended && WIFEXITED(status_) && WEXITSTATUS(status_) != 0;
  throw Failure(interrupted() ? Exit::interrupted
                : exited      ? static_cast<Exit>(WEXITSTATUS(status_))
                              : Exit::error,
                "--self: the server side did not start. Fix: see its error message above");
}

// The child ends as soon as the client has said bye, which happens before this object is destroyed.
ChildServer::~ChildServer() {
  if (process_ <= 0) return;
  end();
  // The server has printed on stderr which of its captures lacks packets.
  constexpr int incomplete = static_cast<int>(Exit::capture_incomplete);
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == incomplete) note_incomplete_capture();
}

void ChildServer::end() {
  if (wait(second)) return;
  kill(process_, SIGTERM);
  if (wait(second)) return;
  kill(process_, SIGKILL);
  wait(INT64_MAX);
}

// Reads up to the end of the line; returns an empty text if none comes.
std::string ChildServer::read_line(int from) const {
  std::string line;
  for (const int64_t until = now() + start_patience; now() < until && !interrupted();) {
    pollfd readable{from, POLLIN, 0};
    if (poll(&readable, 1, 100) <= 0) continue;
    char c = 0;
    if (::read(from, &c, 1) != 1) return {};
    if (c == '\n') return line;
    line += c;
  }
  return {};
}

// Returns true if the process has ended and was reaped.
bool ChildServer::wait(int64_t patience) {
  const int64_t begin = now();
  do {
    const pid_t got = waitpid(process_, &status_, patience == INT64_MAX ? 0 : WNOHANG);
    if (got == process_ || (got < 0 && errno == ECHILD)) {
      process_ = -1;
      return true;
    }
    usleep(1000);
  } while (now() - begin < patience);
  return false;
}

}  // namespace urma::apps::perf
