// SPDX-License-Identifier: Apache-2.0
// Tests the answers of each call of each public class on an object that was moved from, on an
// object whose device was closed, and in a child of fork, to which the device does not belong.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "tests/api/helpers.h"
#include "tests/sanitized.h"

namespace urma::test {
namespace {

// One object of each class, of one device.
struct Objects {
  Device device = urma::open("udp:").value();
  Segment segment = device.allocate(4096).value();
  Jetty jetty = device.jetty({.berths = 4, .receives = 4}).value();
  Jfr jfr = device.jfr({.receives = 4}).value();
  JettyGroup group = device.jetty_group().value();
  Jfc jfc = device.jfc(16).value();
  Jfce jfce = device.jfce().value();
  Import import = device.start_import("urma://localhost/unusable-test", {.limit = 1h}).value();

  // Lanes are to memory that a device in a window maps.
  std::unique_ptr<WindowFile> window = std::make_unique<WindowFile>("unusable");
  Device mapping = urma::open(window->device("?size=16M")).value();
  Segment mapped = mapping.allocate(4096, Rights::write).value();
  Jetty mapping_jetty = mapping.jetty().value();
  Lane lane = mapping_jetty.lane(mapped.local()).value();
};

// The message of the last error that a call returned.
std::string message;

template <class T>
std::string says(const Result<T>& result) {
  if (!result) message = result.error().message;
  return std::string(name(result.status()));
}
std::string says(Status status) { return std::string(name(status)); }
std::string says(bool answer) { return answer ? "true" : "false"; }
std::string says(uint64_t answer) { return std::to_string(answer); }
std::string says(const std::string& text) { return text.empty() ? "empty" : "text"; }
std::string says(std::span<const Completion> completions) {
  std::string all = std::to_string(completions.size());
  for (const Completion& one : completions) all += " " + std::string(name(one.status));
  return all;
}
template <class Queue>
std::string polled(Queue& queue) {
  std::array<Completion, 4> out;
  return says(std::span<const Completion>(out).first(queue.poll(out)));
}
template <class Remote>
std::string reaches(const Remote& remote) {
  return remote.peer ? "peer" : "empty";
}

// The expected answers on an object that was moved from, after close, and in a child of fork. An
// empty text means that the call answers as usual.
struct Call {
  const char* name;
  std::function<std::string(Objects&)> call;
  const char* moved;
  const char* closed;
  const char* forked;
};

std::array<std::byte, 64> memory;
uint64_t word = 0;
const Buffer buffer{memory.data(), memory.size()};
const std::string line = "urma://localhost/unusable-test";

// Errors of control calls.
#define URMA_CONTROL(name, expression)                                               \
  {                                                                                  \
    name, [](Objects& on) { return says(expression); }, "closed", "closed", "forked" \
  }
// A call that answers as usual after close, and in a child.
#define URMA_VALUE(name, expression, moved)                           \
  {                                                                   \
    name, [](Objects& on) { return says(expression); }, moved, "", "" \
  }

const std::vector<Call> calls = {
    URMA_CONTROL("Device::allocate", on.device.allocate(64)),
    URMA_CONTROL("Device::allocate", on.device.allocate(64, Rights::read)),
    URMA_CONTROL("Device::register_memory", on.device.register_memory(memory)),
    URMA_CONTROL("Device::register_memory", on.device.register_memory(memory, Rights::read)),
    URMA_CONTROL("Device::paths", on.device.paths({})),
    URMA_CONTROL("Device::endpoint", on.device.endpoint(PeerId{})),
    URMA_CONTROL("Device::add_path", on.device.add_path("udp:127.0.0.241")),
    URMA_CONTROL("Device::remove_path", on.device.remove_path({})),
    URMA_CONTROL("Device::quarantined", on.device.quarantined()),
    URMA_CONTROL("Device::jetty", on.device.jetty()),
    URMA_CONTROL("Device::jfr", on.device.jfr()),
    URMA_CONTROL("Device::jetty_group", on.device.jetty_group()),
    URMA_CONTROL("Device::jfc", on.device.jfc(8)),
    URMA_CONTROL("Device::jfce", on.device.jfce()),
    {"Device::events",
     [](Objects& on) {
       std::array<Event, 16> out;
       const size_t count = on.device.events(out);
       return count > 0 ? std::string(name(out[count - 1].kind)) : "0";
     },
     "closed", "closed", "0"},
    URMA_CONTROL("Device::events_fd", on.device.events_fd()),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.segment, on.jetty)),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.segment)),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.jetty)),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.segment, on.jfr)),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.jfr)),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.segment, on.group)),
    URMA_CONTROL("Device::publish", on.device.publish("a", on.group)),
    URMA_CONTROL("Device::unpublish", on.device.unpublish("a")),
    URMA_CONTROL("Device::import", on.device.import(line)),
    URMA_CONTROL("Device::import", on.device.import(line, 1s)),
    URMA_CONTROL("Device::start_import", on.device.start_import(line)),
    URMA_VALUE("Device::endpoint", on.device.endpoint() == Endpoint{}, "true"),
    URMA_VALUE("Device::endpoints", on.device.endpoints().size(), "0"),
    URMA_VALUE("Device::eid", on.device.eid() == Eid{}, "true"),
    URMA_VALUE("Device::datagram_bytes", uint64_t{on.device.datagram_bytes()}, "0"),
    URMA_VALUE("Device::description", on.device.description(), "empty"),
    URMA_VALUE("Device::congestion_choices", on.device.congestion_choices().size(), "0"),
    URMA_CONTROL("Device::settings", on.device.settings()),
    URMA_CONTROL("Device::stats", on.device.stats()),
    URMA_CONTROL("Device::profile", on.device.profile()),
    {"Device::close", [](Objects& on) { return on.device.close(), "returns"; }, "returns",
     "returns", "returns"},

    URMA_VALUE("Segment::bytes", on.segment.bytes().size(), "0"),
    URMA_VALUE("Segment::rights", on.segment.rights() == Rights::local_only, "true"),
    URMA_VALUE("Segment::atomics", on.segment.atomics() == AtomicDomain::processor, "true"),
    URMA_VALUE("Segment::mapped", on.segment.mapped(), "false"),
    URMA_VALUE("Segment::descriptor", on.segment.descriptor(), "empty"),
    {"Segment::local", [](Objects& on) { return reaches(on.segment.local()); }, "empty", "empty",
     "empty"},
    URMA_CONTROL("Segment::rotate", on.segment.rotate()),
    URMA_CONTROL("Segment::retire", on.segment.retire()),
    URMA_CONTROL("Segment::unregister", on.segment.unregister()),
    URMA_CONTROL("Segment::revoke", on.segment.revoke()),

    URMA_CONTROL("Import::poll", on.import.poll().value()),
    {"Import::fd", [](Objects& on) { return says(on.import.fd()); }, "closed", "ok", "forked"},

    {"Jfc::poll", [](Objects& on) { return polled(on.jfc); }, "1 closed", "1 closed", "1 forked"},
    {"Jfc::wait", [](Objects& on) { return says(on.jfc.wait(10s)); }, "1 closed", "1 closed",
     "1 forked"},
    URMA_CONTROL("Jfc::fd", on.jfc.fd()),
    {"Jfc::arm", [](Objects& on) { return says(on.jfc.arm()); }, "false", "false", "false"},

    {"Jetty::post",
     [](Objects& on) {
       const std::array works{send(memory, RemoteJetty{}), send(memory, RemoteJetty{})};
       return says(uint64_t{on.jetty.post(works)});
     },
     "0", "0", "0"},
    {"Jetty::post",
     [](Objects& on) { return says(uint64_t{on.jetty.post(send(memory, RemoteJetty{}))}); }, "0",
     "0", "0"},
    {"Jetty::post",
     [](Objects& on) { return says(uint64_t{on.jetty.post({send(memory, RemoteJetty{})})}); }, "0",
     "0", "0"},
    {"Jetty::receive", [](Objects& on) { return says(on.jetty.receive(memory)); }, "false", "false",
     "false"},
    {"Jetty::receive", [](Objects& on) { return says(on.jetty.receive(std::span(&buffer, 1))); },
     "false", "false", "false"},
    {"Jetty::poll", [](Objects& on) { return polled(on.jetty); }, "1 closed", "1 closed",
     "1 forked"},
    {"Jetty::wait", [](Objects& on) { return says(on.jetty.wait(10s)); }, "1 closed", "1 closed",
     "1 forked"},
    URMA_CONTROL("Jetty::fd", on.jetty.fd()),
    {"Jetty::arm", [](Objects& on) { return says(on.jetty.arm()); }, "false", "false", "false"},
    URMA_VALUE("Jetty::vacant_berths", uint64_t{on.jetty.vacant_berths()}, "0"),
    URMA_VALUE("Jetty::vacant_receives", uint64_t{on.jetty.vacant_receives()}, "0"),
    URMA_CONTROL("Jetty::flush", on.jetty.flush()),
    URMA_CONTROL("Jetty::suspend", on.jetty.suspend()),
    URMA_CONTROL("Jetty::reset", on.jetty.reset()),
    URMA_CONTROL("Jetty::lane", on.mapping_jetty.lane({})),
    URMA_VALUE("Jetty::id", uint64_t{number(on.jetty.id())}, "0"),
    URMA_VALUE("Jetty::descriptor", on.jetty.descriptor(), "empty"),
    {"Jetty::local", [](Objects& on) { return reaches(on.jetty.local()); }, "empty", "empty",
     "empty"},

    URMA_CONTROL("Lane::write", on.lane.write(memory, 0)),
    URMA_CONTROL("Lane::read", on.lane.read(memory, 0)),
    URMA_CONTROL("Lane::fetch_add", on.lane.fetch_add(0, 1, word)),
    URMA_CONTROL("Lane::swap", on.lane.swap(0, 1, word)),
    URMA_CONTROL("Lane::compare_swap", on.lane.compare_swap(0, 0, 1, word)),

    {"Jfr::receive", [](Objects& on) { return says(on.jfr.receive(memory)); }, "false", "false",
     "false"},
    {"Jfr::receive", [](Objects& on) { return says(on.jfr.receive(std::span(&buffer, 1))); },
     "false", "false", "false"},
    {"Jfr::poll", [](Objects& on) { return polled(on.jfr); }, "1 closed", "1 closed", "1 forked"},
    {"Jfr::wait", [](Objects& on) { return says(on.jfr.wait(10s)); }, "1 closed", "1 closed",
     "1 forked"},
    URMA_CONTROL("Jfr::fd", on.jfr.fd()),
    URMA_CONTROL("Jfr::flush", on.jfr.flush()),
    URMA_CONTROL("Jfr::reset", on.jfr.reset()),
    {"Jfr::arm", [](Objects& on) { return says(on.jfr.arm()); }, "false", "false", "false"},
    URMA_VALUE("Jfr::vacant_receives", uint64_t{on.jfr.vacant_receives()}, "0"),
    URMA_VALUE("Jfr::id", uint64_t{number(on.jfr.id())}, "0"),
    URMA_VALUE("Jfr::descriptor", on.jfr.descriptor(), "empty"),
    {"Jfr::local", [](Objects& on) { return reaches(on.jfr.local()); }, "empty", "empty", "empty"},

    URMA_CONTROL("JettyGroup::add", on.group.add(on.jetty)),
    URMA_CONTROL("JettyGroup::remove", on.group.remove(on.jetty)),
    URMA_VALUE("JettyGroup::id", uint64_t{number(on.group.id())}, "0"),
    URMA_VALUE("JettyGroup::descriptor", on.group.descriptor(), "empty"),
    {"JettyGroup::local", [](Objects& on) { return reaches(on.group.local()); }, "empty", "empty",
     "empty"},

    URMA_CONTROL("Jfce::attach", on.jfce.attach(on.jetty, 1)),
    URMA_CONTROL("Jfce::attach", on.jfce.attach(on.jfr, 2)),
    URMA_CONTROL("Jfce::attach", on.jfce.attach(on.jfc, 3)),
    URMA_VALUE("Jfce::fd", on.jfce.fd() == -1, "true"),
    {"Jfce::take",
     [](Objects& on) {
       std::array<uint64_t, 4> tags;
       return says(uint64_t{on.jfce.take(tags)});
     },
     "0", "0", "0"},
    {"Jfce::wait", [](Objects& on) { return says(uint64_t{on.jfce.wait(10ms).size()}); }, "0", "0",
     "0"},
};

// Checks that an error names the failed call as the caller wrote it, and says what to do.
bool message_is_wrong(const Call& call) {
  const std::string_view whole = call.name;
  const std::string begins = std::string(whole.substr(whole.rfind(':') + 1)) + ": ";
  return !message.empty() &&
         (!message.starts_with(begins) || message.find(". Fix: ") == message.npos);
}

// Counts the calls whose answer is not the expected one, and prints each.
int wrong_answers(Objects& objects, const char* Call::*expected, const char* when) {
  int wrong = 0;
  for (const Call& one : calls) {
    message.clear();
    const std::string answer = one.call(objects);
    const std::string wanted = one.*expected;
    if (message_is_wrong(one)) {
      std::fprintf(stderr, "%s, %s: says \"%s\"\n", when, one.name, message.c_str());
      ++wrong;
    }
    if (wanted.empty() || answer == wanted) continue;
    std::fprintf(stderr, "%s, %s: answers %s, not %s\n", when, one.name, answer.c_str(),
                 wanted.c_str());
    ++wrong;
  }
  return wrong;
}

TEST_CASE("each call on an object that was moved from returns what urma.hpp says") {
  Objects objects;
  {
    const Objects moved_to = std::move(objects);
    CHECK(wrong_answers(objects, &Call::moved, "moved from") == 0);
  }
  // The object may be assigned to, and can then be used again.
  objects = Objects();
  CHECK(objects.segment.unregister().ok());
  CHECK(objects.jetty.flush().ok());
}

TEST_CASE("after the device was closed each call returns what urma.hpp says") {
  Objects objects;
  objects.device.close();
  objects.mapping.close();
  CHECK(wrong_answers(objects, &Call::closed, "after close") == 0);
}

TEST_CASE("in a child of fork each call returns what urma.hpp says") {
  Objects objects;
  const pid_t child = fork();
  if (child == 0) _exit(std::min(wrong_answers(objects, &Call::forked, "in a child"), 100));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("an object that was moved from is refused as an argument") {
  Objects objects;
  Objects others;
  { const Objects moved_to = std::move(others); }
  const auto refused = [](const auto& result) {
    INFO(says(result));
    CHECK(result.status() == Status::invalid_argument);
    CHECK(message.find(". Fix: ") != message.npos);
  };
  refused(objects.device.publish("a", others.segment));
  refused(objects.device.publish("a", others.jetty));
  refused(objects.device.publish("a", others.jfr));
  refused(objects.device.publish("a", objects.segment, others.jetty));
  refused(objects.device.publish("a", others.segment, objects.jetty));
  refused(objects.device.publish("a", objects.segment, others.jfr));
  refused(objects.jfce.attach(others.jetty, 1));
  refused(objects.jfce.attach(others.jfr, 1));
  refused(objects.jfce.attach(others.jfc, 1));
  refused(objects.device.jetty({.completions = &others.jfc}));
  refused(objects.device.jetty({.receives_from = &others.jfr}));
  refused(objects.device.jfr({.completions = &others.jfc}));
  refused(objects.device.allocate(64, {.with = &others.segment}));
  refused(objects.device.register_memory(memory, {.with = &others.segment}));
  // A name cannot describe memory of one device and a Jetty of another either.
  const Objects foreign;
  refused(objects.device.publish("a", foreign.segment, objects.jetty));
  refused(objects.device.publish("a", objects.segment, foreign.jetty));
}

TEST_CASE("each public method is among the calls that this test makes on unusable objects") {
  std::ifstream header(URMA_SOURCE_DIR "/urma/urma.hpp");
  REQUIRE(header);
  const std::regex opens("^class URMA_API (\\w+) \\{");
  const std::regex method(
      "^  (?:\\[\\[nodiscard\\]\\] )?(?!static |friend )[\\w:<>&* ]+ (\\w+)\\(.*");
  std::set<std::string> tried;
  for (const Call& one : calls) tried.insert(one.name);
  std::string in;
  size_t methods = 0;
  for (std::string text; std::getline(header, text);) {
    std::smatch found;
    if (std::regex_search(text, found, opens)) in = found[1];
    if (text.find("private:") != text.npos || text == "};") in.clear();
    if (in.empty() || !std::regex_match(text, found, method)) continue;
    ++methods;
    INFO(in << "::" << found[1]);
    CHECK(tried.count(in + "::" + std::string(found[1])) == 1);
  }
  CHECK(methods >= calls.size());
}

}  // namespace
}  // namespace urma::test
