// SPDX-License-Identifier: Apache-2.0
#include "engine/reporter.h"

#include <condition_variable>
#include <mutex>

#include "engine/device_counters.h"
#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"
#include "tests/unit/engine/page_directory.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::Log;
using engine::Reporter;

// A port that fails to send.
class FailingPort final : public IdlePort {
 public:
  drivers::PortCounters counters() const override { return {.send_failures = failures}; }
  uint64_t failures = 0;
};

struct Reported {
  FailingPort* port = new FailingPort;
  Engine engine{std::unique_ptr<FailingPort>(port), idle_settings(),
                std::make_unique<SeededEntropy>(1)};
};

// The lines of a log, whose callback does not return while `held`.
class HeldLines {
 public:
  std::unique_ptr<Log> log() {
    return std::make_unique<Log>(LogOptions{.call = [this](const LogLine& line) { add(line); }},
                                 "device");
  }
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void await(size_t count) {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, 10s, [&] { return lines_.size() >= count; }));
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  void add(const LogLine& line) {
    std::unique_lock lock(mutex_);
    lines_.emplace_back(line.text);
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  bool held_ = false;
};

TEST_CASE("a reporter shows the counters on a page, which is removed when it is closed") {
  const PageDirectory pages;
  Reported device;
  Reporter reporter(pages.publish(1), nullptr);
  REQUIRE(reporter.start("a device").ok());
  for (const uint64_t failures : {3, 4}) {
    device.port->failures = failures;
    CHECK(reporter.report(device.engine, Time(5s)));
    const auto seen = pages.look().devices;
    REQUIRE(seen.size() == 1);
    CHECK(*seen[0].find("send_failures") == failures);
    CHECK(seen[0].moment == Time(5s));
  }
  reporter.close({});
  CHECK(pages.count() == 0);
}

TEST_CASE("a reporter without a page and a log does nothing") {
  Reported device;
  Reporter reporter(std::nullopt, nullptr);
  CHECK(reporter.start("a device").ok());
  CHECK(reporter.report(device.engine, Time(5s)));
  reporter.abandon();
  reporter.close({});
}

TEST_CASE("a reporter logs from its start to its close, with the last counters") {
  Reported device;
  HeldLines lines;
  Reporter reporter(std::nullopt, lines.log());
  REQUIRE(reporter.start("a device").ok());
  device.port->failures = 3;
  reporter.report(device.engine, Time(5s));
  lines.await(2);
  device.port->failures = 4;
  reporter.close(snapshot_of(device.engine));
  const auto all = lines.all();
  REQUIRE(all.size() == 4);
  CHECK(all[0] == "device: opened: a device");
  CHECK(mentions(all[1], "3 "));
  CHECK(mentions(all[2], "1 "));
  CHECK(all[3] == "device: closed");
}

TEST_CASE("while the log is busy a report is refused, and a later one contains its counters") {
  Reported device;
  HeldLines lines;
  lines.hold(true);
  Reporter reporter(std::nullopt, lines.log());
  REQUIRE(reporter.start("a device").ok());
  lines.await(1);
  device.port->failures = 1;
  CHECK(reporter.report(device.engine, Time(5s)));  // waits for the log's thread
  CHECK(reporter.report(device.engine, Time(5s)));  // nothing has changed
  device.port->failures = 3;
  CHECK_FALSE(reporter.report(device.engine, Time(5s)));
  lines.hold(false);
  lines.await(2);
  CHECK(reporter.report(device.engine, Time(5s)));
  reporter.close(snapshot_of(device.engine));
  const auto all = lines.all();
  REQUIRE(all.size() == 4);
  CHECK(mentions(all[2], "2 "));
}

TEST_CASE("an abandoned reporter leaves its page to the parent process") {
  const PageDirectory pages;
  {
    Reporter reporter(pages.publish(1), nullptr);
    reporter.abandon();
    reporter.close({});
  }
  CHECK(pages.count() == 1);
  CHECK(pages.look().devices.empty());  // no process holds it
}

TEST_CASE("each path of a device has metrics of its own, in the order of their values") {
  drivers::PortFacts facts;
  facts.paths = {parse_endpoint("10.0.0.1:4792").value(), parse_endpoint("10.0.1.1:4792").value()};
  const auto metrics = engine::device_metrics(facts);
  REQUIRE(metrics.size() == 6);
  const char* const names[] = {"path0_sent", "path0_lost", "path0_rtt",
                               "path1_sent", "path1_lost", "path1_rtt"};
  for (size_t i = 0; i < metrics.size(); ++i) {
    CHECK(metrics[i].name == names[i]);
    CHECK(mentions(metrics[i].meaning, i < 3 ? "10.0.0.1" : "10.0.1.1"));
    CHECK(metrics[i].part == "paths");
  }
  CHECK(engine::device_metrics({}).empty());
  facts.metrics = {{"of_the_port", "packets", "since open", "port", "Of the port."}};
  REQUIRE(engine::device_metrics(facts).size() == 7);
  CHECK(engine::device_metrics(facts)[0].name == "of_the_port");
}

}  // namespace
}  // namespace urma::test
