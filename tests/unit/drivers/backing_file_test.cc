// SPDX-License-Identifier: Apache-2.0
// Tests the file of a window by itself: opening, replacing, leaving, and giving it memory.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "drivers/cxl/backing_file.h"
#include "drivers/cxl/layout.h"
#include "drivers/cxl/window_lock.h"
#include "tests/catch.h"
#include "tests/unit/child.h"
#include "tests/unit/mentions.h"

namespace urma::drivers::cxl {
namespace {

using test::mentions;

// A path in /dev/shm at which there is no file. The destructor removes the file that the test
// leaves there.
struct FreePath {
  FreePath() { unlink(path.c_str()); }
  ~FreePath() { unlink(path.c_str()); }
  std::string path = "/dev/shm/urma-test-" + std::to_string(getpid()) + "-backing";
};

struct stat about(int descriptor) {
  struct stat out {};
  REQUIRE(fstat(descriptor, &out) == 0);
  return out;
}

TEST_CASE("a file that is not there is made for this user; one that is there is opened") {
  const FreePath free;
  BackingFile made(free.path);
  CHECK(made.descriptor() < 0);
  REQUIRE(made.open());
  CHECK(made.is_file());
  CHECK((about(made.descriptor()).st_mode & 0777) == 0600);
  BackingFile found(free.path);
  REQUIRE(found.open());
  CHECK(about(found.descriptor()).st_ino == about(made.descriptor()).st_ino);
}

TEST_CASE("a path that cannot be opened is refused by name, with a cure") {
  const FreePath free;
  REQUIRE(symlink("/dev/null", free.path.c_str()) == 0);
  BackingFile link(free.path);
  const auto refused = link.open();
  REQUIRE_FALSE(refused);
  CHECK(refused.status() == Status::io_error);
  CHECK(mentions(refused.error().message, free.path));
  CHECK(mentions(refused.error().message, "Fix: "));
}

TEST_CASE("opening a path again gives the same file, or fails once the path names another file") {
  const FreePath free;
  BackingFile file(free.path);
  REQUIRE(file.open());
  const int again = file.open_again().value();
  CHECK(about(again).st_ino == about(file.descriptor()).st_ino);
  close(again);
  REQUIRE(unlink(free.path.c_str()) == 0);
  const auto replaced = file.open_again();  // makes an empty one, of this process's own
  REQUIRE_FALSE(replaced);
  CHECK(mentions(replaced.error().message, "was replaced"));
}

TEST_CASE("the locks of a file end when it is abandoned, and a child of fork has none") {
  const FreePath free;
  BackingFile first(free.path);
  BackingFile second(free.path);
  REQUIRE(first.open());
  REQUIRE(second.open());
  REQUIRE(lock_slot(first.descriptor(), 3));
  CHECK(slot_is_locked(second.descriptor(), 3));
  CHECK(first.here());
  CHECK(test::survives([&] {
    if (first.here()) std::abort();
  }));
  first.abandon();
  CHECK_FALSE(first.here());
  CHECK_FALSE(slot_is_locked(second.descriptor(), 3));
}

TEST_CASE("memory of a file is taken in advance, and reads as zeros when it was given back") {
  const FreePath free;
  BackingFile file(free.path);
  REQUIRE(file.open());
  const uint64_t bytes = 4 * page_bytes;
  REQUIRE(ftruncate(file.descriptor(), bytes) == 0);
  REQUIRE(about(file.descriptor()).st_blocks == 0);
  REQUIRE(file.take_memory(page_bytes, 2 * page_bytes) == 0);
  CHECK(about(file.descriptor()).st_blocks * 512 == 2 * page_bytes);
  char byte = 'x';
  REQUIRE(pwrite(file.descriptor(), &byte, 1, page_bytes) == 1);
  REQUIRE(file.give_back_memory(page_bytes, page_bytes));
  CHECK(about(file.descriptor()).st_blocks * 512 == page_bytes);
  CHECK(static_cast<uint64_t>(about(file.descriptor()).st_size) == bytes);
  REQUIRE(pread(file.descriptor(), &byte, 1, page_bytes) == 1);
  CHECK(byte == 0);
}

TEST_CASE("memory of a device cannot be taken in advance or given back, which is not an error") {
  BackingFile device("/dev/zero");
  REQUIRE(device.open());
  CHECK_FALSE(device.is_file());
  CHECK(device.take_memory(0, page_bytes) == 0);
  CHECK_FALSE(device.give_back_memory(0, page_bytes));
}

}  // namespace
}  // namespace urma::drivers::cxl
