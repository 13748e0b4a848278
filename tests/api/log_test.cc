// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

// Collects the lines that a device has logged.
class Heard {
 public:
  struct Line {
    LogLevel level;
    std::string kind;
    uint64_t count;
    std::string text;
    std::string layer;
  };
  LogOptions options(LogLevel level = LogLevel::info, uint32_t per_second = 1) {
    return {.call =
                [this](const LogLine& line) {
                  const std::lock_guard lock(mutex_);
                  lines_.push_back({line.level, std::string(line.kind), line.count,
                                    std::string(line.text), std::string(line.layer)});
                  came_.notify_all();
                },
            .level = level,
            .per_second = per_second};
  }
  // Returns the lines of this kind once their counts reach `sum`, or after a timeout.
  std::vector<Line> of(const std::string& kind, uint64_t sum = 1) {
    std::unique_lock lock(mutex_);
    std::vector<Line> found;
    came_.wait_for(lock, patience, [&] {
      found.clear();
      uint64_t counted = 0;
      for (const Line& line : lines_) {
        if (line.kind != kind) continue;
        found.push_back(line);
        counted += line.count;
      }
      return counted >= sum;
    });
    return found;
  }
  std::vector<Line> all() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Line> lines_;
};

TEST_CASE("a device logs when it is opened, meets a peer, loses it, and is closed") {
  Heard heard;
  Side side = Side::open("udp:", {.log = heard.options()});
  {
    Side peer = Side::open("udp:");
    const auto bytes = bytes_like(100, 1);
    REQUIRE(
        run_one(side.jetty, write(bytes, side.device.import(peer.line()).value().segment)).ok());
    const auto made = heard.of("channel_made");
    REQUIRE(made.size() == 1);
    CHECK(made[0].level == LogLevel::info);
    CHECK(made[0].layer == "transport");
    CHECK(made[0].text.starts_with("udp:: "));
    CHECK(made[0].text.find(to_string(peer.device.endpoint())) != std::string::npos);
  }
  CHECK(heard.of("peer_left").size() == 1);
  side.device.close();
  const auto all = heard.all();
  CHECK(all.front().kind == "opened");
  CHECK(all.back().kind == "closed");
  CHECK(all.back().layer == "engine");
  CHECK(all.size() == 4);
}

TEST_CASE("the level debug explains why works are slow, which others do not show") {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info}) {
    Heard heard;
    Side side = Side::open("fault(loss=20%):udp:", {.log = heard.options(level)});
    Side peer = Side::open("udp:");
    const auto import = side.device.import(peer.line()).value();
    const auto bytes = bytes_like(100, 1);
    while (side.device.stats()->retransmitted == 0) {
      REQUIRE(run_one(side.jetty, write(bytes, import.segment)).ok());
    }
    side.device.close();  // logs what is left
    CHECK(heard.of("resent", 0).empty() == (level == LogLevel::info));
  }
}

TEST_CASE(
    "events that come too soon are counted in the next line, at the latest when the device "
    "closes") {
  Heard heard;
  const auto bytes = bytes_like(10, 1);
  {
    Side owner = Side::open("udp:", {.log = heard.options(LogLevel::warning)});
    Side user = Side::open("udp:");
    RemoteSegment wrong = user.device.import(owner.line()).value().segment;
    wrong.address -= 8;
    for (int i = 0; i < 20; ++i) {
      REQUIRE(run_one(user.jetty, write(bytes, wrong)).status == Status::remote_access);
      usleep(10'000);
    }
    CHECK(heard.of("refused").size() == 1);
  }
  uint64_t sum = 0;
  for (const Heard::Line& line : heard.all()) {
    CHECK(line.kind == "refused");  // no line has a level that was not asked for
    CHECK(line.level == LogLevel::warning);
    CHECK(line.text.find("Fix: ") != std::string::npos);
    sum += line.count;
  }
  CHECK(sum == 20);
  CHECK(heard.all().size() == 2);
}

TEST_CASE("a refusal of the system is logged as an error with the system's reason") {
  Heard heard;
  Side user = Side::open("udp:127.0.0.1", {.log = heard.options(LogLevel::error)});
  CHECK(user.device.import("urma://127.255.255.255:4792/x", 100ms).status() ==
        Status::peer_unreachable);
  const auto failed = heard.of("send_failed");
  REQUIRE_FALSE(failed.empty());
  CHECK(failed[0].text.find("Permission denied") != std::string::npos);
}

TEST_CASE("a slow log handler delays neither the device nor its peers") {
  std::mutex slow;
  std::atomic<int> told{0};
  Side owner = Side::open("udp:", {.log = {.call = [&](const LogLine&) {
                                     ++told;
                                     const std::lock_guard lock(slow);
                                   }}});
  std::unique_lock waits(slow);
  Side user = Side::open("udp:");
  const Imported remote = user.device.import(owner.line()).value();
  const auto bytes = bytes_like(5000, 1);
  const auto until = std::chrono::steady_clock::now() + 500ms;
  while (std::chrono::steady_clock::now() < until) {
    REQUIRE(run_one(user.jetty, write(bytes, remote.segment)).ok());
  }
  CHECK(told <= 2);
  CHECK(owner.device.stats().ok());
  waits.unlock();
  owner.device.close();
  CHECK(told >= 3);  // opened, channel made, closed
}

TEST_CASE("a log handler may call its device, and a device may have no log") {
  Side* asked = nullptr;
  std::atomic<bool> ready{false};
  std::atomic<uint64_t> answers{0};
  Side side = Side::open("udp:", {.log = {.call = [&](const LogLine&) {
                                    if (ready) answers += asked->device.stats().ok();
                                  }}});
  asked = &side;
  ready = true;
  Side peer = Side::open("udp:");
  const auto bytes = bytes_like(5000, 1);
  REQUIRE(run_one(side.jetty, write(bytes, side.device.import(peer.line()).value().segment)).ok());
  const auto until = std::chrono::steady_clock::now() + patience;
  while (answers == 0 && std::chrono::steady_clock::now() < until) usleep(1000);
  CHECK(answers > 0);
  side.device.close();

  for (const uint32_t wrong : {0u, 11u}) {
    const auto refused = open("udp:", {.log = {.per_second = wrong}});
    CHECK(refused.status() == Status::invalid_argument);
  }
}

TEST_CASE("a child of fork logs nothing") {
  Heard heard;
  std::optional<Side> side = Side::open("udp:", {.log = heard.options()});
  REQUIRE(heard.of("opened").size() == 1);
  const pid_t child = fork();
  if (child == 0) {
    side.reset();
    _exit(heard.all().size() == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  side.reset();
  CHECK(heard.of("closed").size() == 1);
}

}  // namespace
}  // namespace urma::test
