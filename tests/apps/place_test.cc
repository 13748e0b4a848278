// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/place.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace urma::apps::notify {
namespace {

namespace fs = std::filesystem;

std::string refusal(int root, const std::string& name) {
  try {
    open_place(root, name);
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

TEST_CASE("a peer's name stays in the receiver's folder") {
  for (const char* name :
       {"a", "a b", "a/b/c", "a/.git/config", "a..b", "...a/b", "part.urma-part"}) {
    INFO(name);
    CHECK(objection_to(name).empty() == (name[0] != '.'));
  }
  for (const std::string& name :
       {std::string(""), std::string("/"), std::string("/a"), std::string("a/"),
        std::string("a//b"), std::string("."), std::string(".."), std::string("../a"),
        std::string("a/.."), std::string("a/../b"), std::string("a/./b"), std::string(".hidden"),
        std::string("a/.b.urma-part"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("a/\x1b[2J"), std::string("\xff"), std::string(201, 'x'),
        "a/" + std::string(201, 'x')}) {
    INFO(name);
    CHECK_FALSE(objection_to(name).empty());
  }
  std::string deep = "a";
  for (int i = 1; i < 32; ++i) deep += "/a";
  CHECK(objection_to(deep).empty());
  CHECK_FALSE(objection_to(deep + "/a").empty());
}

TEST_CASE("folders are made, and links are not followed") {
  const test::TemporaryDirectory there("/tmp/urma-place-XXXXXX");
  const fs::path root = there.path();
  fs::create_directory(root / "in");
  fs::create_directory(root / "out");
  fs::create_directory_symlink(root / "out", root / "in/link");
  fs::create_directory_symlink("..", root / "in/up");
  const File folder = open_folder((root / "in").string());
  CHECK(open_place(folder.get(), "a/b/c").leaf == "c");
  CHECK(fs::is_directory(root / "in/a/b"));
  CHECK_FALSE(fs::exists(root / "in/a/b/c"));
  for (const char* name : {"link/x", "up/x", "a/../../x", "link/x/y"}) {
    INFO(name);
    CHECK(refusal(folder.get(), name).find("Fix: ") != std::string::npos);
  }
  CHECK(refusal(folder.get(), "link/x").find("remove the symbolic link") != std::string::npos);
  CHECK_THROWS_AS(make_folder(folder.get(), "link", {}), Failure);
  close(::open((root / "in/file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  CHECK(refusal(folder.get(), "file/x").find("remove or rename it there") != std::string::npos);
  CHECK(fs::is_empty(root / "out"));
}

TEST_CASE("a folder gets its mode and time, and no more than the bits of access") {
  const test::TemporaryDirectory there("/tmp/urma-place-XXXXXX");
  const fs::path root = there.path();
  const File folder = open_folder(root.string());
  make_folder(folder.get(), "a",
              {.mode = 07750, .seconds = 1'000'000, .nanoseconds = 2'000'000'007});
  struct stat about {};
  REQUIRE(stat((root / "a").c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0750);
  CHECK(about.st_mtim.tv_sec == 1'000'000);
  CHECK(about.st_mtim.tv_nsec == 7);
}

}  // namespace
}  // namespace urma::apps::notify
