// SPDX-License-Identifier: Apache-2.0
// Memory that may not be what its owner believes: read-only where peers are to write, or cut off.

#include <sys/mman.h>

#include <algorithm>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

constexpr size_t page = 4096;

// Pages of a file that the application maps. The file can be truncated.
struct FilePages {
  explicit FilePages(size_t count) : bytes(count * page) {
    REQUIRE(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    map(PROT_READ | PROT_WRITE);
  }
  ~FilePages() {
    munmap(at, bytes);
    close(file);
  }
  FilePages(const FilePages&) = delete;
  void map(int protection) {
    void* const made =
        mmap(at, bytes, protection, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), file, 0);
    REQUIRE(made != MAP_FAILED);
    at = static_cast<std::byte*>(made);
  }
  std::span<std::byte> all() const { return {at, bytes}; }

  int file = memfd_create("pages", MFD_CLOEXEC);
  size_t bytes;
  std::byte* at = nullptr;
};

struct GuardedEnds : UserAndOwner {
  using UserAndOwner::UserAndOwner;
  Segment add(std::span<std::byte> memory, const SegmentOptions& options) {
    return owner.device.register_memory(memory, options).value();
  }

  RemoteJetty told = user.device.import(owner.line()).value().jetty;
};

TEST_CASE("rights to write are refused for memory that this process may not write") {
  for (const std::string_view driver : media) {
    GuardedEnds ends(driver);
    FilePages pages(3);
    const auto refused = [&](std::span<std::byte> memory, const SegmentOptions& options) {
      const auto made = ends.owner.device.register_memory(memory, options);
      if (made.ok()) return false;
      CHECK(made.status() == Status::invalid_argument);
      CHECK(made.error().message.find("Fix: ") != std::string::npos);
      return true;
    };
    REQUIRE(mprotect(pages.at + 2 * page, page, PROT_READ) == 0);
    for (const Rights rights : {Rights::write, Rights::read | Rights::write, Rights::atomic}) {
      for (const bool guarded : {false, true}) {
        const SegmentOptions options{.rights = rights, .guarded = guarded};
        CHECK(refused(pages.all(), options));
        CHECK(refused(pages.all().subspan(2 * page - 1, 2), options));
        CHECK(refused(pages.all().last(1), options));
        CHECK_FALSE(refused(pages.all().first(2 * page), options));
      }
    }
    // Memory that peers may only read can be of any kind.
    std::vector<std::byte> data(100);
    for (const bool guarded : {false, true}) {
      pages.at[page] = std::byte{5};
      const Segment segment = ends.add(pages.all(), {.rights = Rights::read, .guarded = guarded});
      CHECK(ends.run(read(data, ends.import(segment), page)) == Status::ok);
      CHECK(data[0] == std::byte{5});
    }
    CHECK_FALSE(refused(pages.all(), {.rights = Rights::local_only}));
    REQUIRE(ftruncate(pages.file, page) == 0);
    CHECK(refused(pages.all().first(2 * page), {.rights = Rights::write}));
    CHECK_FALSE(refused(pages.all().first(page), {.rights = Rights::write}));
  }
}

TEST_CASE("guarded memory that exists behaves like other memory, for any size of work") {
  for (const std::string_view driver : media) {
    GuardedEnds ends(driver);
    FilePages pages(80);
    const Segment segment = ends.add(pages.all(), {.guarded = true});
    const RemoteSegment there = ends.import(segment);
    for (const size_t bytes : {size_t{1}, size_t{100}, page, size_t{70'000}, 80 * page - 3}) {
      const auto data = bytes_like(bytes, static_cast<unsigned>(bytes));
      std::vector<std::byte> back(bytes);
      REQUIRE(ends.run(write(data, there, 3)) == Status::ok);
      CHECK(std::equal(data.begin(), data.end(), pages.at + 3));
      REQUIRE(ends.run(read(back, there, 3)) == Status::ok);
      CHECK(back == data);
    }
    // More works than there are buffers for guarded copies.
    std::vector<std::byte> back(200);
    uint64_t wrong = 0;
    for (size_t i = 0; i < 2500; ++i) {
      wrong += ends.run(read(std::span(back).first(8 + i % 100), there)) != Status::ok;
    }
    CHECK(wrong == 0);
    RemoteSegment more = there;
    more.bytes += page;
    CHECK(ends.run(read(back, more, 80 * page - 1)) == Status::remote_access);
  }
}

// Tests each way in which the memory can disappear, and come back.
TEST_CASE("works on guarded memory that has disappeared complete with a status") {
  for (const std::string_view driver : media) {
    GuardedEnds ends(driver);
    FilePages pages(32);
    const Segment segment = ends.add(pages.all(), {.guarded = true});
    const Segment plain = ends.owner.device.allocate(page, Rights::write).value();
    const RemoteSegment there = ends.import(segment);
    const auto data = bytes_like(32 * page, 1);
    std::vector<std::byte> back(32 * page);
    const auto try_all = [&](size_t offset, size_t bytes, bool may_read, bool may_write) {
      INFO(driver << " offset " << offset << " bytes " << bytes);
      const auto from = std::span(data).first(bytes);
      const auto expected = [](bool may) { return may ? Status::ok : Status::remote_access; };
      CHECK(ends.run(write(from, there, offset)) == expected(may_write));
      CHECK(ends.run(read(std::span(back).first(bytes), there, offset)) == expected(may_read));
      const Work telling = write(from, there, offset).to(ends.told).immediate(5);
      CHECK(ends.run(telling) == expected(may_write));
      CHECK(collect(ends.owner.jetty, 1, may_write ? 10s : 0ms).size() == (may_write ? 1 : 0));
    };
    const size_t gone = 17 * page;
    const auto everywhere = [&](bool may_read, bool may_write) {
      for (const size_t bytes : {8, 300, 5000, 15 * 4096})
        try_all(gone, bytes, may_read, may_write);
      try_all(gone - 4, 8, may_read, may_write);
      try_all(0, 32 * page, may_read, may_write);
      for (const size_t bytes : {8, 5000}) try_all(page, bytes, true, true);
      CHECK(ends.run(write(std::span(data).first(8), ends.import(plain))) == Status::ok);
    };
    everywhere(true, true);
    REQUIRE(mprotect(pages.at + gone, 15 * page, PROT_READ) == 0);
    everywhere(true, false);
    REQUIRE(munmap(pages.at + gone, 15 * page) == 0);
    everywhere(false, false);
    pages.map(PROT_READ | PROT_WRITE);
    everywhere(true, true);
    REQUIRE(ftruncate(pages.file, gone) == 0);
    everywhere(false, false);
    REQUIRE(ftruncate(pages.file, 32 * page) == 0);
    everywhere(true, true);
    CHECK(ends.owner.device.stats().value().refused > 0);
    std::array<Event, 64> told;
    const std::span events = std::span(told).first(ends.owner.device.events(told));
    CHECK(std::ranges::count(events, EventKind::memory_missing, &Event::kind) > 0);
    for (const Event& event : events) {
      INFO(name(event.kind));
      CHECK((event.kind != EventKind::memory_missing || event.segment == there.token_id));
      CHECK(event.kind != EventKind::bad_tokens);
    }
  }
}

TEST_CASE("works that guarded segments cannot support are refused") {
  for (const std::string_view driver : media) {
    GuardedEnds ends(driver);
    FilePages pages(2);
    const Segment segment = ends.add(pages.all(), {.guarded = true});
    const RemoteSegment there = ends.import(segment);
    const auto data = bytes_like(8, 1);
    CHECK(ends.run(write(data, there).notify(there, 64, 5)) == Status::remote_access);
    CHECK(pages.at[0] == std::byte{0});
    CHECK(pages.at[64] == std::byte{0});
    // A guarded segment may receive the data if the notification is for another segment.
    const Segment plain = ends.owner.device.allocate(page, Rights::write).value();
    CHECK(ends.run(write(data, there).notify(ends.import(plain), 64, 5)) == Status::ok);
    CHECK(std::equal(data.begin(), data.end(), pages.at));
    CHECK(plain.bytes()[64] == std::byte{5});
    CHECK(ends.owner.device.allocate(page, {.guarded = true}).status() == Status::invalid_argument);
  }
}

}  // namespace
}  // namespace urma::test
