// SPDX-License-Identifier: Apache-2.0
// A process may have closed stdin, stdout and stderr. No descriptor of the library may get their
// numbers: otherwise a line that the process prints to stderr would overwrite a window's header.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/api/helpers.h"
#include "tests/drivers/io_ways.h"
#include "urma/observe.hpp"

namespace urma::test {
namespace {

// Closes descriptors 0 to 2 of this process, and restores them when it is destroyed.
class StandardClosed {
 public:
  StandardClosed() {
    for (int i = 0; i < standard; ++i) {
      kept_[static_cast<size_t>(i)] = fcntl(i, F_DUPFD_CLOEXEC, 100);
      close(i);
    }
  }
  StandardClosed(const StandardClosed&) = delete;
  ~StandardClosed() {
    for (int i = 0; i < standard; ++i) {
      const int kept = kept_[static_cast<size_t>(i)];
      if (kept < 0) continue;
      dup2(kept, i);
      close(kept);
    }
  }

  // Records which of the descriptors 0 to 2 are open. Another thread of the library may briefly
  // have a new descriptor there until the library has moved it, so only a descriptor that stays
  // open counts.
  void look(const std::string& after) {
    for (int i = 0; i < standard; ++i) {
      bool stays = true;
      for (int looks = 0; looks < 3 && stays; ++looks) {
        if (looks > 0) usleep(1000);
        stays = fcntl(i, F_GETFD) >= 0;
      }
      if (stays) found_.push_back(after + ": " + std::to_string(i) + " is " + file_at(i));
    }
    // A line that a program prints without checking whether there is a stderr.
    constexpr std::string_view line = "a line that a program prints to its closed stderr\n";
    if (::write(STDERR_FILENO, line.data(), line.size()) >= 0) {
      found_.push_back(after + ": a line that was printed went somewhere");
    }
  }
  const std::vector<std::string>& found() const { return found_; }

 private:
  static constexpr int standard = 3;

  static std::string file_at(int descriptor) {
    std::array<char, 256> name{};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t bytes = readlink(link.c_str(), name.data(), name.size());
    return bytes > 0 ? std::string(name.data(), static_cast<size_t>(bytes)) : "unknown";
  }

  std::array<int, standard> kept_{-1, -1, -1};
  std::vector<std::string> found_;
};

// Checks without using stdout: while stdout is closed, a failed assertion could not be printed.
void must(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("failed: ") + what);
}

std::string header_of(const std::string& path) {
  std::string header(64, '\0');  // the words after these change while the window is used
  std::ifstream file(path, std::ios::binary);
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  return header;
}

// Makes each call that creates descriptors: each kind of queue to sleep at, guarded memory, names,
// the page of counters, the log, and memory that is handed over.
void use_descriptors(StandardClosed& closed, const std::string& owners, const std::string& users,
                     const std::string& another_path = "") {
  std::atomic<int> lines{0};
  const DeviceOptions options{.log = {.call = [&](const LogLine&) { ++lines; }}};
  Side owner = Side::open(owners, options);
  Side user = Side::open(users, options);
  closed.look(owners + ", opened");
  std::vector<std::byte> memory(1 << 16);
  const Segment guarded = owner.device.register_memory(memory, {.guarded = true}).value();
  Jfc jfc = owner.device.jfc(16).value();
  Jfce jfce = owner.device.jfce().value();
  (void)jfc.fd().value();
  (void)user.jetty.fd().value();
  (void)owner.device.events_fd().value();
  jfce.attach(owner.jetty, 1).value();
  closed.look(owners + ", with descriptors to sleep at");

  const std::string name = "standard-" + std::to_string(getpid());
  owner.device.publish(name, owner.segment, owner.jetty).value();
  const Imported remote = user.device.import("urma://localhost/" + name, 10s).value();
  const Imported careful = user.device.import(guarded.descriptor()).value();
  const auto bytes = bytes_like(1000, 1);
  std::vector<std::byte> back(bytes.size());
  // Several rounds, because handing memory over takes time.
  for (int round = 0; round < 50; ++round) {
    const std::array works{write(bytes, remote.segment).to(remote.jetty).immediate(1),
                           read(std::span(back), remote.segment), write(bytes, careful.segment)};
    must(user.jetty.post(works) == works.size(), "post");
    for (const Completion& done : collect(user.jetty, works.size())) must(done.ok(), "a work");
    for (const Completion& arrived : collect(owner.jetty, 1)) must(arrived.ok(), "an arrival");
  }
  if (!another_path.empty()) (void)owner.device.add_path(another_path).value();
  must(observe_devices().ok(), "observe_devices");
  closed.look(owners + ", used");
  owner.device.unpublish(name).value();
  user.device.close();
  owner.device.close();
  closed.look(owners + ", closed");
}

TEST_CASE("if a process has closed 0, 1 and 2, no descriptor of a device gets these numbers") {
  const std::string window = "/dev/shm/urma-test-standard-" + std::to_string(getpid());
  const std::string capture = window + ".pcapng";
  std::vector<std::string> found;
  bool header_kept = false;
  std::string failure;
  {
    StandardClosed closed;
    try {
      const Side holds = Side::open("cxl:" + window + "?size=32M");
      closed.look("a window");
      const std::string before = header_of(window);
      for (const char* const more : {"", "?share=segment"})
        use_descriptors(closed, "cxl:" + window + more, "cxl:" + window + more);
      header_kept = header_of(window) == before;
      for (const std::string& way : io_ways()) use_descriptors(closed, "udp:" + way, "udp:" + way);
      use_descriptors(closed, "pcap(file=" + capture + "):udp:", "udp:");
      use_descriptors(closed, "paths():udp:127.0.0.231+udp:127.0.0.234",
                      "paths():udp:127.0.0.232+udp:127.0.0.235", "udp:127.0.0.233");
    } catch (const std::exception& caught) {
      failure = caught.what();
    }
    found = closed.found();
  }
  std::filesystem::remove(window);
  std::filesystem::remove(capture);
  CHECK(failure == "");
  CHECK(header_kept);
  for (const std::string& one : found) {
    INFO(one);
    CHECK(one == "");
  }
}

}  // namespace
}  // namespace urma::test
