// SPDX-License-Identifier: Apache-2.0
#include "drivers/cxl/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "tests/catch.h"
#include "tests/unit/child.h"

namespace urma::test {
namespace {

using drivers::cxl::Guard;

constexpr size_t file_bytes = 1 << 16;

// A mapping of a file without a name, whose bytes are 7, and which the test truncates.
class CutMapping {
 public:
  CutMapping() {
    REQUIRE(ftruncate(file_, file_bytes) == 0);
    base_ = static_cast<std::byte*>(
        mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    REQUIRE(base_ != MAP_FAILED);
    for (std::byte& byte : std::span(base_, file_bytes)) byte = std::byte{7};
  }
  CutMapping(const CutMapping&) = delete;
  CutMapping& operator=(const CutMapping&) = delete;
  ~CutMapping() {
    munmap(base_, file_bytes);
    close(file_);
  }

  std::byte* base() const { return base_; }
  void cut() const { REQUIRE(ftruncate(file_, 0) == 0); }
  int read(size_t at = 0) const {
    return std::to_integer<int>(*static_cast<const volatile std::byte*>(base_ + at));
  }

 private:
  int file_ = memfd_create("cut", MFD_CLOEXEC);
  std::byte* base_ = nullptr;
};

bool handler_is(const struct sigaction& wanted) {
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  return now.sa_sigaction == wanted.sa_sigaction;
}

TEST_CASE("a guarded mapping becomes zeros when its file is truncated, and others stay") {
  const CutMapping first;
  const CutMapping second;
  const Guard guard(first.base(), file_bytes);
  const Guard other(second.base(), file_bytes);
  CHECK(first.read() == 7);
  CHECK_FALSE(guard.lost());
  first.cut();
  CHECK(first.read(file_bytes - 1) == 0);
  CHECK(guard.lost());
  CHECK(first.read() == 0);
  first.base()[5] = std::byte{1};  // private memory now
  CHECK(first.read(5) == 1);
  CHECK_FALSE(other.lost());
  CHECK(second.read() == 7);
}

TEST_CASE("a mapping is guarded for as long as its guard exists, wherever that was moved") {
  const CutMapping mapping;
  Guard outer;
  CHECK_FALSE(outer.lost());
  {
    Guard inner(mapping.base(), file_bytes);
    Guard moved(std::move(inner));
    outer = std::move(moved);
  }
  mapping.cut();
  CHECK(mapping.read() == 0);
  CHECK(outer.lost());
  // The next guard has a loss of its own.
  outer = Guard();
  const CutMapping next;
  const Guard fresh(next.base(), file_bytes);
  CHECK_FALSE(fresh.lost());
}

TEST_CASE("a fault in memory that no guard watches any longer ends the process") {
  const CutMapping mapping;
  const CutMapping other;
  mapping.cut();
  CHECK(survives([&] {
    const Guard guard(mapping.base(), file_bytes);
    mapping.read();
  }));
  CHECK_FALSE(survives([&] {
    signal(SIGBUS, SIG_DFL);
    const Guard kept(other.base(), file_bytes);
    Guard(mapping.base(), file_bytes);
    mapping.read();
  }));
}

TEST_CASE("the last guard restores the previous handler of SIGBUS") {
  struct sigaction before {};
  sigaction(SIGBUS, nullptr, &before);
  const CutMapping mapping;
  {
    Guard first(mapping.base(), file_bytes / 2);
    CHECK_FALSE(handler_is(before));
    const Guard second(mapping.base() + file_bytes / 2, file_bytes / 2);
    first = Guard();
    CHECK_FALSE(handler_is(before));
  }
  CHECK(handler_is(before));
}

}  // namespace
}  // namespace urma::test
