// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace urma::test {

#ifdef URMA_TEST_PEER  // not set if the program is built without peer.cc
// Returns the command line of a peer (peer.cc) that publishes a segment under `name` and serves it.
// Without `bytes` the peer chooses the segment's size.
inline std::vector<std::string> serve(const std::string& device, const std::string& name,
                                      size_t bytes = 0) {
  std::vector<std::string> command{URMA_TEST_PEER, device, "serve", name};
  if (bytes > 0) command.push_back(std::to_string(bytes));
  return command;
}
#endif

// Another process. It is killed at the latest when this object is destroyed.
class Child {
 public:
  // Returns when the process has printed its first line.
  explicit Child(std::vector<std::string> arguments) {
    int pipes[2];
    if (pipe(pipes) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
    posix_spawn_file_actions_addclose(&actions, pipes[0]);
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    if (posix_spawn(&pid_, raw[0], &actions, nullptr, raw.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    char c = 0;
    while (::read(pipes[0], &c, 1) == 1 && c != '\n') said_ += c;
    close(pipes[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(SIGKILL); }

  const std::string& said() const { return said_; }
  pid_t pid() const { return pid_; }
  void stop() const {
    kill(pid_, SIGSTOP);
    // A signal does not take effect immediately.
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
  }
  void go_on() const { kill(pid_, SIGCONT); }
  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  std::string said_;
};

}  // namespace urma::test
