// SPDX-License-Identifier: Apache-2.0
// Queue pairs that fail, adapters that are removed, datagrams that are lost: each work completes
// once, and nothing executes twice.

#include <optional>
#include <thread>

#include "base/prng.h"
#include "tests/api/helpers.h"
#include "tests/fresh_seed.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {
namespace {

using soft::Failure;

// Two devices of one adapter, with traffic of sends, immediates and fetch-adds between them.
class Traffic {
 public:
  explicit Traffic(const DeviceOptions& options = {}) {
    DeviceOptions served = options;
    served.threads = Threads::served;
    owner_.emplace(Side::open("verbs:soft0?service=5001", served));
    DeviceOptions inlined = options;
    inlined.threads = Threads::inlined;
    user_.emplace(Side::open("verbs:soft0?service=5002", inlined));
    words_.emplace(
        owner_->device.allocate(4096, Rights::read | Rights::write | Rights::atomic).value());
    there_ = user_->device.import(descriptor_of(*words_, owner_->jetty)).value();
    for (auto& buffer : buffers_) REQUIRE(owner_->jetty.receive(buffer));
  }

  Side& user() { return *user_; }
  Side& owner() { return *owner_; }
  RemoteSegment segment() const { return there_.segment; }

  // Posts one work of each kind.
  void begin() {
    ++rounds_;
    const auto message = std::as_bytes(std::span(&rounds_, 1));
    const Work works[] = {fetch_add(there_.segment, 0, 1), send(message, there_.jetty),
                          write(message, there_.segment, 8).to(there_.jetty).immediate(rounds_)};
    for (const Work& work : works) REQUIRE(user_->jetty.post(work) == 1);
  }
  // Lets both devices do some of that, so that packets of it are on their way.
  void poll() {
    std::array<Completion, 4> some;
    const size_t count = user_->jetty.poll(some);
    for (const Completion& done : std::span(some).first(count)) note(done);
  }
  // Waits until everything that was posted has completed.
  void finish() {
    for (const Completion& done : collect(user_->jetty, 3 * rounds_ - completed_)) note(done);
    take_arrivals();
  }
  void run_once() {
    begin();
    finish();
  }
  // Takes what has arrived, and posts its buffer again.
  void take_arrivals() {
    std::array<Completion, 16> arrivals;
    const size_t count = owner_->jetty.poll(arrivals);
    for (const Completion& one : std::span(arrivals).first(count)) {
      ++arrived_;
      if (!one.with_immediate) REQUIRE(owner_->jetty.receive(buffers_[0]));
    }
  }
  // Checks the numbers of what has completed, when nothing is on its way any longer.
  void check() {
    const Time until = read_clock() + 10s;
    while (arrived_ < sent_ && read_clock() < until) take_arrivals();
    CHECK(completed_ == 3 * rounds_);
    CHECK(arrived_ >= sent_);
    CHECK(arrived_ <= sent_ + unknown_arrivals_);
    uint64_t sum = 0;
    REQUIRE(
        run_one(user_->jetty, read(std::as_writable_bytes(std::span(&sum, 1)), segment())).ok());
    CHECK(sum >= added_);
    CHECK(sum <= added_ + unknown_sums_);
  }
  uint64_t unknown() const { return unknown_sums_ + unknown_arrivals_; }

 private:
  void note(const Completion& done) {
    ++completed_;
    const bool atomic = done.operation == Operation::atomic;
    INFO(name(done.status));
    CHECK((done.ok() || done.status == Status::unknown));
    ++(done.ok() ? (atomic ? added_ : sent_) : (atomic ? unknown_sums_ : unknown_arrivals_));
  }

  std::array<std::array<std::byte, 64>, 32> buffers_{};
  std::optional<Side> owner_;
  std::optional<Side> user_;
  std::optional<Segment> words_;
  Imported there_;
  uint64_t rounds_ = 0;
  uint64_t completed_ = 0;
  uint64_t added_ = 0;
  uint64_t unknown_sums_ = 0;
  uint64_t sent_ = 0;  // sends and immediates that are `ok`
  uint64_t unknown_arrivals_ = 0;
  uint64_t arrived_ = 0;
};

TEST_CASE("queue pairs fail a thousand times under sends, immediates and atomics: nothing twice") {
  const soft::OnlyAdapter adapter;
  {
    Traffic traffic;
    Prng prng(fresh_seed());
    for (int failures = 0; failures < 1000; ++failures) {
      traffic.begin();
      for (uint64_t n = prng.below(4); n > 0; --n) traffic.poll();
      CHECK(soft::fail_queue_pairs("soft0", Failure::reported) == 2);
      traffic.finish();
    }
    traffic.check();
    CHECK(traffic.unknown() == 0);
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("a queue pair that fails without saying so, as those of rxe do, is found and reset") {
  const soft::OnlyAdapter adapter;
  Traffic traffic({.operation_timeout = 10s});
  for (int failures = 0; failures < 3; ++failures) {
    traffic.run_once();
    std::this_thread::sleep_for(50ms);  // nothing is left to be sent, or acknowledged
    soft::fail_queue_pairs("soft0", Failure::silent);
    traffic.run_once();
  }
  traffic.check();
}

TEST_CASE("datagrams are lost, and sent late: nothing twice") {
  const soft::OnlyAdapter adapter;
  Traffic traffic;
  soft::lose(0.1);
  soft::send_late(GENERATE(0, 3, 20));
  for (int i = 0; i < 300; ++i) traffic.run_once();
  soft::lose(0);
  traffic.check();
}

TEST_CASE("works end when the adapter is removed under them, and the devices close") {
  const soft::OnlyAdapter adapter;
  {
    Traffic traffic({.operation_timeout = 500ms});
    traffic.run_once();
    soft::remove("soft0");
    const auto bytes = bytes_like(4096);
    constexpr size_t count = 5;
    for (size_t i = 0; i < count; ++i) {
      REQUIRE(traffic.user().jetty.post(write(bytes, traffic.segment())) == 1);
    }
    const auto done = collect(traffic.user().jetty, count, 10s);
    CHECK(done.size() == count);
    for (const Completion& one : done) CHECK_FALSE(one.ok());
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("a device that restarts at its address has another queue pair, and is reached") {
  const soft::OnlyAdapter adapter;
  {
    Device here = open("verbs:soft0?service=5002").value();
    auto jetty = here.jetty().value();
    const auto bytes = bytes_like(5000);
    for (int lives = 0; lives < 5; ++lives) {
      Device there = open("verbs:soft0?service=5001", {.threads = Threads::served}).value();
      const Segment memory = there.allocate(8192).value();
      const auto remote = here.import(memory.descriptor()).value();
      CHECK(run_one(jetty, write(bytes, remote.segment)).ok());
      CHECK(same(memory.bytes().first(bytes.size()), bytes));
    }
  }
  CHECK(soft::objects() == 0);
}

TEST_CASE("data is sent from registered memory only as far as that reaches") {
  const soft::OnlyAdapter adapter;
  Device there = open("verbs:soft0?service=5001", {.threads = Threads::served}).value();
  const Segment target = there.allocate(1 << 16).value();
  Device here = open("verbs:soft0?service=5002").value();
  auto jetty = here.jetty().value();
  const auto remote = here.import(target.descriptor()).value();
  auto bytes = bytes_like(1 << 16);
  const Segment half = here.register_memory(std::span(bytes).first(1 << 15)).value();
  CHECK(run_one(jetty, write(bytes, remote.segment)).ok());
  CHECK(same(target.bytes(), bytes));
}

TEST_CASE("a device that was closed is unreachable in time") {
  const soft::OnlyAdapter adapter;
  std::string descriptor;
  {
    Device gone = open("verbs:soft0?service=5001").value();
    descriptor = gone.allocate(4096).value().descriptor();
  }
  Device here = open("verbs:soft0?service=5002", {.operation_timeout = 300ms}).value();
  soft::mute_manager(GENERATE(false, true));
  auto jetty = here.jetty().value();
  const auto remote = here.import(descriptor).value();
  CHECK(run_one(jetty, write(bytes_like(100), remote.segment)).status == Status::peer_unreachable);
}

}  // namespace
}  // namespace urma::test
