// SPDX-License-Identifier: Apache-2.0
// Imports that do not block (Device::start_import).

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/api/helpers.h"
#include "tests/runtime_directory.h"

namespace urma::test {
namespace {

using Outcome = std::optional<Result<Imported>>;

// Polls when the descriptor says so, until the result is there.
Result<Imported> await(Import& import) {
  const int descriptor = import.fd().value();
  Outcome outcome;
  while (!(outcome = import.poll())) REQUIRE(readable(descriptor));
  CHECK_FALSE(readable(descriptor, 0));
  return *outcome;
}

bool works(Side& user, const Result<Imported>& imported) {
  if (!imported.ok()) return false;
  const auto bytes = bytes_like(100, 1);
  return run_one(user.jetty, write(bytes, imported->segment)).ok();
}

// Where a name of a publisher with this address is looked for: in the directory, in the directory
// and over the network, and over the network alone.
std::vector<std::string> locations(std::string_view driver, const Endpoint& at) {
  if (driver != "udp:") return {"urma://localhost/"};
  const std::string address = to_string(at.address);
  return {"urma://localhost/", "urma://" + address + "/", "urma://" + to_string(at) + "/"};
}

TEST_CASE("a started import finds a descriptor, a name, and a name that is published later") {
  RuntimeDirectory directory;
  for (const std::string_view driver : media) {
    for (const Threads threads : {Threads::automatic, Threads::served, Threads::inlined}) {
      Medium medium(driver == "udp:" ? "udp:127.0.0.221" : driver);
      Side owner = Side::open(medium.text(), {.threads = Threads::served});
      Side user = Side::open(driver == "udp:" ? "udp:" : medium.text(), {.threads = threads});
      Import line = user.device.start_import(owner.line()).value();
      CHECK(works(user, await(line)));
      owner.device.publish("thing", owner.segment, owner.jetty, everyone()).value();
      for (const std::string& where : locations(driver, owner.device.endpoint())) {
        Import now = user.device.start_import(where + "thing", {.limit = patience}).value();
        CHECK(works(user, await(now)));
        const std::string name = "late";
        Import later = user.device.start_import(where + name, {.limit = patience}).value();
        for (int i = 0; i < 3; ++i) {
          REQUIRE_FALSE(later.poll());
          REQUIRE(readable(later.fd().value()));
        }
        REQUIRE_FALSE(later.poll());
        owner.device.publish(name, owner.segment, everyone()).value();
        const auto found = await(later);
        CHECK(works(user, found));
        CHECK_FALSE(found->jetty);
        // The result stays.
        CHECK(later.poll()->value().segment.address == found->segment.address);
        owner.device.unpublish(name).value();
      }
    }
  }
}

TEST_CASE("many imports of one thread are in progress at the same time") {
  RuntimeDirectory directory;
  Side owner = Side::open("udp:127.0.0.222", {.threads = Threads::served});
  Side user = Side::open("udp:");
  std::vector<Import> all;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "/n" + std::to_string(i % 20);
    const std::string at = i < 20 ? "localhost" : to_string(owner.device.endpoint());
    all.push_back(user.device.start_import("urma://" + at + name, {.limit = patience}).value());
    CHECK_FALSE(all.back().poll());
  }
  for (int i = 0; i < 20; ++i) {
    owner.device.publish("n" + std::to_string(i), owner.segment, everyone()).value();
  }
  for (Import& import : all) CHECK(await(import).ok());
}

TEST_CASE("a started import ends at its limit with the error of import") {
  RuntimeDirectory directory;
  Side owner = Side::open("udp:127.0.0.223", {.threads = Threads::served});
  Side user = Side::open("udp:");
  const std::string port = ":" + std::to_string(owner.device.endpoint().port);
  for (const std::string what : {"urma://localhost/none", "urma://127.0.0.223/none",
                                 "urma://127.0.0.223:4792/none", "urma://127.0.0.224:9/none"}) {
    for (const Duration limit : {Duration(0ms), Duration(60ms)}) {
      const auto blocking = user.device.import(what, limit);
      Import import = user.device.start_import(what, {.limit = limit}).value();
      const auto ended = await(import);
      REQUIRE_FALSE(ended.ok());
      CHECK(ended.status() == blocking.status());
      CHECK(ended.error().message == blocking.error().message);
      CHECK(import.poll()->status() == ended.status());
    }
  }
}

TEST_CASE("an import goes on when its publisher dies, and finds the next one") {
  RuntimeDirectory directory;
  for (const bool over_network : {false, true}) {
    Side user = Side::open("udp:");
    std::optional<Side> owner = Side::open("udp:127.0.0.225", {.threads = Threads::served});
    const Endpoint at = owner->device.endpoint();
    const std::string host = over_network ? to_string(at) : "localhost";
    Import import = user.device.start_import("urma://" + host + "/x", {.limit = patience}).value();
    for (int i = 0; i < 5; ++i) {
      REQUIRE_FALSE(import.poll());
      REQUIRE(readable(import.fd().value()));
    }
    owner.reset();
    REQUIRE_FALSE(import.poll());
    owner = Side::open("udp:127.0.0.225", {.threads = Threads::served});
    REQUIRE(owner->device.endpoint() == at);
    owner->device.publish("x", owner->segment, everyone()).value();
    CHECK(works(user, await(import)));
  }
}

TEST_CASE("start_import refuses what no wait can cure") {
  Side user = Side::open("udp:");
  const auto refused = [&](std::string_view what, const ImportOptions& options = {}) {
    return user.device.start_import(what, options).status();
  };
  CHECK(refused("urma://localhost") == Status::invalid_argument);
  CHECK(refused("urma://localhost/a b") == Status::invalid_argument);
  CHECK(refused("urma1 at=nowhere") == Status::invalid_argument);
  CHECK(refused("urma://[::1]/x") == Status::invalid_argument);
  CHECK(refused("urma://localhost/x", {.limit = -1ns}) == Status::invalid_argument);
  user.device.close();
  CHECK(refused("urma://localhost/x") == Status::closed);
}

TEST_CASE("a started import may be dropped at any time, and ends with its device") {
  RuntimeDirectory directory;
  for (const char* what : {"urma://localhost/none", "urma://127.0.0.226:4792/none"}) {
    Side user = Side::open("udp:");
    { const auto unpolled = user.device.start_import(what).value(); }
    std::optional<Import> import = user.device.start_import(what, {.limit = patience}).value();
    CHECK_FALSE(import->poll());
    import.reset();
    CHECK(user.device.stats().ok());  // the engine runs on without the import

    import = user.device.start_import(what, {.limit = patience}).value();
    CHECK_FALSE(import->poll());
    std::thread closer([&] { user.device.close(); });
    Outcome outcome;
    while (!(outcome = import->poll())) REQUIRE(readable(import->fd().value()));
    CHECK(outcome->status() == Status::closed);
    closer.join();
    CHECK(import->fd().ok());

    Import other = std::move(*import);
    CHECK(import->poll()->status() == Status::closed);
    CHECK(import->fd().status() == Status::closed);
    CHECK(other.fd().ok());
  }
}

TEST_CASE("a child of fork can neither poll an import nor disturb its parent's") {
  RuntimeDirectory directory;
  Side owner = Side::open("udp:127.0.0.227", {.threads = Threads::served});
  Side user = Side::open("udp:");
  const std::string what = "urma://" + to_string(owner.device.endpoint()) + "/x";
  std::optional<Import> import = user.device.start_import(what, {.limit = patience}).value();
  CHECK_FALSE(import->poll());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool forked =
        import->poll()->status() == Status::forked && import->fd().status() == Status::forked;
    import.reset();
    _exit(forked ? 0 : 1);
  }
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  CHECK(how == 0);
  owner.device.publish("x", owner.segment, everyone()).value();
  CHECK(await(*import).ok());
}

TEST_CASE("in a simulated network each poll of an import advances the time") {
  Device owner = urma::open("sim:imports").value();
  Device user = urma::open("sim:imports").value();
  Segment segment = owner.allocate(4096).value();
  owner.publish("x", segment).value();
  const std::string there = "urma://[" + to_string(owner.endpoint().address) + "]/";
  for (const bool published : {true, false}) {
    const std::string what = there + (published ? "x" : "none");
    Import import = user.start_import(what, {.limit = 20ms}).value();
    CHECK(import.fd().status() == Status::unsupported);
    Outcome outcome;
    while (!(outcome = import.poll())) {
    }
    CHECK(outcome->ok() == published);
  }
}

}  // namespace
}  // namespace urma::test
