#include "engine/path_changes.h"

#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::Fills;
using engine::PathChanges;
using Found = PathChanges::Removal::Found;

Endpoint path_address(unsigned number) {
  return parse_endpoint("10.0.0." + std::to_string(number) + ":4791").value();
}

// A port that consists of several, and records what happens to them.
class SeveralPorts final : public IdlePort, public drivers::PathPorts {
 public:
  SeveralPorts() {
    facts_.self = path_address(0);
    facts_.paths = {path_address(0), path_address(1)};
  }
  const drivers::PortFacts& facts() const override { return facts_; }
  drivers::PathPorts* path_ports() override { return this; }

  Result<std::unique_ptr<Joining>> prepare(std::string_view) override {
    return Error{Status::unsupported, "not used here"};
  }
  void join(uint8_t place, Joining&) override { joined.push_back(place); }
  void stop(uint8_t place) override { stopped.push_back(place); }
  std::unique_ptr<drivers::PacketPort> part(uint8_t place) override {
    parted.push_back(place);
    return std::make_unique<IdlePort>();
  }

  std::vector<uint8_t> joined;
  std::vector<uint8_t> stopped;
  std::vector<uint8_t> parted;

 private:
  drivers::PortFacts facts_;
};

struct At final : drivers::PathPorts::Joining {
  explicit At(const Endpoint& at) : endpoint(at) {}
  const Endpoint& self() const override { return endpoint; }
  Endpoint endpoint;
};

struct PathDevice {
  bool add(unsigned number) {
    At at(path_address(number));
    return changes.add(at, now);
  }
  bool has(unsigned number) {
    const PathList& paths = engine.transport().paths();
    for (unsigned i = 0; i < paths.count; ++i) {
      if (paths.there(i) && paths.endpoints[i] == path_address(number)) return true;
    }
    return false;
  }

  Time now{1h};
  SeveralPorts port;
  Engine engine{std::make_unique<SeveralPorts>(), idle_settings(),
                std::make_unique<SeededEntropy>(1)};
  Fills fills;
  PathChanges changes{port, engine.transport(), fills};
};

TEST_CASE("a path gets the first number that is vacant, and there are at most eight") {
  PathDevice device;
  for (unsigned i = 2; i < most_paths; ++i) REQUIRE(device.add(i));
  CHECK(device.port.joined == std::vector<uint8_t>{2, 3, 4, 5, 6, 7});
  CHECK_FALSE(device.add(9));
  PathChanges::Removal removal;
  removal.place = path_address(3);
  REQUIRE(device.changes.remove(removal, device.now));
  CHECK(removal.found == Found::there);
  CHECK(removal.port != nullptr);
  CHECK_FALSE(device.has(3));
  CHECK(device.add(9));
  CHECK(device.port.joined.back() == 3);
  CHECK(device.has(9));
}

TEST_CASE("the port of a path is returned after all frames that were filled before have settled") {
  PathDevice device;
  device.fills.add(2);
  PathChanges::Removal removal;
  removal.place = path_address(1);
  CHECK_FALSE(device.changes.remove(removal, device.now));
  // Nothing is sent from there any more, and nothing is received.
  CHECK_FALSE(device.has(1));
  CHECK(device.port.stopped == std::vector<uint8_t>{1});
  device.fills.add(1);  // of the other path: it need not settle
  device.fills.settle(1);
  CHECK_FALSE(device.changes.remove(removal, device.now));
  CHECK(device.port.parted.empty());
  // The number is not used again before that, though the path has left.
  for (unsigned i = 2; i < most_paths; ++i) REQUIRE(device.add(i));
  CHECK(device.port.joined == std::vector<uint8_t>{2, 3, 4, 5, 6, 7});
  CHECK_FALSE(device.add(9));
  device.fills.settle(2);
  CHECK(device.changes.remove(removal, device.now));
  CHECK(device.port.parted == std::vector<uint8_t>{1});
  CHECK(removal.port != nullptr);
  CHECK(device.add(9));
  CHECK(device.port.stopped.size() == 1);
}

TEST_CASE("neither the last path nor one that the device does not have is removed") {
  PathDevice device;
  PathChanges::Removal unknown;
  unknown.place = path_address(7);
  CHECK(device.changes.remove(unknown, device.now));
  CHECK(unknown.found == Found::nowhere);
  PathChanges::Removal one;
  one.place = path_address(0);
  CHECK(device.changes.remove(one, device.now));
  PathChanges::Removal last;
  last.place = path_address(1);
  CHECK(device.changes.remove(last, device.now));
  CHECK(last.found == Found::last);
  CHECK(last.port == nullptr);
  CHECK(device.has(1));
  CHECK(device.port.stopped == std::vector<uint8_t>{0});
}

}  // namespace
}  // namespace urma::test
