// SPDX-License-Identifier: Apache-2.0
// Another process writes into a window while two devices use it, so bytes change between two reads
// of them. No process may crash, no memory may be touched except what works name, and each work
// must end.

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/prng.h"
#include "tests/catch.h"
#include "tests/completions.h"
#include "tests/drivers/window_file.h"

namespace urma::fuzz {
namespace {

using namespace std::chrono_literals;
namespace cxl = drivers::cxl;

// Overwrites mostly words of the messages and of their marks, and sometimes any other word.
[[noreturn]] void scribble(const test::WindowFile& window, uint64_t seed) {
  test::Intruder intruder(window);
  Prng prng(seed);
  const auto words = [](auto& what) {
    return std::span(reinterpret_cast<std::atomic<uint32_t>*>(&what), sizeof what / 4);
  };
  for (;;) {
    cxl::Ring& ring = intruder.ring(static_cast<uint32_t>(prng.below(4)));
    auto lines = words(ring.lines);
    const uint64_t kind = prng.below(64);
    if (kind == 0) lines = words(ring.control);
    if (kind == 1) lines = words(intruder.slot(static_cast<uint32_t>(prng.below(2))));
    if (kind == 2) lines = words(intruder.record(static_cast<uint32_t>(prng.below(4))));
    std::atomic<uint32_t>& word = lines[prng.below(lines.size())];
    const uint32_t value = word;
    if (value == 0 && kind > 4) continue;
    word = kind % 2 == 0 ? value ^ 1u << prng.below(32) : static_cast<uint32_t>(prng.next());
    // Pauses, so that some messages arrive.
    for (uint64_t i = prng.below(200); i > 0; --i) word.load();
  }
}

// A device that checks the bytes before and behind its memory.
class Watched {
 public:
  explicit Watched(const std::string& device)
      : device_(open(device, {.operation_timeout = 200ms}).value()),
        segment_(device_.register_memory(inside()).value()),
        jetty_(device_.jetty({.berths = 32, .receives = 8, .receiver_timeout = 100ms}).value()) {
    for (uint64_t tag = 0; tag < 8; ++tag) receive(tag);
  }

  void meet(Watched& other) {
    target_.segment = device_.import(other.segment_.descriptor()).value().segment;
    target_.jetty = device_.import(other.jetty_.descriptor()).value().jetty;
  }
  void turn(Prng& prng) {
    const size_t bytes = prng.below(size >> prng.below(16));
    const auto own = std::span(own_).first(bytes);
    const Work works[] = {write(own, target_.segment), read(own, target_.segment),
                          write(own, target_.segment).to(target_.jetty).immediate(1),
                          send(std::span(own).first(std::min<size_t>(bytes, 4096)), target_.jetty)};
    posted_ += jetty_.post(works[prng.below(std::size(works))]);
    std::array<Completion, 32> out;
    take(std::span(out).first(jetty_.poll(out)));
  }
  bool finish() {
    const Time begun = read_clock();
    while (ended_ < posted_ && read_clock() - begun < 15s) take(jetty_.wait(100ms));
    return ended_ == posted_;
  }
  uint64_t succeeded() const { return succeeded_; }
  bool surroundings_untouched() const {
    const auto same = [](std::byte byte) { return byte == untouched; };
    return std::all_of(memory_.begin(), memory_.begin() + guard, same) &&
           std::all_of(memory_.end() - guard, memory_.end(), same);
  }

 private:
  static constexpr size_t size = 80 * 1024;
  static constexpr size_t guard = 4096;
  static constexpr std::byte untouched{0xcd};

  std::span<std::byte> inside() { return std::span(memory_).subspan(guard, size); }
  void receive(uint64_t tag) {
    REQUIRE(jetty_.receive(std::span(messages_).subspan(tag % 8 * 4096, 4096), tag % 8));
  }
  void take(std::span<const Completion> completions) {
    for (const Completion& one : completions) {
      if (one.operation == Operation::receive) {
        if (!one.with_immediate) receive(one.tag);
        continue;
      }
      ++ended_;
      succeeded_ += one.ok();
    }
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(size + 2 * guard, untouched);
  std::vector<std::byte> own_ = std::vector<std::byte>(size);
  std::vector<std::byte> messages_ = std::vector<std::byte>(8 * 4096);
  Device device_;
  Segment segment_;
  Jetty jetty_;
  Imported target_;
  uint64_t posted_ = 0;
  uint64_t ended_ = 0;
  uint64_t succeeded_ = 0;
};

TEST_CASE("a process that scribbles over messages while they are read crashes no device") {
  Prng prng(11);
  uint64_t succeeded = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    INFO("round " << round);
    const test::WindowFile window("scribble");
    Watched left(window.device("?size=4M"));
    Watched right(window.device(""));
    left.meet(right);
    right.meet(left);
    const pid_t scribbler = fork();
    if (scribbler == 0) scribble(window, round);
    for (const Time begun = read_clock(); read_clock() - begun < 300ms;) {
      left.turn(prng);
      right.turn(prng);
    }
    kill(scribbler, SIGKILL);
    waitpid(scribbler, nullptr, 0);
    CHECK(left.finish());
    CHECK(right.finish());
    CHECK(left.surroundings_untouched());
    CHECK(right.surroundings_untouched());
    succeeded += left.succeeded() + right.succeeded();
  }
  CHECK(succeeded > 0);
}

}  // namespace
}  // namespace urma::fuzz
