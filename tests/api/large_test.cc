// SPDX-License-Identifier: Apache-2.0
// Memory that is larger than the machine's, that belongs to a file, or that is shared with a child.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <optional>

#include "tests/api/helpers.h"

namespace urma::test {
namespace {

struct LargeEnds : UserAndOwner {
  using UserAndOwner::UserAndOwner;
  // Returns whether a read returns what a write has stored there.
  bool works(const RemoteSegment& there, uint64_t offset, size_t bytes = 5000) {
    const auto data = bytes_like(bytes, static_cast<unsigned>(offset));
    std::vector<std::byte> back(bytes);
    return run(write(data, there, offset)) == Status::ok &&
           run(read(back, there, offset)) == Status::ok && back == data;
  }
};

uint64_t resident_pages() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  unsigned long all = 0;
  unsigned long resident = 0;
  REQUIRE(std::fscanf(file, "%lu %lu", &all, &resident) == 2);
  std::fclose(file);
  return resident;
}

// A few of 16 Mi pages. A touched page may be a huge one.
constexpr uint64_t few_pages = 16 * 1024;

// `urma_perf reg --self` shows that this takes as long as for a small segment; this test shows that
// it takes no memory.
TEST_CASE("64 GiB are registered without touching their pages, and can be used from start to end") {
  constexpr size_t bytes = size_t{64} << 30;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;  // vm.overcommit_memory = 2, or ulimit -v
  for (const std::string_view driver : media) {
    for (const bool guarded : {false, true}) {
      LargeEnds ends(driver);
      const uint64_t before = resident_pages();
      Segment segment =
          ends.owner.device
              .register_memory({static_cast<std::byte*>(at), bytes}, {.guarded = guarded})
              .value();
      CHECK(resident_pages() < before + few_pages);
      const RemoteSegment there = ends.import(segment);
      CHECK(there.bytes == bytes);
      for (const uint64_t offset : {uint64_t{0}, uint64_t{bytes / 2 - 1}, uint64_t{bytes - 5000}}) {
        CHECK(ends.works(there, offset));
      }
      const auto data = bytes_like(2, 1);
      RemoteSegment beyond = there;
      ++beyond.bytes;
      CHECK(ends.run(write(data, beyond, bytes - 1)) == Status::remote_access);
      CHECK(resident_pages() < before + few_pages);
      REQUIRE(segment.unregister().ok());
      CHECK(ends.run(write(data, there)) == Status::remote_access);
    }
  }
  munmap(at, bytes);
}

// Tests both kinds: reserved huge pages, where the system has some, and huge pages that the kernel
// makes of small ones.
TEST_CASE("huge pages work like other memory") {
  constexpr size_t bytes = 8 << 20;
  for (const std::string_view driver : media) {
    LargeEnds ends(driver);
    for (const int flags : {MAP_HUGETLB, 0}) {
      void* const at =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
      if (at == MAP_FAILED) continue;
      (void)madvise(at, bytes, MADV_HUGEPAGE);
      for (const bool guarded : {false, true}) {
        const Segment segment =
            ends.owner.device
                .register_memory({static_cast<std::byte*>(at), bytes}, {.guarded = guarded})
                .value();
        for (const size_t offset : {size_t{0}, bytes / 4 - 7, bytes - 5000}) {
          CHECK(ends.works(ends.import(segment), offset));
        }
      }
      munmap(at, bytes);
    }
  }
}

// The library pins no memory, so a limit on locked memory does not limit segments.
TEST_CASE("segments may be larger than the memory that this process may lock") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
  for (const std::string_view driver : media) {
    constexpr size_t bytes = 16 << 20;
    LargeEnds ends(driver);
    std::vector<std::byte> own(bytes);
    const Segment first = ends.owner.device.register_memory(own).value();
    const Segment second = ends.owner.device.allocate(bytes).value();
    for (const Segment* segment : {&first, &second}) {
      CHECK(ends.works(ends.import(*segment), 0));
      CHECK(ends.works(ends.import(*segment), bytes - 5000));
    }
  }
  REQUIRE(setrlimit(RLIMIT_MEMLOCK, &before) == 0);
}

TEST_CASE("a write to a segment of a mapped file is in the file") {
  for (const std::string_view driver : media) {
    LargeEnds ends(driver);
    const std::string path = "/tmp/urma-mapped-" + std::to_string(getpid());
    std::FILE* const file = std::fopen(path.c_str(), "w+");
    REQUIRE(file != nullptr);
    unlink(path.c_str());
    constexpr size_t bytes = 1 << 20;
    REQUIRE(ftruncate(fileno(file), bytes) == 0);
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    REQUIRE(at != MAP_FAILED);
    {
      const Segment segment =
          ends.owner.device.register_memory({static_cast<std::byte*>(at), bytes}).value();
      const auto data = bytes_like(70'000, 3);
      REQUIRE(ends.run(write(data, ends.import(segment), 12'345)) == Status::ok);
      std::vector<std::byte> found(data.size());
      REQUIRE(pread(fileno(file), found.data(), found.size(), 12'345) ==
              static_cast<ssize_t>(found.size()));
      CHECK(found == data);
      // In the other direction, a change of the file is read through the segment.
      const std::byte byte{77};
      REQUIRE(pwrite(fileno(file), &byte, 1, bytes - 1) == 1);
      std::vector<std::byte> back(1);
      REQUIRE(ends.run(read(back, ends.import(segment), bytes - 1)) == Status::ok);
      CHECK(back[0] == byte);
    }
    munmap(at, bytes);
    std::fclose(file);
  }
}

// The parent's device continues to use the parent's memory. The child has a copy as of the fork,
// except that it shares the window's memory.
TEST_CASE("an owner that forks keeps its segments, and its child cannot change them") {
  for (const std::string_view driver : media) {
    LargeEnds ends(driver);
    std::vector<std::byte> own(1 << 16, std::byte{1});
    std::optional<Segment> private_one = ends.owner.device.register_memory(own).value();
    std::optional<Segment> allocated = ends.owner.device.allocate(1 << 16).value();
    const bool mapped = allocated->mapped();
    std::ranges::fill(allocated->bytes(), std::byte{1});
    int go[2];
    REQUIRE(pipe(go) == 0);
    const pid_t child = fork();
    if (child == 0) {
      char byte = 0;
      if (::read(go[0], &byte, 1) != 1) _exit(9);
      // A peer has written to the parent's memory meanwhile.
      if (own[0] != std::byte{1}) _exit(1);
      if ((allocated->bytes()[0] == std::byte{1}) == mapped) _exit(2);
      if (private_one->unregister().status() != Status::forked) _exit(3);
      if (allocated->revoke().status() != Status::forked) _exit(4);
      private_one.reset();
      allocated.reset();
      _exit(0);
    }
    const RemoteSegment first = ends.import(*private_one);
    const RemoteSegment second = ends.import(*allocated);
    const std::vector<std::byte> data(100, std::byte{2});
    for (const RemoteSegment& one : {first, second}) {
      CHECK(ends.run(write(data, one)) == Status::ok);
    }
    REQUIRE(::write(go[1], "", 1) == 1);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(own[0] == std::byte{2});
    CHECK(allocated->bytes()[0] == std::byte{2});
    // The segment that the child destroyed is still registered here.
    for (const RemoteSegment& one : {first, second}) {
      CHECK(ends.works(one, 0));
    }
    REQUIRE(private_one->unregister().ok());
    CHECK(ends.run(write(data, first)) == Status::remote_access);
    for (const int end : go) close(end);
  }
}

TEST_CASE("if there are no descriptors for a guard, the error says so") {
  LargeEnds ends("udp:");
  std::vector<std::byte> own(4096);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto refused = ends.owner.device.register_memory(own, {.guarded = true});
  const auto plain = ends.owner.device.register_memory(own);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(refused.status() == Status::no_resources);
  CHECK(refused.error().message.find("ulimit -n") != std::string::npos);
  CHECK(plain.ok());
  const Segment segment = ends.owner.device.register_memory(own, {.guarded = true}).value();
  CHECK(ends.works(ends.import(segment), 0, 4096));
}

}  // namespace
}  // namespace urma::test
