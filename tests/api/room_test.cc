// SPDX-License-Identifier: Apache-2.0
// Tests file systems without room. The error says what failed, which file system it is, how large
// it is, how much is free and how much is needed; and it names a command that cures it. The test
// runs that command.

#include <fcntl.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <regex>

#include "tests/api/helpers.h"
#include "tests/drivers/window_file.h"
#include "tests/private_mount.h"

namespace urma::test {
namespace {

constexpr int cannot = 77;
constexpr const char* shm = "/dev/shm";

// Runs `body` in a child whose /dev/shm is a tmpfs with these options. `body` returns what is
// wrong, or an empty text.
template <class Body>
void with_shm(const char* options, Body&& body) {
  const int result = in_child([&] {
    if (!mount_here(shm, "tmpfs", options)) return cannot;
    setenv("XDG_RUNTIME_DIR", shm, 1);
    const std::string wrong = body();
    if (!wrong.empty()) std::cerr << "with " << shm << " of " << options << ": " << wrong << "\n";
    return wrong.empty() ? 0 : 1;
  });
  if (result == cannot) {
    WARN("skipped: this process may not mount a file system");
    return;
  }
  CHECK(result == 0);
}

// Leaves less than a page of the file system free.
void fill_up(const std::string& directory) {
  const int file = ::open((directory + "/filler").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  while (fallocate(file, 0, lseek(file, 0, SEEK_END), 4096) == 0) {
  }
  ::close(file);
}

bool names(const std::string& message, std::string_view directory, std::string_view size) {
  const std::string there = std::string(directory) + " (tmpfs, " + std::string(size) + ") has ";
  return message.find("the file system " + there) != message.npos &&
         std::regex_search(message, std::regex("has [0-9]+[KMG] free, and [0-9]+[KMG] are needed"));
}

const bool root_of_the_host = geteuid() == 0;

// Runs the command that the message tells root to run. Returns false if the message names no such
// command, or the command fails. In a user namespace mount(8) repeats options that are refused
// there, so the test makes the system call instead.
bool cure(const std::string& message) {
  std::smatch found;
  const std::regex command("as root: (mount -o remount,([^ ,;]+) ([^ ,;]+))");
  if (!std::regex_search(message, found, command)) return false;
  if (root_of_the_host) return std::system(found[1].str().c_str()) == 0;
  return mount(nullptr, found[3].str().c_str(), nullptr, MS_REMOUNT, found[2].str().c_str()) == 0;
}

DeviceOptions quick() { return {.threads = Threads::served, .operation_timeout = 200ms}; }

// Writes from one new device in the default window to another one. Returns what failed, or an empty
// text.
std::string write_once() {
  Side left = Side::open("cxl:", quick());
  Side right = Side::open("cxl:", quick());
  const auto there = left.device.import(right.line());
  if (!there) return there.error().message;
  const auto data = bytes_like(100, 1);
  if (left.jetty.post(write(data, there->segment)) != 1) return "cannot be posted";
  const auto completions = collect(left.jetty, 1);
  if (completions.size() != 1) return "does not complete";
  return std::string(name(completions[0].status));
}

// The lines that a device logs.
class Logged {
 public:
  void add(const LogLine& line) {
    const std::lock_guard lock(mutex_);
    lines_[std::string(line.kind)] = line.text;
    came_.notify_all();
  }
  // Returns the latest line of this kind, or an empty text after a timeout.
  std::string wait_for(const std::string& kind) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, patience, [&] { return lines_.count(kind) > 0; });
    return lines_[kind];
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::string, std::string> lines_;
};

TEST_CASE(
    "a window that does not fit in its file system is refused, and the error names the cure") {
  with_shm("size=400k", [] {
    const auto device = urma::open("cxl:");
    if (device) return std::string("opens");
    const std::string message = device.error().message;
    if (device.status() != Status::no_resources || !names(message, shm, "400K")) return message;
    if (message.find("cxl:/another/path") == message.npos) return message;
    if (!cure(message)) return "its advice does not cure it: " + message;
    const std::string then = write_once();
    return then == "ok" ? std::string() : "afterwards: " + then;
  });
}

TEST_CASE("if a window has no memory for another peer, the log and imports by name say so") {
  with_shm("size=800k", [] {
    if (const std::string status = write_once(); status != "no_resources") return status;
    Logged logged;
    DeviceOptions options = quick();
    options.log.call = [&](const LogLine& line) { logged.add(line); };
    Device client = urma::open("cxl:", options).value();
    Device server = urma::open("cxl:", quick()).value();
    const auto found =
        client.import("urma://" + to_string(server.endpoint().address) + "/none", {.limit = 1s});
    if (found) return std::string("found a name that is not published");
    const std::string message = found.error().message;
    if (found.status() != Status::no_resources || !names(message, shm, "800K")) return message;
    if (message.find("Limits::peers") != message.npos) return message;
    if (const std::string line = logged.wait_for("no_room"); !names(line, shm, "800K"))
      return "logged: " + line;
    if (!cure(message)) return "its advice does not cure it: " + message;
    const std::string then = write_once();
    return then == "ok" ? std::string() : "afterwards: " + then;
  });
}

TEST_CASE("a segment for which a full file system has no room is not mapped, and nothing faults") {
  with_shm("size=12m", [] {
    Side left = Side::open("cxl:", quick());
    Side right = Side::open("cxl:", quick());
    const auto there = left.device.import(right.line()).value();
    const auto write_to = [&](const RemoteSegment& segment) {
      const auto data = bytes_like(1 << 20, 3);
      if (left.jetty.post(write(data, segment)) != 1) return false;
      const auto completions = collect(left.jetty, 1);
      return completions.size() == 1 && completions[0].ok();
    };
    if (!right.segment.mapped() || !write_to(there.segment)) return std::string("at first");
    fill_up(shm);
    const Segment more = right.device.allocate(1 << 20).value();
    if (more.mapped()) return std::string("mapped without memory");
    if (!write_to(left.device.import(more.descriptor()).value().segment))
      return std::string("a segment that is not mapped cannot be written");
    if (!write_to(there.segment)) return std::string("mapped before");
    unlink("/dev/shm/filler");
    const Segment again = right.device.allocate(1 << 20).value();
    return again.mapped() ? std::string() : std::string("not mapped though there is room");
  });
}

TEST_CASE("if names or statistics do not fit, the error names the file system") {
  with_shm("size=2m,nr_inodes=100", [] {
    Side side = Side::open("cxl:", quick());
    fill_up(shm);
    const auto published = side.device.publish("full", side.segment);
    if (published) return std::string("publishes");
    if (published.status() != Status::no_resources || !names(published.error().message, shm, "2M"))
      return published.error().message;
    // A device opens without a page of statistics, and its settings say why.
    Device other = urma::open("udp:127.0.0.1:0", quick()).value();
    const SettingList settings = other.settings().value();
    for (const Setting& setting : settings) {
      if (setting.name == "observable" && !names(setting.source, shm, "2M")) return setting.source;
    }
    if (!cure(published.error().message)) return published.error().message;
    return side.device.publish("full", side.segment) ? std::string() : std::string("not cured");
  });
}

TEST_CASE("an error says that the file system has no free inode") {
  with_shm("size=64m,nr_inodes=2", [] {
    const int file = ::open("/dev/shm/filler", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ::close(file);
    const auto device = urma::open("cxl:");
    if (device) return std::string("opens");
    const std::string message = device.error().message;
    if (message.find("none of its 2 inodes free") == message.npos || !cure(message)) return message;
    return urma::open("cxl:") ? std::string() : std::string("not cured");
  });
}

TEST_CASE("the default window works with the 64 MiB of a container, and with 2 MiB") {
  for (const char* const options : {"size=64m", "size=2m"}) {
    with_shm(options, [] {
      const std::string status = write_once();
      return status == "ok" ? std::string() : status;
    });
  }
}

TEST_CASE("a window in a read-only file system is refused with the cause and a cure that works") {
  for (const bool exists : {false, true}) {
    with_shm("size=64m", [exists] {
      if (exists) urma::open("cxl:", quick()).value();
      if (mount(nullptr, shm, nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
        return std::string("cannot be mounted read-only");
      }
      const auto device = urma::open("cxl:", quick());
      if (device) return std::string("opens");
      const std::string message = device.error().message;
      if (message.find("/dev/shm is mounted read-only") == message.npos) return message;
      if (!cure(message)) return "not cured by what it says: " + message;
      const std::string then = write_once();
      return then == "ok" ? std::string() : "afterwards: " + then;
    });
  }
}

// Simulates two containers that share XDG_RUNTIME_DIR: the second window is made in another
// /dev/shm.
TEST_CASE("a name in another /dev/shm is out of reach, and the error says how to share a window") {
  with_shm("size=64m", [] {
    char text[] = "/tmp/urma-room-XXXXXX";
    const std::string shared = mkdtemp(text);
    setenv("XDG_RUNTIME_DIR", shared.c_str(), 1);
    const std::string wrong = [&] {
      Side owner = Side::open("cxl:", quick());
      owner.device.publish("thing", owner.segment).value();
      if (mount("tmpfs", shm, "tmpfs", 0, "size=64m") != 0) return std::string("cannot mount");
      Device user = urma::open("cxl:", quick()).value();
      const auto found = user.import("urma://localhost/thing", 10ms);
      if (found) return std::string("found in another window");
      const std::string message = found.error().message;
      std::smatch device;
      if (!std::regex_search(message, device, std::regex("Fix: open (cxl:\\S+) on both sides$"))) {
        return message;
      }
      Side both = Side::open(device[1].str(), quick());
      both.device.publish("other", both.segment).value();
      Device reader = urma::open(device[1].str(), quick()).value();
      const auto reached = reader.import("urma://localhost/other", 1s);
      return reached ? std::string() : "afterwards: " + reached.error().message;
    }();
    std::error_code ignored;
    std::filesystem::remove_all(shared, ignored);
    return wrong;
  });
}

}  // namespace
}  // namespace urma::test
