// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/address_book.h"

#include <map>
#include <set>

#include "tests/catch.h"

namespace urma::test {
namespace {

using drivers::verbs::AddressBook;
using drivers::verbs::Destination;
using drivers::verbs::Finder;

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers by a table, and knows which handles exist.
class Table final : public Finder {
 public:
  bool ask(const Endpoint& to) override {
    if (questions.size() == room) return false;
    questions.push_back(to);
    return true;
  }
  size_t take(std::span<Answer> out) override {
    size_t count = 0;
    while (count < out.size() && !questions.empty()) {
      const Endpoint of = questions.front();
      questions.erase(questions.begin());
      Answer& answer = out[count++] = {.of = of};
      if (!numbers.contains(of.port)) continue;
      answer.destination = {.handle = make(), .number = numbers[of.port], .key = 7};
    }
    return count;
  }
  void discard(ibv_ah* handle) override { REQUIRE(handles.erase(handle) == 1); }

  std::vector<Endpoint> questions;
  std::map<uint16_t, uint32_t> numbers;  // of queue pairs, by service
  std::set<ibv_ah*> handles;             // that are not discarded
  size_t room = 256;

 private:
  ibv_ah* make() {
    auto* const handle = reinterpret_cast<ibv_ah*>(++made_ * 8);
    handles.insert(handle);
    return handle;
  }
  uintptr_t made_ = 0;
};

constexpr Time begin{seconds(100)};

Endpoint service(uint16_t number) { return {ipv4(10, 0, 0, 1), number}; }

struct World {
  Table table;
  AddressBook book{table};
  std::map<uint16_t, bool> news = {};

  void update(Time now) {
    book.update(now, [&](const Endpoint& at, bool known) { news[at.port] = known; });
  }
  // Returns the number of the queue pair to which datagrams go; 0 if it is not known.
  uint32_t number_of(const Endpoint& to, Time now) {
    const Destination* const found = book.find(to, now);
    return found == nullptr ? 0 : found->number;
  }
};

}  // namespace

TEST_CASE("a destination is asked for when it is first used") {
  World world;
  world.table.numbers[1] = 11;
  CHECK(world.number_of(service(1), begin) == 0);
  CHECK(world.number_of(service(1), begin) == 0);
  CHECK(world.table.questions.size() == 1);
  world.update(begin);
  CHECK(world.news == std::map<uint16_t, bool>{{1, true}});
  CHECK(world.number_of(service(1), begin) == 11);
  CHECK(world.table.questions.empty());
}

TEST_CASE("an endpoint without a device is asked for again, less and less often") {
  World world;
  unsigned asked = 0;
  for (Time now = begin; now < begin + seconds(10); now += milliseconds(1)) {
    CHECK(world.number_of(service(1), now) == 0);
    asked += static_cast<unsigned>(world.table.questions.size());
    world.update(now);
  }
  CHECK(world.news == std::map<uint16_t, bool>{{1, false}});
  // After 0, 10, 30, 70, 150, 310, 630, 1270 ms, then each second.
  CHECK(asked == 16);
}

TEST_CASE("an endpoint that answers is not asked for again") {
  World world;
  world.table.numbers[1] = 11;
  world.number_of(service(1), begin);
  world.update(begin);
  for (Time now = begin; now < begin + seconds(2); now += milliseconds(50)) {
    CHECK(world.number_of(service(1), now) == 11);
    world.book.heard(service(1), 11, now);
  }
  CHECK(world.table.questions.empty());
}

TEST_CASE("an endpoint that is silent while it is sent to may have another queue pair") {
  World world;
  world.table.numbers[1] = 11;
  world.number_of(service(1), begin);
  world.update(begin);
  world.table.numbers[1] = 12;
  Time now = begin;
  while (world.number_of(service(1), now) == 11 && now < begin + seconds(1)) {
    now += milliseconds(1);
    world.update(now);
  }
  CHECK(now - begin == AddressBook::patience + milliseconds(2));
  CHECK(world.number_of(service(1), now) == 12);
  CHECK(world.table.handles.size() == 1);
}

TEST_CASE("a datagram from another queue pair is a reason to ask, not an answer") {
  World world;
  world.table.numbers[1] = 11;
  world.number_of(service(1), begin);
  world.update(begin);
  const Time later = begin + milliseconds(20);
  // A forged one changes nothing.
  world.book.heard(service(1), 99, later);
  CHECK(world.table.questions.size() == 1);
  CHECK(world.number_of(service(1), later) == 11);
  world.update(later);
  CHECK(world.number_of(service(1), later) == 11);
  // Many forged ones cause few questions.
  for (int i = 0; i < 1000; ++i) world.book.heard(service(1), 99, later);
  CHECK(world.table.questions.empty());
  // An endpoint that nothing is sent to is not asked for.
  world.book.heard(service(2), 5, later);
  CHECK(world.table.questions.empty());
}

TEST_CASE("an answer is awaited until there is one, and not while none is expected") {
  World world;
  CHECK(!world.book.awaits(service(1)));
  world.number_of(service(1), begin);
  CHECK(world.book.awaits(service(1)));
  world.update(begin);
  CHECK(!world.book.awaits(service(1)));
  world.table.numbers[1] = 11;
  const Time later = begin + milliseconds(50);
  CHECK(world.number_of(service(1), later) == 0);
  world.update(later);
  CHECK(world.book.awaits(service(1)));
  CHECK(world.number_of(service(1), later) == 11);
}

TEST_CASE("a finder that is busy is asked again") {
  World world;
  world.table.numbers[1] = 11;
  world.table.room = 0;
  CHECK(world.number_of(service(1), begin) == 0);
  world.table.room = 1;
  CHECK(world.number_of(service(1), begin) == 0);
  world.update(begin);
  CHECK(world.number_of(service(1), begin) == 11);
}

TEST_CASE("a book has room for a bounded number, and forgets the one that was unused for longest") {
  World world;
  world.table.room = SIZE_MAX;
  for (uint32_t i = 1; i <= AddressBook::most; ++i) {
    const auto number = static_cast<uint16_t>(i);
    world.table.numbers[number] = i;
    world.number_of(service(number), begin + milliseconds(i));
    world.update(begin);
  }
  const Time later = begin + seconds(5);
  CHECK(world.number_of(service(1), later) == 1);
  world.table.numbers[9999] = 9999;
  CHECK(world.number_of(service(9999), later) == 0);
  world.update(later);
  CHECK(world.number_of(service(9999), later) == 9999);
  CHECK(world.table.handles.size() == AddressBook::most);
  CHECK(world.number_of(service(1), later) == 1);
  CHECK(world.number_of(service(2), later) == 0);
}

TEST_CASE("all handles are discarded with the book") {
  Table table;
  table.numbers[1] = 11;
  {
    AddressBook book(table);
    book.find(service(1), begin);
    book.update(begin, [](const Endpoint&, bool) {});
    CHECK(table.handles.size() == 1);
  }
  CHECK(table.handles.empty());
}

}  // namespace urma::test
