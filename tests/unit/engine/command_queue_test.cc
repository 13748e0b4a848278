#include "engine/command_queue.h"

#include <vector>

#include "tests/catch.h"
#include "tests/unit/engine/idle_port.h"

namespace urma::test {
namespace {

using engine::Command;
using engine::CommandQueue;
using engine::Engine;

// A command that is done when it has run a given number of times.
struct Repeated : Command {
  explicit Repeated(int times) : left(times) {
    run = [](Command& self, Engine&, Time) {
      auto& mine = static_cast<Repeated&>(self);
      ++mine.runs;
      return --mine.left == 0;
    };
  }
  int left;
  int runs = 0;
};

struct Commands {
  Engine engine{std::make_unique<IdlePort>(), idle_settings(), std::make_unique<SeededEntropy>(1)};
  CommandQueue queue;
  bool run() { return queue.run(engine, Time{}); }
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
  Commands commands;
  struct Numbered : Command {
    int number = 0;
    std::vector<int>* order = nullptr;
  };
  std::vector<int> order;
  std::vector<Numbered> all(5);
  for (int i = 0; i < 5; ++i) {
    all[static_cast<size_t>(i)].number = i;
    all[static_cast<size_t>(i)].order = &order;
    all[static_cast<size_t>(i)].run = [](Command& self, Engine&, Time) {
      auto& mine = static_cast<Numbered&>(self);
      mine.order->push_back(mine.number);
      return true;
    };
    commands.queue.push(all[static_cast<size_t>(i)]);
  }
  CHECK(commands.run());
  CHECK(order == std::vector{0, 1, 2, 3, 4});
}

}  // namespace
}  // namespace urma::test
