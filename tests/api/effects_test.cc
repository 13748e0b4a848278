// SPDX-License-Identifier: Apache-2.0
// Tests that a device has no side effects on its process: it changes no state that the whole
// process shares.

#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <map>

#include "tests/api/helpers.h"
#include "tests/drivers/io_ways.h"
#include "tests/drivers/window_file.h"

namespace urma::test {
namespace {

// The state that a library shares with the rest of its process, as far as it can be read.
using Shared = std::map<std::string, std::string>;

std::string bytes_of(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string members_of(const sigset_t& set) {
  std::string found;
  for (int number = 1; number <= SIGRTMAX; ++number)
    found += std::to_string(sigismember(&set, number));
  return found;
}

std::string handler_of(int number) {
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0) return "none";
  constexpr int by_libc = 0x04000000;  // SA_RESTORER: the C library adds it to all handlers
  action.sa_flags &= ~by_libc;
  return bytes_of(action.sa_handler) + std::to_string(action.sa_flags) + members_of(action.sa_mask);
}

std::string name_of(int number) { return "handler of signal " + std::to_string(number); }

size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator all(directory);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

Shared look_around() {
  Shared found;
  for (int number = 1; number <= SIGRTMAX; ++number) found[name_of(number)] = handler_of(number);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  found["blocked signals"] = members_of(blocked);
  stack_t stack{};
  sigaltstack(nullptr, &stack);
  found["signal stack"] = bytes_of(stack.ss_sp) + std::to_string(stack.ss_flags);
  const mode_t mask = umask(0);
  umask(mask);
  found["umask"] = std::to_string(mask);
  found["working directory"] = std::filesystem::current_path();
  found["locale"] = std::setlocale(LC_ALL, nullptr);
  for (int which = 0; which < RLIM_NLIMITS; ++which) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(which), &limit);
    found["limit " + std::to_string(which)] = bytes_of(limit);
  }
  for (char** variable = environ; *variable != nullptr; ++variable)
    found["environment"] += *variable;
  found["priority"] = std::to_string(getpriority(PRIO_PROCESS, 0));
  found["timer slack"] = std::to_string(prctl(PR_GET_TIMERSLACK));
  found["dumpable"] = std::to_string(prctl(PR_GET_DUMPABLE));
  found["name"].resize(16);
  prctl(PR_GET_NAME, found["name"].data());
  found["rounding"] = std::to_string(fegetround());
  return found;
}

// Returns the state that may differ while a device is open, but not after it was closed.
Shared look_at_parts() {
  return {{"descriptors", std::to_string(entries_of("/proc/self/fd"))},
          {"threads", std::to_string(entries_of("/proc/self/task"))}};
}

// Returns the first difference; empty if there is none.
std::string difference(const Shared& before, const Shared& after, const std::string& but = {}) {
  for (const auto& [what, value] : before) {
    const auto now = after.find(what);
    if (what != but && (now == after.end() || now->second != value)) return what;
  }
  return {};
}

// Does once all that an application does with a device. Returns an empty text, or what failed.
std::string use_everything(const std::string& text, const std::string& but, const Shared& before) {
  Side owner = Side::open(text);
  Side user = Side::open(text);
  const std::string name = "effects-" + std::to_string(getpid());
  owner.device.publish(name, owner.segment, owner.jetty).value();
  const Imported remote = user.device.import("urma://localhost/" + name).value();
  const auto bytes = bytes_like(100'000, 1);
  REQUIRE(user.jetty.post(write(bytes, remote.segment).to(remote.jetty).immediate(7)) == 1);
  if (!collect(user.jetty, 1).at(0).ok() || !collect(owner.jetty, 1).at(0).ok()) return "a write";
  // Calls that fail must have no side effects either.
  const bool found = user.device.import("urma://localhost/" + name + "-no", 1ms).ok() ||
                     urma::open("udp:192.0.2.1").ok() || urma::open("nonsense:").ok();
  if (found || !user.jetty.fd().ok()) return "an import, an open or a descriptor";
  if (!user.jetty.arm()) return "arming a queue";
  return difference(before, look_around(), but);
}

// Runs in a process of its own, whose output is measured. Returns an empty text if no effect was
// found.
std::string notices(const std::string& text, const std::string& but) {
  const Shared before = look_around();
  if (auto wrong = use_everything(text, but, before); !wrong.empty()) return "in use: " + wrong;
  // Objects that a process makes once, such as what children of fork find, exist from here on.
  const Shared parts = look_at_parts();
  if (auto wrong = use_everything(text, but, before); !wrong.empty())
    return "in use again: " + wrong;
  if (auto wrong = difference(before, look_around()); !wrong.empty()) return "after: " + wrong;
  if (auto wrong = difference(parts, look_at_parts()); !wrong.empty()) return "left: " + wrong;
  return {};
}

// Runs `notices` in a child. Returns its result, or what the process printed meanwhile.
std::string noticed_in_child(const std::string& text, const std::string& but) {
  const int output = memfd_create("output", MFD_CLOEXEC);
  const int report = memfd_create("report", MFD_CLOEXEC);
  const int ended = in_child([&] {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    const std::string found = notices(text, but);
    return ::write(report, found.data(), found.size()) < 0 ? 1 : 0;
  });
  std::string said(4096, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(report, said.data(), 4096, 0))));
  if (ended != 0) said += " ended with " + std::to_string(ended);
  struct stat about {};
  if (fstat(output, &about) == 0 && about.st_size > 0) said += " has written output";
  close(output);
  close(report);
  return said;
}

TEST_CASE("a device changes no state that belongs to the whole process") {
  for (const std::string& way : io_ways()) CHECK(noticed_in_child("udp:" + way, "") == "");
  CHECK(noticed_in_child("fault(loss=1%,seed=1):udp:", "") == "");
  const WindowFile window("effects");
  // The exception is the handler of SIGBUS, while the device is open (drivers/cxl/guard.h).
  CHECK(noticed_in_child(window.device("?size=16M"), name_of(SIGBUS)) == "");
}

TEST_CASE("a handler of SIGBUS stays in place while a window is open") {
  const WindowFile window("effects-chain");
  CHECK(in_child([&] {
          auto device = urma::open(window.device()).value();
          signal(SIGBUS, [](int) { _exit(0); });
          const std::string theirs = handler_of(SIGBUS);
          device.close();
          { const Device gone = std::move(device); }
          if (handler_of(SIGBUS) != theirs) return 1;
          { const Device again = urma::open(window.device("")).value(); }
          return handler_of(SIGBUS) == theirs ? 0 : 2;
        }) == 0);
}

}  // namespace
}  // namespace urma::test
