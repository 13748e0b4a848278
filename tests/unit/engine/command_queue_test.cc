// SPDX-License-Identifier: Apache-2.0
#include "engine/command_queue.h"

#include <memory>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::Command;
using engine::CommandQueue;

// A command that is done when it has run a given number of times.
struct Repeated : Command {
  explicit Repeated(int times) : left(times) {}
  int left;
  int runs = 0;
};

struct Commands {
  CommandQueue queue;
  bool run() {
    return queue.run([](Command& command) {
      auto& repeated = static_cast<Repeated&>(command);
      ++repeated.runs;
      return --repeated.left == 0;
    });
  }
};

TEST_CASE("a command is run once in each pass until it is done, and then never again") {
  Commands commands;
  Repeated command(3);
  CHECK_FALSE(commands.queue.arrived());
  commands.queue.push(command);
  CHECK(commands.queue.arrived());
  CHECK_FALSE(commands.queue.waits());
  CHECK_FALSE(commands.run());
  CHECK_FALSE(commands.queue.arrived());
  CHECK(commands.queue.waits());
  CHECK_FALSE(commands.run());
  CHECK_FALSE(command.is_done());
  CHECK(commands.run());
  CHECK(command.is_done());
  CHECK_FALSE(commands.queue.waits());
  CHECK_FALSE(commands.run());
  CHECK(command.runs == 3);
}

TEST_CASE("commands that wait, however many, leave turns to each other and to new ones") {
  Commands commands;
  std::vector<std::unique_ptr<Repeated>> waiting;
  for (int i = 0; i < 40; ++i) {
    waiting.push_back(std::make_unique<Repeated>(1000));
    commands.queue.push(*waiting.back());
  }
  for (int pass = 0; pass < 5; ++pass) commands.run();
  for (const auto& one : waiting) CHECK(one->runs == 1);
  Repeated quick(1);
  commands.queue.push(quick);
  int passes = 0;
  for (; !quick.is_done(); ++passes) commands.run();
  CHECK(passes == 6);  // behind the forty
  for (const auto& one : waiting) {
    CHECK(one->runs >= 2);
    CHECK(one->runs <= 3);
  }
}

TEST_CASE("commands of one caller are run in the order in which they came") {
  CommandQueue queue;
  std::vector<Command> all(5);
  for (Command& command : all) queue.push(command);
  std::vector<const Command*> order;
  CHECK(queue.run([&](Command& command) {
    order.push_back(&command);
    return true;
  }));
  CHECK(order == std::vector<const Command*>{&all[0], &all[1], &all[2], &all[3], &all[4]});
}

}  // namespace
}  // namespace urma::test
