// SPDX-License-Identifier: Apache-2.0
#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "tests/catch.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

constexpr std::string_view mounts =
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "30 22 0:25 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=65536k\n"
    "31 22 0:26 / /mnt/with\\040space rw shared:7 master:2 - tmpfs none rw,huge=advise\n"
    "32 22 0:26 /inside /srv rw - tmpfs none rw,huge=advise\n"
    "33 22 254:1 /home /elsewhere rw - ext4 /dev/vda1 rw\n";

TEST_CASE("the mount in which a file lies is found by its device and its path") {
  const FileSystem shm = find_mount(mounts, makedev(0, 25), "/dev/shm/urma-0");
  CHECK(shm.mount_point == "/dev/shm");
  CHECK(shm.kind == "tmpfs");
  CHECK(shm.options == "rw,size=65536k");
  // One file system is mounted at several places.
  CHECK(find_mount(mounts, makedev(0, 26), "/srv/x").mount_point == "/srv");
  CHECK(find_mount(mounts, makedev(0, 26), "/mnt/with space/x").mount_point == "/mnt/with space");
  CHECK(find_mount(mounts, makedev(254, 1), "/home/x").mount_point == "/");
  CHECK(find_mount(mounts, makedev(254, 1), "/elsewhere/x").mount_point == "/elsewhere");
  // A path that only begins with the characters of a mount point lies elsewhere.
  CHECK(find_mount(mounts, makedev(254, 1), "/elsewhere-too/x").mount_point == "/");
  CHECK(find_mount(mounts, makedev(9, 9), "/dev/shm/x").mount_point.empty());
  CHECK(find_mount("nonsense\n- - -\n", makedev(0, 25), "/x").mount_point.empty());
}

TEST_CASE("the file system of a missing file is that of the directory above it") {
  const FileSystem there = file_system_of(std::string("/proc/self"));
  CHECK(there.mount_point == "/proc");
  CHECK(there.kind == "proc");
  CHECK(file_system_of(std::string("/proc/missing/file")).mount_point == "/proc");
  CHECK(file_system_of(-1).mount_point.empty());
}

FileSystem shm_of(uint64_t bytes, uint64_t free_bytes) {
  return {.mount_point = "/dev/shm",
          .kind = "tmpfs",
          .page_bytes = 4096,
          .bytes = bytes,
          .free_bytes = free_bytes,
          .files = 100,
          .free_files = 50};
}

TEST_CASE("a full tmpfs is explained by its size, the free and the needed bytes, and a command") {
  const Shortage full = explain_shortage(shm_of(64 << 20, 12'500), 925'696, ENOSPC);
  CHECK(full.why == "the file system /dev/shm (tmpfs, 64M) has 12K free, and 904K are needed");
  CHECK(mentions(full.cure, "mount -o remount,size=128M /dev/shm;"));
  CHECK(mentions(full.cure, "docker run --shm-size=128M"));
  FileSystem other = shm_of(64 << 20, 0);
  other.mount_point = "/mnt/a";
  CHECK(mentions(explain_shortage(other, 4096, ENOSPC).cure, "size=128M /mnt/a"));
  CHECK_FALSE(mentions(explain_shortage(other, 4096, ENOSPC).cure, "docker"));
}

TEST_CASE("each lack of room has its own explanation") {
  FileSystem at = shm_of(64 << 20, 32 << 20);
  // The file system has room, so the machine lacks memory for it.
  CHECK(mentions(explain_shortage(at, 4096, ENOSPC).cure, "free -m"));
  CHECK(mentions(explain_shortage(at, 4096, ENOMEM).why, "no memory for 4K"));
  CHECK(mentions(explain_shortage(at, 4096, EDQUOT).cure, "quota -s"));
  at.free_files = 0;
  CHECK(mentions(explain_shortage(at, 4096, ENOSPC).why, "none of its 100 inodes"));
  CHECK(mentions(explain_shortage(at, 4096, ENOSPC).cure, "nr_inodes=200 /dev/shm"));
  at.kind = "ext4";
  CHECK_FALSE(mentions(explain_shortage(at, 4096, ENOSPC).cure, "remount"));
  at = {.mount_point = "/dev/hugepages", .kind = "hugetlbfs", .page_bytes = 2 << 20};
  const Shortage pages = explain_shortage(at, 5 << 20, ENOSPC);
  CHECK(mentions(pages.why, "of 2M, and 3 are needed"));
  CHECK(mentions(pages.cure, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"));
  at = {.mount_point = "/srv", .kind = "ext4", .page_bytes = 4096, .bytes = 1 << 30};
  CHECK(mentions(explain_shortage(at, 1, ENOSPC).cure, "(df /srv)"));
  for (const int error : {ENOSPC, EDQUOT, ENOMEM}) CHECK(is_shortage(error));
  for (const int error : {0, EACCES, EIO, EFBIG}) CHECK_FALSE(is_shortage(error));
}

TEST_CASE("free sizes are rounded down, needed sizes up") {
  CHECK(size_for_people(0, Rounded::down) == "0K");
  CHECK(size_for_people(1, Rounded::up) == "1K");
  CHECK(size_for_people(2047, Rounded::down) == "1K");
  CHECK(size_for_people(uint64_t{64} << 20, Rounded::up) == "64M");
  CHECK(size_for_people(uint64_t{2} << 30, Rounded::up) == "2G");
  CHECK(size_for_people((uint64_t{64} << 20) + 1, Rounded::up) == "65M");
  CHECK(size_for_people((uint64_t{64} << 20) + 1, Rounded::down) == "64M");
}

}  // namespace
}  // namespace urma::test
