// SPDX-License-Identifier: Apache-2.0
#include "base/guarded_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/futex.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

constexpr size_t page = 4096;

// Three pages, of which the middle one can be unmapped.
struct Pages {
  explicit Pages(size_t count, int flags = MAP_ANONYMOUS | MAP_PRIVATE, int file = -1)
      : bytes(count * page) {
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    REQUIRE(made != MAP_FAILED);
    at = static_cast<std::byte*>(made);
  }
  ~Pages() { munmap(at, bytes); }
  Pages(const Pages&) = delete;
  void protect(size_t which, int protection) {
    REQUIRE(mprotect(at + which * page, page, protection) == 0);
  }
  void unmap(size_t which) { REQUIRE(munmap(at + which * page, page) == 0); }

  size_t bytes;
  std::byte* at;
};

TEST_CASE("mapped memory is copied, for any size") {
  GuardedCopy guard;
  REQUIRE(guard.open({}));
  REQUIRE(guard.open({}));
  for (const size_t bytes : {size_t{1}, size_t{8}, page - 1, page, page + 1, size_t{200'000}}) {
    std::vector<std::byte> from(bytes);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 13 + bytes);
    std::vector<std::byte> to(bytes + 1, std::byte{7});
    REQUIRE(guard.copy(to.data(), from.data(), bytes));
    CHECK(std::equal(from.begin(), from.end(), to.begin()));
    CHECK(to.back() == std::byte{7});
  }
}

TEST_CASE("unmapped memory on either side is not a fault, and leaves nothing for the next copy") {
  GuardedCopy guard;
  REQUIRE(guard.open({}));
  const std::vector<std::byte> ones(6 * page, std::byte{1});
  for (const bool from : {true, false}) {
    for (const size_t gone : {0, 1, 5}) {
      INFO("from " << from << " page " << gone);
      Pages pages(6);
      std::vector<std::byte> other = ones;
      std::fill_n(pages.at, pages.bytes, std::byte{2});
      pages.unmap(gone);
      std::byte* const ours = other.data();
      const bool copied =
          from ? guard.copy(ours, pages.at, pages.bytes) : guard.copy(pages.at, ours, pages.bytes);
      CHECK_FALSE(copied);
      // The next copy contains nothing of the failed one.
      std::byte word[8] = {};
      REQUIRE(guard.copy(word, ones.data(), sizeof word));
      CHECK(std::ranges::all_of(word, [](std::byte byte) { return byte == std::byte{1}; }));
    }
  }
}

TEST_CASE("read-only memory can be copied from, but not to") {
  GuardedCopy guard;
  REQUIRE(guard.open({}));
  Pages pages(2);
  pages.at[page] = std::byte{5};
  pages.protect(1, PROT_READ);
  std::byte byte{};
  CHECK(guard.copy(&byte, pages.at + page, 1));
  CHECK(byte == std::byte{5});
  CHECK_FALSE(guard.copy(pages.at + page, &byte, 1));
  pages.protect(1, PROT_NONE);
  CHECK_FALSE(guard.copy(&byte, pages.at + page, 1));
}

TEST_CASE("copying behind the end of a truncated file fails") {
  GuardedCopy guard;
  REQUIRE(guard.open({}));
  const int file = memfd_create("cut", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, 2 * page) == 0);
  const Pages pages(2, MAP_SHARED, file);
  std::byte byte{3};
  CHECK(guard.copy(pages.at + page, &byte, 1));
  REQUIRE(ftruncate(file, page) == 0);
  CHECK_FALSE(guard.copy(pages.at + page, &byte, 1));
  CHECK_FALSE(guard.copy(&byte, pages.at + page, 1));
  CHECK(guard.copy(pages.at, &byte, 1));
  CHECK_FALSE(may_store(pages.at + page));
  close(file);
}

TEST_CASE("the check whether memory may be written does not change the memory") {
  Pages pages(4);
  for (size_t i = 0; i < pages.bytes; ++i) pages.at[i] = static_cast<std::byte>(i * 3);
  pages.protect(1, PROT_READ);
  pages.protect(2, PROT_NONE);
  pages.unmap(3);
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{7}, page - 1}) {
    CHECK(may_store(pages.at + offset));
    CHECK_FALSE(may_store(pages.at + page + offset));
    CHECK_FALSE(may_store(pages.at + 2 * page + offset));
    CHECK_FALSE(may_store(pages.at + 3 * page + offset));
  }
  bool same = true;
  for (size_t i = 0; i < 2 * page; ++i) same = same && pages.at[i] == static_cast<std::byte>(i * 3);
  CHECK(same);
}

}  // namespace
}  // namespace urma::test
