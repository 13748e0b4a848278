// SPDX-License-Identifier: Apache-2.0
#include "engine/stats_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/unit/engine/page_directory.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::StatsFile;
using engine::StatsFiles;

TEST_CASE("until it is closed, only this user sees a page, with the values written last") {
  const PageDirectory pages;
  CHECK(pages.look().devices.empty());
  {
    StatsFile one = pages.publish(1);
    const StatsFile another = pages.publish(2);
    Statistics statistics;
    statistics.works = 42;
    one.write(statistics, Time(Duration(7)));
    Observed seen = pages.look();
    REQUIRE(seen.devices.size() == 2);
    CHECK(seen.skipped.empty());
    CHECK(seen.devices[0].pid == static_cast<uint64_t>(getpid()));
    CHECK(seen.devices[0].process == "unit_tests");
    CHECK(seen.devices[0].process_started > 1'000'000'000);
    CHECK(seen.devices[0].process_started <= seen.devices[0].opened);
    CHECK(seen.devices[0].device == "udp:1");
    CHECK(*seen.devices[0].find("works") == 42);
    CHECK(seen.devices[0].moment == Time(Duration(7)));
    CHECK(*seen.devices[1].find("works") == 0);
    for (const auto& entry : std::filesystem::directory_iterator(pages.path())) {
      struct stat info {};
      REQUIRE(stat(entry.path().c_str(), &info) == 0);
      CHECK((info.st_mode & 0777) == 0600);
    }
  }
  CHECK(pages.look().devices.empty());
  CHECK(pages.count() == 0);
}

// Makes a process that publishes and is killed, so that its file stays.
void die_publishing(const PageDirectory& pages, uint64_t unique) {
  const pid_t child = fork();
  if (child == 0) {
    const StatsFile file = pages.publish(unique);
    kill(getpid(), SIGKILL);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a page of a dead process is not shown, and is removed by the next look or publication") {
  const PageDirectory pages;
  die_publishing(pages, 1);
  REQUIRE(pages.count() == 1);
  CHECK(pages.look().devices.empty());
  CHECK(pages.count() == 0);
  die_publishing(pages, 2);
  const StatsFile own = pages.publish(3);
  CHECK(pages.count() == 1);
  CHECK(pages.look().devices.size() == 1);
}

TEST_CASE("a child of fork neither keeps its parent's page alive nor removes it") {
  const PageDirectory pages;
  int running[2];
  REQUIRE(pipe(running) == 0);
  StatsFile file = pages.publish(1);
  const pid_t child = fork();
  if (child == 0) {
    file.write({}, Time(Duration(99)));
    file.abandon();
    [[maybe_unused]] const ssize_t told = ::write(running[1], "", 1);
    _exit(static_cast<int>(sleep(60)));
  }
  char byte = 0;
  REQUIRE(::read(running[0], &byte, 1) == 1);
  for (const int end : running) close(end);
  REQUIRE(pages.look().devices.size() == 1);
  CHECK(pages.look().devices[0].moment == Time{});
  file = StatsFile();
  CHECK(pages.count() == 0);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a file that is not a page, or a spoiled one, is reported and skipped") {
  const PageDirectory pages;
  const StatsFile whole = pages.publish(1);
  const StatsFile spoiled = pages.publish(2);
  std::filesystem::path at;
  for (const auto& entry : std::filesystem::directory_iterator(pages.path())) {
    if (entry.path().string().ends_with("2")) at = entry.path();
  }
  const auto one_is_skipped = [&](const char* why) {
    const Observed seen = pages.look();
    REQUIRE(seen.skipped.size() == 1);
    CHECK(mentions(seen.skipped[0], why));
    CHECK(mentions(seen.skipped[0], "Fix: "));
    REQUIRE(seen.devices.size() == 1);
    CHECK(seen.devices[0].device == "udp:1");
  };
  REQUIRE(truncate(at.c_str(), 3000) == 0);
  one_is_skipped("truncated");
  REQUIRE(truncate(at.c_str(), 10) == 0);
  one_is_skipped("not a file with a device's counters");
  REQUIRE(truncate(at.c_str(), 200'000) == 0);
  one_is_skipped("damaged");
  std::ofstream(at) << std::string(10'000, 'x');
  one_is_skipped("not a file with a device's counters");
  REQUIRE(unlink(at.c_str()) == 0);

  at = pages.path() / "README";
  std::ofstream(at) << "hello";
  one_is_skipped("not a file with a device's counters");
  REQUIRE(unlink(at.c_str()) == 0);
  at = pages.path() / "1-0000000000000000";
  REQUIRE(mkfifo(at.c_str(), 0600) == 0);
  one_is_skipped("not a file with a device's counters");
  REQUIRE(unlink(at.c_str()) == 0);
  std::filesystem::create_symlink("/dev/zero", at);
  one_is_skipped("cannot be opened");
}

TEST_CASE("a directory that others could use is refused, when publishing and when looking") {
  const PageDirectory pages;
  std::filesystem::permissions(pages.path(), std::filesystem::perms(0755));
  for (const Error& error :
       {pages.files().look().error(), pages.files().publish(engine::this_process(), 1).error()}) {
    CHECK(error.status == Status::permission_denied);
    CHECK(mentions(error.message, pages.path().string()));
    CHECK(mentions(error.message, "Fix: "));
  }
  CHECK(StatsFiles("/nonexistent/x").publish(engine::this_process(), 1).status() ==
        Status::io_error);
  CHECK(StatsFiles("/nonexistent/x").look()->devices.empty());
}

}  // namespace
}  // namespace urma::test
