// SPDX-License-Identifier: Apache-2.0
// S4 over packets: memory is revoked and reused while others write to it at full rate, over a
// network that loses, repeats and delays packets. With URMA_LONG there are a million cycles of the
// fixed seed, or as many as its value says, and as many of URMA_TEST_SEED.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/prng.h"
#include "tests/fresh_seed.h"
#include "tests/sanitized.h"
#include "tests/sim/pair.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;

constexpr std::byte shared{0x11};
constexpr std::byte poison{0xee};
constexpr size_t memory_bytes = 40'000;

// Returns the number of cycles for each seed.
int cycles() {
  if (const char* const asked = std::getenv("URMA_LONG"); asked != nullptr) {
    return std::atoi(asked) > 1 ? std::atoi(asked) : 1'000'000;
  }
  return sanitized ? 500 : 3'000;
}

void fill(std::span<std::byte> bytes, std::byte value) {
  std::memset(bytes.data(), static_cast<int>(value), bytes.size());
}

// Writes and reads at the addresses it is given, sixteen works at a time.
class Rushing {
 public:
  explicit Rushing(SimHosts::Host& host) : host_(host), buffers_(16, bytes_like(9000)) {
    for (auto& one : buffers_) fill(one, shared);
  }

  void turn(const RemoteSegment& segment, Prng& prng) {
    poll();
    for (uint64_t tag = 0; tag < buffers_.size(); ++tag) {
      if (busy_[tag]) continue;
      const size_t bytes = prng.chance(0.5) ? prng.between(1, 64) : prng.between(1, 9000);
      const uint64_t offset = prng.below(memory_bytes - bytes);
      reads_[tag] = prng.chance(0.3);
      const std::span buffer = std::span(buffers_[tag]).first(bytes);
      busy_[tag] = host_.jetty.post((reads_[tag] ? read(buffer, segment, offset)
                                                 : write(buffer, segment, offset))
                                        .tag(tag)) == 1;
    }
  }

  // Returns whether all posted works have ended; until then they use the buffers.
  bool has_ended() {
    poll();
    return std::ranges::find(busy_, true) == busy_.end();
  }

  uint64_t done = 0;
  uint64_t refused = 0;
  uint64_t others = 0;
  uint64_t leaked = 0;  // bytes of memory that was no longer shared

 private:
  void poll() {
    std::array<Completion, 16> some;
    for (const Completion& one : std::span(some).first(host_.jetty.poll(some))) end(one);
  }

  void end(const Completion& one) {
    busy_[one.tag] = false;
    done += one.ok();
    refused += one.status == Status::remote_access;
    others += !one.ok() && one.status != Status::remote_access;
    if (!reads_[one.tag]) return;
    leaked += static_cast<uint64_t>(std::ranges::count(buffers_[one.tag], poison));
    fill(buffers_[one.tag], shared);
  }

  SimHosts::Host& host_;
  std::vector<std::vector<std::byte>> buffers_;
  std::array<bool, 16> busy_{};
  std::array<bool, 16> reads_{};
};

TEST_CASE("S4: after unregister no packet changes the memory or contains bytes of it") {
  const uint64_t seed = GENERATE(uint64_t{4}, fresh_seed());
  if (seed == 0) return;
  INFO("seed " << seed);
  SimHosts hosts("s4-" + std::to_string(seed), seed);
  const std::string bad = "loss=1%&dup=2%&jitter=80us&replay=1%&replay_by=20ms&hold=3us";
  SimHosts::Host owner = hosts.start("address=fd00::41&" + bad);
  SimHosts::Host left = hosts.start(bad, {.berths = 16});
  SimHosts::Host right = hosts.start(bad, {.berths = 16});
  std::array<Rushing, 2> writers{Rushing(left), Rushing(right)};
  const RemoteSegment of_left = left.device.import(owner.line).value().segment;
  const RemoteSegment of_right = right.device.import(owner.line).value().segment;
  std::vector<std::byte> memory(memory_bytes);
  Prng prng(seed);
  std::array<RemoteSegment, 2> there{of_left, of_right};
  const auto run = [&](Duration most) {
    const Time until =
        hosts.now() +
        Duration(static_cast<int64_t>(prng.below(static_cast<uint64_t>(most.count()))));
    do {
      for (size_t i = 0; i < 2; ++i) writers[i].turn(there[i], prng);
      hosts.run_for(10us);
    } while (hosts.now() < until);
  };
  std::vector<Duration> took;
  uint64_t dirty = 0;
  for (int cycle = 0; cycle < cycles(); ++cycle) {
    fill(memory, shared);
    Segment segment = owner.device.register_memory(memory).value();
    const RemoteSegment fresh = segment.local();
    for (RemoteSegment& one : there) {
      one.address = fresh.address;
      one.bytes = fresh.bytes;
      one.token_id = fresh.token_id;
      one.token = fresh.token;
    }
    run(120us);
    const Time begun = hosts.now();
    if (!segment.unregister().ok()) ++dirty;
    took.push_back(hosts.now() - begun);
    fill(memory, poison);
    run(prng.chance(0.01) ? Duration(5ms) : Duration(100us));
    dirty += !all_are(memory, poison);
  }
  hosts.run_for(5s);
  for (Rushing& writer : writers) REQUIRE(writer.has_ended());
  std::ranges::sort(took);
  const auto micro = [&](double part) {
    const auto at = static_cast<size_t>(part * static_cast<double>(took.size() - 1));
    return std::chrono::duration<double, std::micro>(took[at]).count();
  };
  const uint64_t done = writers[0].done + writers[1].done;
  const uint64_t refused = writers[0].refused + writers[1].refused;
  std::printf(
      "S4, packets: %zu cycles, %llu works done, %llu refused, %llu otherwise; unregister took "
      "%.1f us, p99 %.1f, at most %.1f of the network's time\n",
      took.size(), static_cast<unsigned long long>(done), static_cast<unsigned long long>(refused),
      static_cast<unsigned long long>(writers[0].others + writers[1].others), micro(0.5),
      micro(0.99), micro(1));
  CHECK(dirty == 0);
  CHECK(writers[0].leaked + writers[1].leaked == 0);
  CHECK(done > took.size());
  CHECK(refused > took.size());
  CHECK(micro(0.99) <= 1000);
}

}  // namespace
}  // namespace urma::test
