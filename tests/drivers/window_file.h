// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <string>

#include "drivers/cxl/layout.h"
#include "drivers/driver.h"

namespace urma::test {

// A file for a window of one test. It is removed together with this object.
class WindowFile {
 public:
  explicit WindowFile(const std::string& name = "window")
      : path_("/dev/shm/urma-test-" + std::to_string(getpid()) + "-" + name), owner_(getpid()) {
    unlink(path_.c_str());
  }
  WindowFile(const WindowFile&) = delete;
  WindowFile& operator=(const WindowFile&) = delete;
  ~WindowFile() {
    if (getpid() == owner_) unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  std::string device(const std::string& options = "?size=1M") const {
    return "cxl:" + path_ + options;
  }
  void write(std::string_view text) const {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    [[maybe_unused]] const ssize_t written = ::write(file, text.data(), text.size());
    ::close(file);
  }
  void cut(uint64_t bytes) const {
    [[maybe_unused]] const int done = truncate(path_.c_str(), static_cast<off_t>(bytes));
  }
  uint64_t bytes() const {
    struct stat about {};
    return stat(path_.c_str(), &about) == 0 ? static_cast<uint64_t>(about.st_size) : 0;
  }

 private:
  std::string path_;
  pid_t owner_;
};

// Writes into the window, as any process that may open it can.
class Intruder {
 public:
  explicit Intruder(const WindowFile& window) : bytes_(window.bytes()) {
    const int file = ::open(window.path().c_str(), O_RDWR | O_CLOEXEC);
    base_ =
        static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
  }
  Intruder(const Intruder&) = delete;
  Intruder& operator=(const Intruder&) = delete;
  ~Intruder() { munmap(base_, bytes_); }

  std::span<std::byte> all() { return {base_, bytes_}; }
  drivers::cxl::Parts parts() const { return drivers::cxl::Parts::of(bytes_); }
  uint32_t rings() const { return parts().rings; }
  drivers::cxl::Header& header() { return *at<drivers::cxl::Header>(0); }
  drivers::cxl::Slot& slot(uint32_t number) {
    using drivers::cxl::Slot;
    return *at<Slot>(drivers::cxl::slots_at + number * sizeof(Slot));
  }
  drivers::cxl::LaneHold& lane_hold(uint32_t slot, uint32_t lane) {
    using drivers::cxl::LaneHold;
    const uint32_t number = slot * max_lanes + lane;
    return *at<LaneHold>(parts().lanes_at + number * sizeof(LaneHold));
  }
  drivers::cxl::RingRecord& record(uint32_t ring) {
    using drivers::cxl::RingRecord;
    return *at<RingRecord>(drivers::cxl::records_at + ring * sizeof(RingRecord));
  }
  drivers::cxl::SegmentRecord& segment(uint32_t number) {
    using drivers::cxl::SegmentRecord;
    return *at<SegmentRecord>(parts().segments_at + number * sizeof(SegmentRecord));
  }
  drivers::cxl::Ring& ring(uint32_t number) {
    return *at<drivers::cxl::Ring>(parts().rings_at + uint64_t{number} * drivers::cxl::ring_bytes);
  }

 private:
  template <class Type>
  Type* at(uint64_t offset) {
    return reinterpret_cast<Type*>(base_ + offset);
  }
  uint64_t bytes_;
  std::byte* base_;
};

// Runs `function` in a process of its own. Returns its result, 0 to 255, or -1 if a signal has
// ended the process.
template <class Function>
int in_child(Function&& function) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGABRT, SIGFPE, SIGSEGV, SIGILL}) signal(number, SIG_DFL);
    _exit(function());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A child that does something, reports it, and then does nothing until it is killed.
class Bystander {
 public:
  template <class Function>
  explicit Bystander(Function&& function) {
    int pipes[2];
    if (pipe(pipes) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      for (const int number : {SIGABRT, SIGFPE, SIGSEGV, SIGILL}) signal(number, SIG_DFL);
      [[maybe_unused]] const auto kept = function();
      [[maybe_unused]] const ssize_t told = ::write(pipes[1], "", 1);
      for (;;) ::pause();
    }
    ::close(pipes[1]);
    char byte = 0;
    ready_ = ::read(pipes[0], &byte, 1) == 1;
    ::close(pipes[0]);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander() { kill(); }

  bool ready() const { return ready_; }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool ready_ = false;
};

}  // namespace urma::test
