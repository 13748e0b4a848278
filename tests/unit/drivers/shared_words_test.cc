// SPDX-License-Identifier: Apache-2.0
// Tests the shared words of a window, on plain memory: where they lie, and which stores of one
// process another one sees.

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "drivers/cxl/acted_caches.h"
#include "drivers/cxl/shared_words.h"
#include "tests/catch.h"

namespace urma::drivers::cxl {
namespace {

struct Range {
  uint64_t from;
  uint64_t bytes;
};

TEST_CASE("the parts of a window of any size follow one another and end inside of it") {
  const uint64_t bytes = GENERATE(as<uint64_t>{}, least_window_bytes, least_with_segments,
                                  (9 << 20) + 4095, 1ull << 30, 1ull << 40, (1ull << 46) - 1);
  CAPTURE(bytes);
  // Only addresses are computed; nothing is read there.
  auto* const base = reinterpret_cast<std::byte*>(uint64_t{1} << 46);
  const Parts parts = Parts::of(bytes);
  const SharedWords words({.base = base, .mapping = base}, parts);
  const auto at = [&](const auto& part) {
    return words.offset_of(reinterpret_cast<const std::byte*>(&part));
  };
  std::vector<Range> ranges = {{at(words.header()), sizeof(Header)},
                               {at(words.changes()), sizeof(Changes)},
                               {at(words.slot(0)), sizeof(Slot)},
                               {at(words.slot(slot_count - 1)), sizeof(Slot)},
                               {at(words.ring_record(0)), sizeof(RingRecord)},
                               {at(words.ring_record(parts.rings - 1)), sizeof(RingRecord)}};
  if (parts.granules > 0) {
    SegmentRecord* const records = words.segment_records();
    ranges.push_back({at(records[0]), parts.granules * sizeof(SegmentRecord)});
  }
  ranges.push_back({at(words.ring(0)), sizeof(Ring)});
  ranges.push_back({at(words.ring(parts.rings - 1)), sizeof(Ring)});
  if (parts.granules > 0) {
    ranges.push_back({words.offset_of(words.memory_of(0)), parts.granule_bytes});
    ranges.push_back({words.offset_of(words.memory_of(parts.granules - 1)), parts.granule_bytes});
  }
  CHECK(ranges.front().from == 0);
  for (size_t i = 1; i < ranges.size(); ++i) {
    CAPTURE(i);
    CHECK(ranges[i].from >= ranges[i - 1].from + ranges[i - 1].bytes);
    CHECK(ranges[i].from % line_bytes == 0);
  }
  CHECK(ranges.back().from + ranges.back().bytes <= bytes);
  CHECK(at(words.ring(0)) % page_bytes == 0);
  CHECK(at(words.ring(1)) - at(words.ring(0)) == ring_bytes);
}

// Memory of a window, zeroed.
struct Memory {
  static constexpr size_t bytes = least_window_bytes;
  static void release(std::byte* at) { std::free(at); }
  std::unique_ptr<std::byte, void (*)(std::byte*)> at{
      static_cast<std::byte*>(std::aligned_alloc(page_bytes, bytes)), release};
  Memory() { std::memset(at.get(), 0, bytes); }
};

// A process at the window, whose processor's caches are not coherent with the others'.
struct Process {
  Process(const Memory& memory, uint64_t seed)
      : caches(ActedCaches::make(memory.at.get(), Memory::bytes, seed)),
        words({.base = caches->copy(), .mapping = memory.at.get(), .caches = caches.get()},
              Parts::of(Memory::bytes)) {}
  std::unique_ptr<ActedCaches> caches;
  SharedWords words;
};

TEST_CASE("each process sees the words that others have published, as in a model without caches") {
  const uint64_t seed = GENERATE(range(1, 9));
  CAPTURE(seed);
  const Memory memory;
  std::array<std::unique_ptr<Process>, 3> processes;
  for (size_t i = 0; i < processes.size(); ++i) {
    processes[i] = std::make_unique<Process>(memory, seed * 10 + i);
  }
  Prng prng(seed);
  // Each line has one writer: the slot's owner is the process of that number, modulo three.
  std::array<uint32_t, 24> generations{};
  std::array<uint64_t, 24> serials{};
  for (int step = 0; step < 20'000; ++step) {
    const auto slot = static_cast<uint32_t>(prng.below(generations.size()));
    const SharedWords& owner = processes[slot % processes.size()]->words;
    const SharedWords& other = processes[prng.below(processes.size())]->words;
    RingControl& control = owner.ring(slot % 2).control;
    switch (prng.below(4)) {
      case 0:
        owner.store(owner.slot(slot).record.generation, ++generations[slot]);
        break;
      case 1:
        REQUIRE(other.generation(slot) == generations[slot]);
        break;
      case 2:  // line by line of a ring, as the two ends of it do
        if (slot % 3 == 0) owner.store(control.receiver.taken, ++serials[slot % 2]);
        break;
      default:
        REQUIRE(other.seen(other.ring(slot % 2).control.receiver.taken) == serials[slot % 2]);
    }
  }
}

TEST_CASE("a range of many bytes is written back by one process and refreshed by another") {
  const Memory memory;
  const Process writer(memory, 1);
  const Process reader(memory, 2);
  reader.words.refresh(reader.words.base(), Memory::bytes);  // so the old bytes are in its caches
  std::memset(static_cast<void*>(&writer.words.ring_record(0)), 0x5a, sizeof(RingRecord));
  writer.words.write_back(&writer.words.ring_record(0), sizeof(RingRecord));
  reader.words.refresh(&reader.words.ring_record(0), sizeof(RingRecord));
  CHECK(reader.words.ring_record(0).serial == 0x5a5a5a5a);
  CHECK_FALSE(reader.words.coherent());
}

TEST_CASE("a bell is rung past the caches") {
  const Memory memory;
  const Process sleeper(memory, 1);
  const Process ringer(memory, 2);
  sleeper.words.bell_of(7).drowse();
  CHECK(ringer.words.bell_of(7).drowsy());
  CHECK_FALSE(ringer.words.bell_of(8).drowsy());
  ringer.words.bell_of(7).ring();
  CHECK(sleeper.words.bell_of(7).rung());
}

}  // namespace
}  // namespace urma::drivers::cxl
