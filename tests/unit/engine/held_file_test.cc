// SPDX-License-Identifier: Apache-2.0
#include "engine/held_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/temporary_directory.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::HeldFile;
using engine::OwnDirectory;
using engine::OwnedDescriptor;
namespace fs = std::filesystem;

struct Folder {
  const TemporaryDirectory directory{"/tmp/urma-held-XXXXXX"};
  const fs::path path = directory.path();

  std::string file(const char* name) const { return path / name; }
  OwnedDescriptor locked(const std::string& at) const {
    OwnedDescriptor out(::open(at.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(out.get() >= 0);
    REQUIRE(flock(out.get(), LOCK_EX | LOCK_NB) == 0);
    return out;
  }
};

bool open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

TEST_CASE("a descriptor is closed once, by its last owner") {
  Folder folder;
  int number = -1;
  {
    OwnedDescriptor first = folder.locked(folder.file("a"));
    number = first.get();
    OwnedDescriptor second(std::move(first));
    CHECK(second.get() == number);
    OwnedDescriptor third;
    third = std::move(second);
    CHECK(third.get() == number);
    CHECK(open(number));
  }
  CHECK_FALSE(open(number));
}

TEST_CASE("a held file is held until its owner goes, and then removed") {
  Folder folder;
  const std::string at = folder.file("held");
  {
    const HeldFile file(folder.locked(at), at);
    CHECK(engine::held(engine::open_to_look(at)));
    HeldFile moved;
    moved = HeldFile(folder.locked(folder.file("other")), folder.file("other"));
    CHECK(fs::exists(folder.file("other")));
  }
  CHECK_FALSE(fs::exists(at));
  CHECK_FALSE(fs::exists(folder.file("other")));
}

TEST_CASE("an abandoned file stays, and is stale") {
  Folder folder;
  const std::string at = folder.file("held");
  {
    HeldFile file(folder.locked(at), at);
    file.abandon();
  }
  REQUIRE(fs::exists(at));
  CHECK_FALSE(engine::held(engine::open_to_look(at)));
}

TEST_CASE("looking follows no link and waits for no writer") {
  Folder folder;
  std::ofstream(folder.file("real")) << "x";
  fs::create_symlink(folder.file("real"), folder.file("link"));
  CHECK(engine::open_to_look(folder.file("link")).get() < 0);
  CHECK(errno == ELOOP);
  CHECK(engine::open_to_look(folder.file("missing")).get() < 0);
  CHECK(errno == ENOENT);
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(engine::open_to_look(folder.file("pipe")).get() >= 0);
}

TEST_CASE("a directory is trusted if it is missing, or belongs to this user alone") {
  Folder folder;
  const OwnDirectory own{.path = folder.file("own"), .what = "names", .cure = "remove it"};
  CHECK(own.trust().ok());
  REQUIRE(own.make().ok());
  REQUIRE(own.make().ok());
  struct stat info {};
  REQUIRE(stat(own.path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  for (const mode_t mode : {0710u, 0704u, 0770u}) {
    REQUIRE(chmod(own.path.c_str(), mode) == 0);
    const auto refused = own.make();
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status() == Status::permission_denied);
    CHECK(mentions(refused.error().message, own.path));
    CHECK(mentions(refused.error().message, "Fix: remove it"));
  }
}

TEST_CASE("a file or a link is not trusted as a directory") {
  Folder folder;
  std::ofstream(folder.file("file")) << "x";
  fs::create_directory(folder.file("real"));
  REQUIRE(chmod(folder.file("real").c_str(), 0700) == 0);
  fs::create_directory_symlink(folder.file("real"), folder.file("link"));
  for (const char* name : {"file", "link"}) {
    INFO(name);
    CHECK_FALSE(OwnDirectory{folder.file(name), "names", "remove it"}.make().ok());
  }
}

TEST_CASE("a failed call names what it was to do, and what to do now") {
  const OwnDirectory own{.path = "/tmp", .what = "names", .cure = "remove it"};
  CHECK(own.failure("opening x", EACCES).status == Status::permission_denied);
  CHECK(own.failure("opening x", EPERM).status == Status::permission_denied);
  CHECK(own.failure("opening x", EIO).status == Status::io_error);
  CHECK(own.failure("opening x", ENOSPC).status == Status::no_resources);
  CHECK(mentions(own.failure("opening x", EFBIG).message, "ulimit -f"));
  for (const int why : {EACCES, EPERM, EIO, ENOSPC, EMFILE, EFBIG}) {
    INFO(why);
    const std::string text = own.failure("opening x", why).message;
    CHECK(mentions(text, "names: opening x"));
    CHECK(mentions(text, "Fix: "));
  }
}

TEST_CASE("the entries of a directory leave out those that begin with a dot") {
  Folder folder;
  for (const char* name : {"a", "b", ".hidden"}) std::ofstream(folder.file(name)) << "x";
  auto names = engine::entries_of(folder.path);
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"a", "b"});
  CHECK(engine::entries_of(folder.file("missing")).empty());
  CHECK(engine::entries_of(folder.file("a")).empty());
}

}  // namespace
}  // namespace urma::test
