// SPDX-License-Identifier: Apache-2.0
#include "apps/common/server_threads.h"

#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace urma::apps {

TEST_CASE("a named device on which no server can be made ends the program") {
  const std::vector<std::string> named{"good", "bad"};
  std::vector<std::string> lines;
  const auto make = [](const std::string& device) {
    if (device == "bad") throw Failure(Exit::peer_lost, "it is bad");
    return device;
  };
  const auto complain = [&](const std::string& line) { lines.push_back(line); };
  CHECK_THROWS_AS(make_servers(named, make, complain), Failure);
  CHECK(make_servers(std::span(named).first(1), make, complain) ==
        std::vector<std::string>{"good"});
  CHECK(lines.empty());
}

TEST_CASE("one device without a server is reported; if all lack one, the first error is thrown") {
  std::vector<std::string> lines;
  const auto complain = [&](const std::string& line) { lines.push_back(line); };
  std::string first;
  const auto fails = [&](const std::string& device) -> int {
    if (first.empty()) first = device;
    throw Failure(Exit::error, "no server on " + device);
  };
  try {
    make_servers({}, fails, complain);
    FAIL("there is no server");
  } catch (const Failure& failure) {
    CHECK(failure.what() == "no server on " + first);
  }
  CHECK(lines.empty());
  if (devices_of_this_host().size() < 2) return;
  const auto first_fails = [&](const std::string& device) {
    if (device == first) throw Failure(Exit::error, "taken");
    return device;
  };
  CHECK(make_servers({}, first_fails, complain).size() == devices_of_this_host().size() - 1);
  CHECK(lines == std::vector<std::string>{"without " + first + ": taken"});
}

TEST_CASE("when one of several servers fails, the others end and its failure is thrown") {
  std::atomic<bool> over{false};
  const auto until_over = [&] {
    while (!over) std::this_thread::yield();
  };
  const std::vector<std::function<void()>> bodies{
      until_over, [] { throw Failure(Exit::wrong_bytes, "second"); }, until_over};
  try {
    run_together(bodies, over);
    FAIL("its failure is lost");
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::wrong_bytes);
  }
  CHECK(over);
}

}  // namespace urma::apps
