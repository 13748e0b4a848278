// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/api/helpers.h"
#include "tests/runtime_directory.h"

namespace urma::test {
namespace {

bool works(Side& user, const Result<Imported>& imported) {
  if (!imported.ok()) return false;
  const auto bytes = bytes_like(100, 1);
  return run_one(user.jetty, write(bytes, imported->segment)).ok();
}

TEST_CASE("a name is found on this host, at its device's address, and at its device's port") {
  RuntimeDirectory directory;
  Side owner = Side::open("udp:127.0.0.211");
  Side user = Side::open("udp:");
  owner.device.publish("thing", owner.segment, owner.jetty, everyone()).value();
  CHECK(works(user, user.device.import("urma://localhost/thing")));
  CHECK(works(user, user.device.import("urma://127.0.0.211/thing")));
  CHECK(works(user, user.device.import("urma://127.0.0.211:4792/thing")));
  // The process that is bound to the UB port answers for all processes at its address.
  Side neighbour = Side::open("udp:127.0.0.211");
  REQUIRE(neighbour.device.endpoint().port != ub_port);
  neighbour.device.publish("other", neighbour.segment, everyone()).value();
  CHECK(works(user, user.device.import("urma://127.0.0.211:4792/other")));
  const std::string port = std::to_string(neighbour.device.endpoint().port);
  CHECK(works(user, user.device.import("urma://127.0.0.211:" + port + "/other")));
}

TEST_CASE("names may be published to this user here, to listed entities, or to everyone") {
  RuntimeDirectory directory;
  Side owner = Side::open("udp:127.0.0.212");
  Side user = Side::open("udp:127.0.0.213");
  Side stranger = Side::open("udp:127.0.0.214");
  owner.device.publish("mine", owner.segment).value();
  owner.device.publish("yours", owner.segment, Audience{.eids = {user.device.eid()}}).value();
  // These imports read the runtime directory, which belongs to this user.
  CHECK(works(user, user.device.import("urma://127.0.0.212/mine")));
  // These imports ask over the network, where the owner knows only the address of the importer.
  CHECK(user.device.import("urma://127.0.0.212:4792/mine", 300ms).status() == Status::not_found);
  CHECK(works(user, user.device.import("urma://127.0.0.212:4792/yours")));
  CHECK(stranger.device.import("urma://127.0.0.212:4792/yours", 300ms).status() ==
        Status::not_found);
}

TEST_CASE("a name may be asked for before it is published") {
  RuntimeDirectory directory;
  Side owner = Side::open("udp:127.0.0.215");
  Side user = Side::open("udp:");
  for (const char* url : {"urma://localhost/late", "urma://127.0.0.215:4792/late"}) {
    std::thread publisher([&] {
      std::this_thread::sleep_for(150ms);
      owner.device.publish("late", owner.segment, everyone()).value();
    });
    CHECK(works(user, user.device.import(url, 5s)));
    publisher.join();
    owner.device.unpublish("late").value();
  }
}

TEST_CASE("a device that asks its own loopback address finds the names of other devices there") {
  RuntimeDirectory directory;
  Side user = Side::open("udp:127.0.0.221");
  Side owner = Side::open("udp:127.0.0.222");
  std::thread publisher([&] {
    std::this_thread::sleep_for(150ms);
    owner.device.publish("thing", owner.segment, owner.jetty).value();
  });
  CHECK(works(user, user.device.import("urma://127.0.0.221/thing", 5s)));
  publisher.join();
  // Once the device publishes the name itself, an import finds its own publication first.
  user.device.publish("thing", user.segment, user.jetty).value();
  const auto own = user.device.import("urma://127.0.0.221/thing");
  REQUIRE(own.ok());
  CHECK(own->segment.token == user.device.import(user.segment.descriptor())->segment.token);
  // A device that holds another address finds only what is at the address that it asks.
  CHECK_FALSE(owner.device.import("urma://127.0.0.223/thing", 20ms).ok());
}

TEST_CASE("if a device asks its own address and the name is missing, the error says so") {
  RuntimeDirectory directory;
  Side user = Side::open("udp:127.0.0.224");
  for (const char* url : {"urma://127.0.0.224/nothing", "urma://127.0.0.224:4792/nothing"}) {
    const Error error = user.device.import(url, 20ms).error();
    CHECK(error.status == Status::not_found);
    INFO(error.message);
    CHECK(error.message.find("this device has the address 127.0.0.224:4792 itself") !=
          std::string::npos);
    CHECK(error.message.find("Fix: ") != std::string::npos);
    CHECK(error.message.find("udp:127.0.0.224:0") != std::string::npos);
  }
  // Follows the advice of the error.
  Side asks = Side::open("udp:127.0.0.224:0");
  REQUIRE(asks.device.endpoint().port != ub_port);
  user.device.publish("nothing", user.segment, user.jetty, everyone()).value();
  CHECK(works(asks, asks.device.import("urma://127.0.0.224:4792/nothing")));
}

TEST_CASE("import reports names that were not published and hosts without a device") {
  RuntimeDirectory directory;
  Side user = Side::open("udp:");
  Side owner = Side::open("udp:127.0.0.216");
  CHECK(user.device.import("urma://localhost/nothing", 50ms).status() == Status::not_found);
  CHECK(user.device.import("urma://127.0.0.216:4792/nothing", 300ms).status() == Status::not_found);
  CHECK(user.device.import("urma://127.0.0.217:4792/nothing", 300ms).status() ==
        Status::peer_unreachable);
}

TEST_CASE(
    "a name belongs to its device until it is withdrawn, and names of dead processes are free") {
  RuntimeDirectory directory;
  Side first = Side::open("udp:127.0.0.218");
  Side second = Side::open("udp:127.0.0.218");
  first.device.publish("taken", first.segment).value();
  CHECK(second.device.publish("taken", second.segment).status() == Status::address_in_use);
  first.device.unpublish("taken").value();
  CHECK(second.device.publish("taken", second.segment).ok());
  CHECK(second.device.publish("taken", second.segment).status() == Status::address_in_use);
  // The same name at another address is another name, so an import from "localhost" asks which one
  // is meant.
  Side elsewhere = Side::open("udp:127.0.0.219");
  elsewhere.device.publish("taken", elsewhere.segment).value();
  const auto which = elsewhere.device.import("urma://localhost/taken");
  CHECK(which.status() == Status::invalid_argument);
  CHECK(which.error().message.find("urma://127.0.0.219/taken") != std::string::npos);
  elsewhere.device.close();
  CHECK(works(first, first.device.import("urma://localhost/taken")));

  const pid_t child = fork();
  if (child == 0) {
    Side doomed = Side::open("udp:127.0.0.220");
    doomed.device.publish("orphan", doomed.segment).value();
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(first.device.import("urma://localhost/orphan", 50ms).status() == Status::not_found);
  Side heir = Side::open("udp:127.0.0.220");
  heir.device.publish("orphan", heir.segment).value();
  CHECK(works(first, first.device.import("urma://localhost/orphan")));
}

TEST_CASE("a runtime directory that others may enter is not trusted") {
  RuntimeDirectory directory;
  std::filesystem::create_directory(directory.path() / "urma");
  std::filesystem::permissions(directory.path() / "urma", std::filesystem::perms(0755));
  Side side = Side::open("udp:");
  const auto refused = side.device.publish("x", side.segment);
  CHECK(refused.status() == Status::permission_denied);
  CHECK(refused.error().message.find("0700") != std::string::npos);
}

// Returns the device string of a window of this test alone.
std::string window_in(const RuntimeDirectory& directory, const char* name) {
  return "cxl:" + (directory.path() / name).string() + "?size=8M";
}

TEST_CASE("names in a window are found in that window, and nowhere else") {
  RuntimeDirectory directory;
  const std::string window = window_in(directory, "one");
  Side owner = Side::open(window);
  Side user = Side::open(window);
  const std::string another = window_in(directory, "another");
  Side stranger = Side::open(another);
  Side neighbour = Side::open("fault():" + another);
  Side remote = Side::open("udp:");
  owner.device.publish("thing", owner.segment, owner.jetty).value();
  const std::string at = "[" + to_string(owner.device.endpoint().address) + "]";
  CHECK(works(user, user.device.import("urma://localhost/thing")));
  CHECK(works(user, user.device.import("urma://" + at + "/thing")));
  // The devices of each host find and reach the other devices of that host, although names are the
  // same on both hosts.
  remote.device.publish("thing", remote.segment).value();
  stranger.device.publish("thing", stranger.segment).value();
  CHECK(works(user, user.device.import("urma://localhost/thing")));
  CHECK(neighbour.device.import("urma://localhost/thing").ok());
  CHECK(works(remote, remote.device.import("urma://localhost/thing")));
  // Devices without files of names ask over the network.
  CHECK(user.device.import("urma://" + at + ":4792/thing", 300ms).status() == Status::not_found);
  owner.device.publish("open", owner.segment, everyone()).value();
  CHECK(works(user, user.device.import("urma://" + at + ":4792/open")));
}

TEST_CASE("if a device cannot reach a published name, the error says which device can") {
  RuntimeDirectory directory;
  Side inside = Side::open(window_in(directory, "one"));
  Side outside = Side::open("udp:");
  inside.device.publish("inner", inside.segment).value();
  outside.device.publish("outer", outside.segment).value();
  const Error inner = outside.device.import("urma://localhost/inner", 20ms).error();
  CHECK(inner.status == Status::not_found);
  CHECK(inner.message.ends_with("Fix: open cxl:" + (directory.path() / "one").string()));
  const Error outer = inside.device.import("urma://localhost/outer", 20ms).error();
  CHECK(outer.status == Status::not_found);
  CHECK(outer.message.ends_with("Fix: open udp:"));
}

TEST_CASE(
    "descriptors and addresses out of reach are refused immediately, naming the device to open") {
  RuntimeDirectory directory;
  Side inside = Side::open(window_in(directory, "one"));
  Side elsewhere = Side::open(window_in(directory, "another"));
  Side outside = Side::open("udp:");
  const auto refused = [](Side& side, const std::string& what) {
    const Error error = side.device.import(what, 10s).error();
    CHECK(error.status == Status::invalid_argument);
    INFO(error.message);
    return error.message.substr(error.message.find("Fix: "));
  };
  for (Side* side : {&inside, &elsewhere}) {
    CHECK(refused(*side, outside.segment.descriptor()) == "Fix: open udp:");
    CHECK(refused(*side, "urma://127.0.0.1/x") == "Fix: open udp:");
    CHECK(refused(*side, "urma://[::1]:4792/x").starts_with("Fix: open udp:["));
    CHECK(refused(*side, "urma://example.com/x").starts_with("Fix: open udp:"));
  }
  for (Side* side : {&elsewhere, &outside}) {
    CHECK(refused(*side, inside.segment.descriptor()).starts_with("Fix: open cxl:"));
    const std::string at = to_string(inside.device.endpoint().address);
    CHECK(refused(*side, "urma://[" + at + "]/x").starts_with("Fix: open cxl:"));
  }
}

TEST_CASE("a name in a simulated network is not looked for in other processes") {
  Side owner = Side::open("sim:names");
  Side user = Side::open("sim:names");
  const std::string there = "urma://[" + to_string(owner.device.endpoint().address) + "]/x";
  for (const std::string& url :
       {there, std::string("urma://[fd00::9]/x"), std::string("urma://localhost/x")}) {
    const Error error = user.device.import(url, 1s).error();
    INFO(error.message);
    CHECK(error.message.find("in the simulated network") != std::string::npos);
    CHECK(error.message.find("sim: reaches no other process") != std::string::npos);
  }
  owner.device.publish("x", owner.segment, owner.jetty).value();
  CHECK(user.device.import(there, 1s).ok());
}

TEST_CASE("import does not create the runtime directory") {
  RuntimeDirectory directory;
  Side asked = Side::open("udp:127.0.0.227");
  Side user = Side::open("udp:");
  CHECK(user.device.import("urma://127.0.0.227:4792/nothing", 200ms).status() == Status::not_found);
  CHECK(user.device.import("urma://localhost/nothing", 20ms).status() == Status::not_found);
  CHECK_FALSE(std::filesystem::exists(directory.path() / "urma"));
}

}  // namespace
}  // namespace urma::test
