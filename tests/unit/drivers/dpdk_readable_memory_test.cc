// SPDX-License-Identifier: Apache-2.0
// Which memory a device reads by DMA: pages that are shared, refused, and mapped until the last
// user has gone.

#include "drivers/dpdk/readable_memory.h"

#include <optional>
#include <set>

#include "base/region.h"
#include "tests/catch.h"
#include "tests/unit/child.h"

namespace urma::test {
namespace {

using drivers::dpdk::ReadableMemory;

// A device that maps no page twice, as the kernel does, and at most so many ranges.
struct MappingDevice final : ReadableMemory::Device {
  bool map_pages(std::span<const std::byte> pages) override {
    CHECK(reinterpret_cast<uintptr_t>(pages.data()) % page_bytes == 0);
    CHECK(pages.size() % page_bytes == 0);
    if (ranges == most_ranges) return false;
    for (size_t at = 0; at < pages.size(); at += page_bytes) {
      if (mapped.contains(&pages[at])) return false;
    }
    for (size_t at = 0; at < pages.size(); at += page_bytes) mapped.insert(&pages[at]);
    ++ranges;
    return true;
  }
  void unmap_pages(std::span<const std::byte> pages) override {
    for (size_t at = 0; at < pages.size(); at += page_bytes) CHECK(mapped.erase(&pages[at]) == 1);
    --ranges;
  }

  std::set<const std::byte*> mapped;
  size_t ranges = 0;
  size_t most_ranges = 1000;
};

struct Readable {
  std::span<const std::byte> part(size_t offset, size_t bytes) const {
    return {region.data() + offset, bytes};
  }
  bool has(size_t offset, size_t bytes) const { return memory.has(region.data() + offset, bytes); }

  Region region = Region::try_make(1 << 20, page_bytes);
  MappingDevice device;
  ReadableMemory memory{device};
};

TEST_CASE("a device reads what is granted, and nothing else") {
  Readable it;
  REQUIRE(it.memory.map(it.part(1000, 10'000), Rights::read));
  CHECK(it.device.mapped.size() == 3);
  CHECK_FALSE(it.has(1000, 1));
  it.memory.grant(it.part(1000, 10'000), Rights::read);
  CHECK(it.has(1000, 10'000));
  CHECK(it.has(5000, 100));
  CHECK_FALSE(it.has(999, 10));
  CHECK_FALSE(it.has(10'000, 1001));
  it.memory.revoke(it.part(1000, 10'000), Rights::read);
  CHECK_FALSE(it.has(5000, 100));
  CHECK(it.device.mapped.size() == 3);
  it.memory.unmap(it.part(1000, 10'000), Rights::read);
  CHECK(it.device.mapped.empty());
}

TEST_CASE("segments on the same pages share a mapping, until the last one is unmapped") {
  Readable it;
  REQUIRE(it.memory.map(it.part(0, 8192), Rights::read));
  REQUIRE(it.memory.map(it.part(100, 200), Rights::read));
  REQUIRE(it.memory.map(it.part(0, 8192), Rights::read));
  for (int i = 0; i < 2; ++i) it.memory.grant(it.part(0, 8192), Rights::read);
  it.memory.revoke(it.part(0, 8192), Rights::read);
  it.memory.unmap(it.part(0, 8192), Rights::read);
  CHECK(it.has(0, 8192));
  it.memory.unmap(it.part(100, 200), Rights::read);
  CHECK(it.device.mapped.size() == 2);
  it.memory.unmap(it.part(0, 8192), Rights::read);
  CHECK(it.device.mapped.empty());
}

TEST_CASE("memory that the device cannot map is refused") {
  Readable it;
  REQUIRE(it.memory.map(it.part(0, 4096), Rights::read));
  CHECK_FALSE(it.memory.map(it.part(100, 8192), Rights::read));  // of which a part is mapped
  it.device.most_ranges = 1;
  CHECK_FALSE(it.memory.map(it.part(65536, 1), Rights::read));
  it.memory.unmap(it.part(65536, 1), Rights::read);  // was never mapped
  CHECK(it.device.mapped.size() == 1);
}

TEST_CASE("more segments than fit are copied from") {
  Readable it;
  size_t had = 0;
  for (size_t i = 0; i < 256; ++i) {
    REQUIRE(it.memory.map(it.part(i * 4096, 4096), Rights::read));
    it.memory.grant(it.part(i * 4096, 4096), Rights::read);
    had += it.has(i * 4096, 4096) ? 1 : 0;
  }
  CHECK(had == 128);
  for (size_t i = 0; i < 256; ++i) it.memory.revoke(it.part(i * 4096, 4096), Rights::read);
  CHECK_FALSE(it.has(0, 1));
}

TEST_CASE("whatever is mapped in the end is unmapped") {
  MappingDevice device;
  const Region region(1 << 16);
  {
    ReadableMemory memory(device);
    REQUIRE(memory.map({region.data(), region.bytes()}, Rights::read));
  }
  CHECK(device.mapped.empty());
}

TEST_CASE("a forked child leaves what is mapped to its parent") {
  MappingDevice device;
  const Region region(1 << 16);
  std::optional<ReadableMemory> memory(device);
  REQUIRE(memory->map({region.data(), region.bytes()}, Rights::read));
  CHECK(survives([&] {
    memory.reset();
    if (device.ranges == 0) abort();
  }));
}

}  // namespace
}  // namespace urma::test
