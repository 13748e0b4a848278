// SPDX-License-Identifier: Apache-2.0
#include "engine/name_files.h"

#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/drivers/window_file.h"
#include "tests/runtime_directory.h"
#include "tests/unit/mentions.h"

namespace urma::test {
namespace {

using engine::NameFiles;
using engine::Publication;

// A directory of names of this test alone.
struct Names {
  RuntimeDirectory directory;
  const std::filesystem::path path = directory.path();
  std::vector<NameFiles::Held> held;

  void publish(const Eid& at, const std::string& line, const std::string& device) {
    const Publication publication{.line = line, .audience = {}, .device = device};
    held.push_back(
        NameFiles::of_this_user().publish(Endpoint{at, ub_port}, "x", publication).value());
  }
  Result<Publication> find(const Eid& from, std::optional<Eid> at = {},
                           const std::string& device = "") const {
    const auto admits = [&at](const Eid& one) { return !at || *at == one; };
    return NameFiles::of_this_user().find({from, device}, admits, "x");
  }
};

const Eid v4 = ipv4(127, 0, 0, 1);
const Eid v6 = parse_address("::1").value();
const Eid in_one = parse_address("fd75:726d:6111:2222:3333:4444:5500:1").value();
const Eid also_in_one = parse_address("fd75:726d:6111:2222:3333:4444:5500:2").value();
const Eid in_another = parse_address("fd75:726d:6199:2222:3333:4444:5500:1").value();

TEST_CASE("a name is found only where the device reaches it") {
  Names names;
  names.publish(in_one, "in one", "cxl:/one");
  names.publish(v4, "by udp", "udp:");
  names.publish(in_another, "in another", "cxl:/another");
  CHECK(names.find(also_in_one)->line == "in one");
  CHECK(names.find(in_one)->line == "in one");
  CHECK(names.find(in_another)->line == "in another");
  CHECK(names.find(ipv4(10, 0, 0, 1))->line == "by udp");
  CHECK(names.find(also_in_one, in_one)->line == "in one");
  names.publish(also_in_one, "twice", "cxl:/one");
  const Error which = names.find(in_one).error();
  CHECK(which.status == Status::invalid_argument);
  CHECK(mentions(which.message, "urma://[" + to_string(in_one) + "]/x"));
  CHECK(mentions(which.message, "urma://[" + to_string(also_in_one) + "]/x"));
  CHECK_FALSE(mentions(which.message, "127.0.0.1"));
}

TEST_CASE("if no name is in reach, the error lists names elsewhere and how to reach them") {
  Names names;
  const Error nowhere = names.find(v4).error();
  CHECK(nowhere.status == Status::not_found);
  CHECK(mentions(nowhere.message, "another XDG_RUNTIME_DIR"));
  names.publish(in_one, "in one", "cxl:/one");
  names.publish(also_in_one, "in one", "cxl:/one");
  for (const Eid& from : {v4, v6, in_another}) {
    const Error elsewhere = names.find(from).error();
    CHECK(elsewhere.status == Status::not_found);
    CHECK(mentions(elsewhere.message, to_string(in_one)));
    CHECK(mentions(elsewhere.message, to_string(also_in_one)));
    CHECK(elsewhere.message.ends_with("Fix: open cxl:/one"));
  }
  names.publish(v4, "by udp", "udp:");
  CHECK(names.find(in_another).error().message.ends_with("Fix: open cxl:/one or udp:"));
  CHECK(names.find(v4).ok());
}

// Two containers that share XDG_RUNTIME_DIR and not /dev/shm: the same device string opens another
// window in each.
TEST_CASE("a window of the same device string but another file is named as the cause") {
  Names names;
  names.publish(in_one, "in one", "cxl:");
  const Error apart = names.find(in_another, {}, "cxl:").error();
  CHECK(apart.status == Status::not_found);
  CHECK(mentions(apart.message, to_string(in_one)));
  CHECK(mentions(apart.message, "opened as cxl:, as this device's was"));
  CHECK(mentions(apart.message, "another /dev/shm"));
  const std::string uid = std::to_string(geteuid());
  CHECK(apart.message.ends_with("Fix: open cxl:" + (names.path / "urma-window-").string() + uid +
                                " on both sides"));
  // The advice for other device strings stays as it is, even if a device with the same string is
  // out of reach.
  CHECK(names.find(in_another, {}, "cxl:/x").error().message.ends_with("Fix: open cxl:"));
  names.publish(v4, "by udp", "udp:");
  CHECK(names.find(in_another, {}, "cxl:").error().message.ends_with("Fix: open udp:"));
}

// Returns the path of the file of "x" at this address in the present network namespace.
std::filesystem::path file_of(const Names& names, const Eid& at) {
  const std::string file = in_window(at) ? "x" : "x@" + engine::network_namespace();
  return names.path / "urma/names" / to_string(at) / file;
}

TEST_CASE("names at addresses differ between network namespaces, and names in windows do not") {
  Names names;
  names.publish(v4, "line", "udp:");
  names.publish(in_one, "line", "cxl:");
  CHECK(names.find(v4).ok());
  for (const Eid& at : {v4, in_one}) {
    std::ifstream file(file_of(names, at));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    CHECK(text.starts_with("line\n"));
    CHECK((text.find("netns") == text.npos) == in_window(at));
  }
  // A new namespace may get the number of one that has ended.
  std::ofstream(file_of(names, v4)) << "line\nnetns 1\n";
  CHECK(names.find(v4).status() == Status::not_found);
  CHECK(names.find(in_one).ok());
}

// Containers that share a directory of names each have their own 127.0.0.1.
TEST_CASE("two network namespaces publish the same name at the same address, and find their own") {
  constexpr int cannot = 77;
  Names names;
  names.publish(v4, "first", "udp:");
  NameFiles files = NameFiles::of_this_user();
  const int result = in_child([&] {
    if (unshare(CLONE_NEWNET) != 0) return cannot;
    if (names.find(v4).status() != Status::not_found || !files.all(v4).empty()) return 1;
    const Publication second{.line = "second", .audience = {}, .device = "udp:"};
    const auto held = files.publish(Endpoint{v4, ub_port}, "x", second);
    if (!held) return 2;
    if (names.find(v4)->line != "second" || files.all(v4).at("x").line != "second") return 3;
    return files.publish(Endpoint{v4, ub_port}, "x", second).status() == Status::address_in_use ? 0
                                                                                                : 4;
  });
  if (result == cannot) {
    WARN("skipped: this process may not have a network namespace");
    return;
  }
  CHECK(result == 0);
  CHECK(names.find(v4)->line == "first");
  CHECK(files.all(v4).size() == 1);
}

}  // namespace
}  // namespace urma::test
