// SPDX-License-Identifier: Apache-2.0
#include "engine/awaited_jfcs.h"

#include <poll.h>
#include <sys/resource.h>

#include <array>

#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::AwaitedJfcs;
using jetty::Jfc;
using jetty::Jfce;

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

// Makes a descriptor while this process may open no more files.
bool give_none(AwaitedJfcs& awaited, const std::shared_ptr<Jfc>& jfc) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &none);
  const bool given = awaited.give_descriptor(jfc);
  setrlimit(RLIMIT_NOFILE, &before);
  return given;
}

TEST_CASE("the end of a device makes the descriptors of all its awaited JFCs readable") {
  AwaitedJfcs awaited;
  awaited.ring();  // no queue is awaited
  const std::array jfcs = {std::make_shared<Jfc>(4), std::make_shared<Jfc>(4)};
  for (const auto& jfc : jfcs) {
    REQUIRE(awaited.give_descriptor(jfc));
    CHECK(jfc.use_count() == 1);
    CHECK_FALSE(is_readable(jfc->descriptor()));
  }
  const auto unawaited = std::make_shared<Jfc>(4);
  awaited.ring();
  for (const auto& jfc : jfcs) CHECK(is_readable(jfc->descriptor()));
  CHECK(unawaited->descriptor() < 0);
}

TEST_CASE("the end of a device notifies event channels of their JFCs") {
  AwaitedJfcs awaited;
  const auto events = std::make_shared<Jfce>();
  REQUIRE(events->make_descriptor());
  const std::array jfcs = {std::make_shared<Jfc>(4), std::make_shared<Jfc>(4)};
  awaited.attach(jfcs[0], events, 7);
  awaited.attach(jfcs[1], events, 8);
  CHECK_FALSE(is_readable(events->descriptor()));
  awaited.ring();
  CHECK(is_readable(events->descriptor()));
  std::array<uint64_t, 4> tags{};
  REQUIRE(events->take(tags) == 2);
  CHECK(tags[0] == 7);
  CHECK(tags[1] == 8);
}

TEST_CASE("a destroyed JFC is not awaited any longer") {
  AwaitedJfcs awaited;
  auto gone = std::make_shared<Jfc>(4);
  const auto events = std::make_shared<Jfce>();
  REQUIRE(events->make_descriptor());
  awaited.attach(gone, events, 7);
  const auto kept = std::make_shared<Jfc>(4);
  REQUIRE(awaited.give_descriptor(kept));
  gone.reset();
  awaited.ring();
  CHECK(is_readable(kept->descriptor()));
  CHECK_FALSE(is_readable(events->descriptor()));
}

TEST_CASE("the end of a device passes over a JFC without descriptor, which may get one later") {
  AwaitedJfcs awaited;
  const auto jfc = std::make_shared<Jfc>(4);
  CHECK_FALSE(give_none(awaited, jfc));
  CHECK(jfc->descriptor() < 0);
  const auto other = std::make_shared<Jfc>(4);
  REQUIRE(awaited.give_descriptor(other));
  awaited.ring();
  CHECK(is_readable(other->descriptor()));
  REQUIRE(awaited.give_descriptor(jfc));
  CHECK_FALSE(is_readable(jfc->descriptor()));
  awaited.ring();
  CHECK(is_readable(jfc->descriptor()));
}

}  // namespace
}  // namespace urma::test
