// SPDX-License-Identifier: Apache-2.0
#include "engine/all_users.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/stats_files.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

constexpr uint32_t stranger = 64123;  // a user that does not exist

std::string directory_name(uint32_t uid) { return "urma-devices-" + std::to_string(uid); }

// A directory in which users make their directories of pages, as in /dev/shm.
struct Parent {
  std::string of(uint32_t uid) const { return (folder.path() / directory_name(uid)).string(); }
  engine::StatsFile publish(uint64_t unique) const {
    ObservedDevice facts = engine::this_process();
    facts.device = "udp:" + std::to_string(unique);
    return engine::StatsFiles(of(geteuid())).publish(facts, unique).value();
  }
  // Gives the directory of this user, and all in it, to another one.
  void give(uint32_t uid) const {
    for (const auto& entry : std::filesystem::directory_iterator(of(geteuid()))) {
      REQUIRE(lchown(entry.path().c_str(), uid, uid) == 0);
    }
    REQUIRE(lchown(of(geteuid()).c_str(), uid, uid) == 0);
    std::filesystem::rename(of(geteuid()), of(uid));
  }
  Observed look() const { return engine::look_at_all_users(folder.path().string()).value(); }

  const TemporaryDirectory folder{"/dev/shm/urma-users-XXXXXX"};
};

TEST_CASE("a user's own devices are seen without those of other users") {
  const Parent parent;
  CHECK(parent.look().devices.empty());
  const engine::StatsFile page = parent.publish(1);
  const Observed seen = parent.look();
  REQUIRE(seen.devices.size() == 1);
  CHECK(seen.devices[0].uid == geteuid());
  CHECK(seen.skipped.empty());
}

TEST_CASE("root sees the devices of each user, and whose they are") {
  if (geteuid() != 0) return;  // only root can make another user's files
  const Parent parent;
  const engine::StatsFile theirs = parent.publish(1);
  parent.give(stranger);
  const engine::StatsFile own = parent.publish(2);
  const Observed seen = parent.look();
  REQUIRE(seen.devices.size() == 2);
  for (const ObservedDevice& device : seen.devices) {
    CHECK(device.uid == (device.device == "udp:1" ? stranger : 0));
  }
  CHECK(seen.skipped.empty());
}

TEST_CASE("directories of many users do not hide a device of another user") {
  if (geteuid() != 0) return;  // only root can make another user's files
  const Parent parent;
  const engine::StatsFile theirs = parent.publish(1);
  parent.give(stranger);
  // Lower numbers are read first, but their directories are empty and do not count. Higher numbers,
  // as one user has them in a user namespace, are read last.
  for (uint32_t i = 1; i <= 300; ++i) {
    std::filesystem::create_directory(parent.of(stranger - i));
    std::filesystem::create_directory(parent.of(stranger + i));
    std::ofstream(parent.of(stranger + i) + "/1-0000000000000001") << "hello";
    for (const uint32_t uid : {stranger - i, stranger + i}) {
      REQUIRE(chmod(parent.of(uid).c_str(), 0700) == 0);
      REQUIRE(lchown(parent.of(uid).c_str(), uid, uid) == 0);
    }
  }
  const Observed seen = parent.look();
  REQUIRE(seen.devices.size() == 1);
  CHECK(seen.devices[0].uid == stranger);
  // The files belong to root, so they are not pages of these users.
  CHECK(seen.unread == 256);
  REQUIRE(seen.skipped.size() == 1);
  CHECK(mentions(seen.skipped[0], "256 pages of other users are not read"));
}

TEST_CASE("root does not follow what another user puts in place of pages") {
  if (geteuid() != 0) return;  // only root can make another user's files
  const Parent parent;
  const engine::StatsFile page = parent.publish(1);
  const std::filesystem::path at = parent.of(0);
  const std::filesystem::path file = std::filesystem::directory_iterator(at)->path();
  // Pages that are named by links, that are not files, or that belong to a third user.
  std::filesystem::create_symlink(file, at / "1-0000000000000001");
  REQUIRE(mkfifo((at / "1-0000000000000002").c_str(), 0600) == 0);
  std::ofstream(at / "1-0000000000000003") << "hello";
  std::ofstream(at / "\x1b[2J\xff") << "hello";
  parent.give(stranger);
  REQUIRE(chown((std::filesystem::path(parent.of(stranger)) / file.filename()).c_str(), 0, 0) == 0);
  Observed seen = parent.look();
  CHECK(seen.devices.empty());
  CHECK(seen.unread == 4);  // the file that is not locked is stale, and stays
  REQUIRE(seen.skipped.size() == 1);
  CHECK(mentions(seen.skipped[0], "4 pages of other users are not read. The first: "));
  CHECK(mentions(seen.skipped[0], "Fix: "));
  for (const char c : seen.skipped[0]) CHECK((c >= ' ' && c <= '~'));
  CHECK(std::filesystem::exists(std::filesystem::path(parent.of(stranger)) / "1-0000000000000003"));

  // Directories that are links, that others may use, or that claim to be another user's.
  std::filesystem::create_symlink(parent.of(stranger), parent.of(stranger + 1));
  const engine::StatsFile claimed = parent.publish(2);
  std::filesystem::rename(at, parent.of(stranger + 2));
  REQUIRE(chmod(parent.of(stranger).c_str(), 0755) == 0);
  seen = parent.look();
  CHECK(seen.devices.empty());
  CHECK(seen.skipped.empty());
}

}  // namespace
}  // namespace urma::test
