// SPDX-License-Identifier: Apache-2.0
// One end of a flow whose paths are added and removed. `moving DEVICE` receives, and prints its
// descriptor. `moving DEVICE DESCRIPTOR` sends writes of 16 KiB to that descriptor, each with its
// number. Each line on stdin is a command, and is answered by one line: "add DEVICE",
// "remove ADDRESS:PORT", "paths", "count", "end".

#include <poll.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "tests/descriptor.h"
#include "urma/urma.hpp"

namespace {

using namespace std::chrono_literals;
using namespace urma;

struct End {
  Device device;
  Segment memory;
  Jetty jetty;
  Imported target{};
  uint64_t posted = 0;
  uint64_t failed = 0;
  uint64_t ended = 0;           // works that have ended, or arrivals
  std::vector<uint8_t> seen{};  // arrivals, by number
  PeerId peer{};
};

// Posts further works if `more`, and counts arrivals.
void go_on(End& end, bool more) {
  const bool writes = end.target.segment.bytes > 0;
  const auto data = end.memory.bytes().first(16 << 10);
  while (writes && more &&
         end.jetty.post(
             write(data, end.target.segment).to(end.target.jetty).immediate(end.posted)) == 1) {
    ++end.posted;
  }
  for (const Completion& one : end.jetty.wait(1ms)) {
    ++end.ended;
    if (one.status != Status::ok) ++end.failed;
    if (writes) continue;
    end.peer = one.from;
    if (one.immediate >= end.seen.size()) end.seen.resize(one.immediate * 2 + 1);
    ++end.seen[one.immediate];
  }
}

std::string paths_of(End& end) {
  std::string out;
  const auto paths = end.device.paths(end.peer);
  if (!paths) return paths.error().message;
  for (const Path& path : *paths) {
    out += to_string(path.from) + " " + to_string(path.to) + (path.usable ? " usable " : " lost ") +
           std::to_string(path.sent) + ";";
  }
  return out;
}

std::string count(const End& end) {
  uint64_t once = 0;
  uint64_t again = 0;
  for (const uint8_t times : end.seen) {
    once += times == 1;
    again += times > 1;
  }
  return std::to_string(end.target.segment.bytes > 0 ? end.ended - end.failed : once) + " " +
         std::to_string(end.failed + again);
}

std::string obey(End& end, const std::string& line) {
  const std::string what = line.substr(0, line.find(' '));
  const std::string rest = line.size() > what.size() ? line.substr(what.size() + 1) : "";
  if (what == "add") {
    const auto place = end.device.add_path(rest);
    return place ? to_string(*place) : place.error().message;
  }
  if (what == "remove") {
    const auto place = parse_endpoint(rest);
    const auto removed = place ? end.device.remove_path(*place) : Result<void>(place.error());
    return removed.ok() ? "removed" : removed.error().message;
  }
  if (what == "paths") return paths_of(end);
  if (what == "count") return count(end);
  while (end.target.segment.bytes > 0 && end.ended < end.posted) go_on(end, false);
  return count(end);
}

int run(int count, char** arguments) {
  Device device = open(arguments[1]).value();
  Segment memory = device.allocate(1 << 20).value();
  Jetty jetty = device.jetty({.berths = 32, .receives = 256}).value();
  End end{std::move(device), std::move(memory), std::move(jetty)};
  if (count > 2) {
    end.target = end.device.import(arguments[2]).value();
    end.peer = end.target.segment.peer;
  } else {
    std::cout << test::descriptor_of(end.memory, end.jetty) << std::endl;
  }
  for (std::string line; line != "end";) {
    pollfd input{0, POLLIN, 0};
    go_on(end, true);
    if (::poll(&input, 1, 0) <= 0) continue;
    if (!std::getline(std::cin, line)) return 0;
    std::cout << obey(end, line) << std::endl;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  return run(count, arguments);
}
