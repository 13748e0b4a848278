// SPDX-License-Identifier: Apache-2.0
#include "engine/path_changes.h"

#include <vector>

#include "tests/catch.h"
#include "tests/drivers/idle_port.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::Fills;
using engine::PathChanges;
using Found = PathChanges::Removal::Found;

Endpoint path_address(unsigned number) {
  return {ipv4(10, 0, 0, static_cast<uint8_t>(number)), 4791};
}

// Ports that record what happens to them.
class RecordedPorts final : public drivers::PathPorts {
 public:
  Result<std::unique_ptr<Joining>> prepare(std::string_view) override {
    return Error{Status::unsupported, "not used here"};
  }
  void join(uint8_t number, Joining&) override { joined.push_back(number); }
  void stop(uint8_t number) override { stopped.push_back(number); }
  std::unique_ptr<drivers::PacketPort> part(uint8_t number) override {
    parted.push_back(number);
    return std::make_unique<IdlePort>();
  }

  std::vector<uint8_t> joined;
  std::vector<uint8_t> stopped;
  std::vector<uint8_t> parted;
};

// The list that peers receive. The test sets whether they have confirmed it.
class RecordedPaths final : public transport::AnnouncedPaths {
 public:
  RecordedPaths() {
    for (unsigned number = 0; number < 2; ++number) list_.set(number, path_address(number));
  }
  const PathList& paths() const override { return list_; }
  void announce_paths(const PathList& paths, Time) override { list_ = paths; }
  bool paths_confirmed() override { return confirmed; }
  void close_path(uint8_t number) override { closed.push_back(number); }

  bool confirmed = true;
  std::vector<uint8_t> closed;

 private:
  PathList list_;
};

struct At final : drivers::PathPorts::Joining {
  explicit At(const Endpoint& at) : endpoint(at) {}
  const Endpoint& self() const override { return endpoint; }
  Endpoint endpoint;
};

// A device that has the paths 0 and 1.
struct PathDevice {
  bool add(unsigned number) {
    At at(path_address(number));
    return changes.add(at, now);
  }
  bool has(unsigned number) {
    const PathList& paths = announced.paths();
    for (unsigned i = 0; i < paths.count; ++i) {
      if (paths.there(i) && paths.endpoints[i] == path_address(number)) return true;
    }
    return false;
  }

  Time now{1h};
  RecordedPorts ports;
  RecordedPaths announced;
  Fills fills;
  PathChanges changes{&ports, announced, fills};
};

TEST_CASE("a path gets the first number that is vacant, and there are at most eight") {
  PathDevice device;
  for (unsigned i = 2; i < most_paths; ++i) REQUIRE(device.add(i));
  CHECK(device.ports.joined == std::vector<uint8_t>{2, 3, 4, 5, 6, 7});
  CHECK_FALSE(device.add(9));
  PathChanges::Removal removal;
  removal.endpoint = path_address(3);
  REQUIRE(device.changes.remove(removal, device.now));
  CHECK(removal.found == Found::there);
  CHECK(removal.port != nullptr);
  CHECK_FALSE(device.has(3));
  CHECK(device.add(9));
  CHECK(device.ports.joined.back() == 3);
  CHECK(device.has(9));
}

TEST_CASE("a path is closed when the peers have confirmed the list without it, or after 50 ms") {
  PathDevice device;
  device.announced.confirmed = false;
  PathChanges::Removal removal;
  removal.endpoint = path_address(1);
  CHECK_FALSE(device.changes.remove(removal, device.now));
  CHECK_FALSE(device.has(1));  // nothing is sent from there any more
  CHECK_FALSE(device.changes.remove(removal, device.now + 49ms));
  CHECK(device.announced.closed.empty());
  CHECK(device.ports.stopped.empty());
  SECTION("confirmed") {
    device.announced.confirmed = true;
    // It is looked at every 250 us only.
    CHECK_FALSE(device.changes.remove(removal, device.now + 49ms + 249us));
    CHECK(device.changes.remove(removal, device.now + 49ms + 250us));
  }
  SECTION("not confirmed") { CHECK(device.changes.remove(removal, device.now + 50ms)); }
  CHECK(device.announced.closed == std::vector<uint8_t>{1});
  CHECK(device.ports.stopped == std::vector<uint8_t>{1});
  CHECK(device.ports.parted == std::vector<uint8_t>{1});
}

TEST_CASE("the port of a path is returned after all frames that were filled before have settled") {
  PathDevice device;
  device.fills.add(2);
  PathChanges::Removal removal;
  removal.endpoint = path_address(1);
  CHECK_FALSE(device.changes.remove(removal, device.now));
  // Nothing is sent from there any more, and nothing is received.
  CHECK_FALSE(device.has(1));
  CHECK(device.ports.stopped == std::vector<uint8_t>{1});
  device.fills.add(1);  // of the other path: it need not settle
  device.fills.settle(1);
  CHECK_FALSE(device.changes.remove(removal, device.now));
  CHECK(device.ports.parted.empty());
  // The number is not used again before that, though the path has left.
  for (unsigned i = 2; i < most_paths; ++i) REQUIRE(device.add(i));
  CHECK(device.ports.joined == std::vector<uint8_t>{2, 3, 4, 5, 6, 7});
  CHECK_FALSE(device.add(9));
  device.fills.settle(2);
  CHECK(device.changes.remove(removal, device.now));
  CHECK(device.ports.parted == std::vector<uint8_t>{1});
  CHECK(removal.port != nullptr);
  CHECK(device.add(9));
  CHECK(device.ports.stopped.size() == 1);
}

TEST_CASE("neither the last path nor one that the device does not have is removed") {
  PathDevice device;
  PathChanges::Removal unknown;
  unknown.endpoint = path_address(7);
  CHECK(device.changes.remove(unknown, device.now));
  CHECK(unknown.found == Found::nowhere);
  PathChanges::Removal one;
  one.endpoint = path_address(0);
  CHECK(device.changes.remove(one, device.now));
  PathChanges::Removal last;
  last.endpoint = path_address(1);
  CHECK(device.changes.remove(last, device.now));
  CHECK(last.found == Found::last);
  CHECK(last.port == nullptr);
  CHECK(device.has(1));
  CHECK(device.ports.stopped == std::vector<uint8_t>{0});
}

}  // namespace
}  // namespace urma::test
