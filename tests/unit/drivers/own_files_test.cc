// SPDX-License-Identifier: Apache-2.0
// share=segment: the properties of a segment's own file, and which peers get it.

#include "drivers/cxl/own_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>

#include "drivers/cxl/layout.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using drivers::cxl::FileRequest;
using drivers::cxl::OwnFiles;
using Answer = OwnFiles::Answer;

constexpr uint32_t segment = 3;
constexpr uint64_t bytes = 10'000;

struct Owner {
  explicit Owner(Rights rights = Rights::read | Rights::write, bool checked = true) {
    REQUIRE(files.reserve(segment, bytes) != nullptr);
    REQUIRE(files.make(segment));
    grant.rights = rights;
    grant.checked = checked;
    good.file = files.grant(segment, grant);
  }
  // Returns the answer with the owner's descriptor.
  Answer ask(const FileRequest& request) {
    descriptor = -1;
    const Answer answer = files.answer(request, descriptor);
    CHECK((answer == Answer::granted) == (descriptor >= 0));
    return answer;
  }

  OwnFiles files{8};
  drivers::SegmentMemory::Grant grant{
      .id = TokenId(77), .token = TokenValue(0x1234), .older = TokenValue(0x4321)};
  FileRequest good{.word = FileRequest::first_word,
                   .segment = segment,
                   .file = 0,
                   .token_id = 77,
                   .token = 0x1234,
                   .slot = 1};
  int descriptor = -1;
};

TEST_CASE("own files: a peer that shows the TokenID and either token gets the descriptor") {
  Owner owner;
  CHECK_FALSE(owner.files.handed_over(segment));
  CHECK(owner.ask(owner.good) == Answer::granted);
  CHECK(owner.files.handed_over(segment));
  CHECK(owner.files.users(segment) == OwnFiles::SlotSet{1 << 1});
  FileRequest another = owner.good;
  another.slot = 200;
  CHECK(owner.ask(another) == Answer::granted);
  CHECK(owner.files.users(segment) == OwnFiles::SlotSet{1 << 1, 0, 0, 1 << (200 - 3 * 64)});
  FileRequest older = owner.good;
  older.token = 0x4321;
  CHECK(owner.ask(older) == Answer::granted);
  for (unsigned bit = 0; bit < 32; ++bit) {
    FileRequest wrong = owner.good;
    wrong.token ^= 1u << bit;
    CHECK(owner.ask(wrong) == Answer::bad_token);
    wrong = owner.good;
    wrong.token_id ^= 1u << bit;
    CHECK(owner.ask(wrong) == Answer::bad_token);
  }
  Owner open(Rights::read, false);
  open.good.token = 9;
  CHECK(open.ask(open.good) == Answer::granted);
  open.good.token_id = 9;
  CHECK(open.ask(open.good) == Answer::bad_token);
}

TEST_CASE("own files: a refused request gets no descriptor") {
  Owner owner;
  FileRequest wrong = owner.good;
  wrong.token ^= 1;
  CHECK(owner.ask(wrong) == Answer::bad_token);
  CHECK_FALSE(owner.files.handed_over(segment));
}

TEST_CASE(
    "own files: a request for a file that does not exist counts as late or malformed, not as a "
    "guess") {
  Owner owner;
  const auto refused = [&](auto&& change) {
    FileRequest request = owner.good;
    change(request);
    const Answer answer = owner.ask(request);
    CHECK((answer == Answer::nonsense || answer == Answer::late));
  };
  refused([](FileRequest& request) { request.word ^= 1; });
  refused([](FileRequest& request) { request.segment = 8; });
  refused([](FileRequest& request) { request.segment = UINT32_MAX; });
  refused([](FileRequest& request) { request.segment = 2; });
  refused([](FileRequest& request) { request.file ^= 1; });
  refused([](FileRequest& request) { request.file = 0; });
  refused([](FileRequest& request) { request.slot = drivers::cxl::slot_count; });
  owner.files.close(segment);
  CHECK(owner.ask(owner.good) == Answer::late);
  owner.files.drop(segment);
  CHECK(owner.ask(owner.good) == Answer::late);
  // The next file with the same number is another file.
  REQUIRE(owner.files.reserve(segment, bytes) != nullptr);
  REQUIRE(owner.files.make(segment));
  CHECK(owner.ask(owner.good) == Answer::late);
  const uint32_t next = owner.files.grant(segment, owner.grant);
  CHECK(next != owner.good.file);
  CHECK(owner.ask(owner.good) == Answer::late);
  owner.good.file = next;
  CHECK(owner.ask(owner.good) == Answer::granted);
  owner.files.close_all();
  CHECK(owner.ask(owner.good) == Answer::late);
}

TEST_CASE("own files: peers can neither truncate nor extend them, nor write to read-only ones") {
  for (const bool writable : {true, false}) {
    Owner owner(writable ? Rights::read | Rights::write : Rights::read);
    REQUIRE(owner.ask(owner.good) == Answer::granted);
    CHECK(ftruncate(owner.descriptor, 0) != 0);
    CHECK(ftruncate(owner.descriptor, 1 << 20) != 0);
    CHECK(fcntl(owner.descriptor, F_ADD_SEALS, F_SEAL_WRITE) != 0);
    CHECK((pwrite(owner.descriptor, "x", 1, 0) == 1) == writable);
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, owner.descriptor, 0);
    CHECK((at != MAP_FAILED) == writable);
    if (at != MAP_FAILED) munmap(at, bytes);
    owner.files.at(segment)[5] = std::byte{7};
    std::byte seen{};
    CHECK(pread(owner.descriptor, &seen, 1, 5) == 1);
    CHECK(seen == std::byte{7});
    CHECK(fcntl(owner.descriptor, F_GETFD) == FD_CLOEXEC);
  }
}

// A peer that has a file can read it, whatever the rights of the segment are.
TEST_CASE("own files: without the right to read no peer gets one") {
  for (const Rights rights : {Rights::local_only, Rights::write, Rights::write | Rights::atomic}) {
    Owner owner(rights);
    CHECK(owner.good.file == 0);
    CHECK(owner.ask(owner.good) == Answer::late);
  }
}

TEST_CASE("own files: a quarter of the process's descriptors remains for the application") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 64;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  OwnFiles files(64);
  uint32_t made = 0;
  while (made < 64 && files.reserve(made, bytes) != nullptr && files.make(made)) ++made;
  files.drop(made);
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(made > 32);
  CHECK(next >= 0);
  CHECK(next <= 48);
  close(next);
}

TEST_CASE("own files: they consist of whole zeroed pages, and are removed when dropped") {
  Owner owner;
  CHECK(owner.files.bytes(segment) == 12'288);
  REQUIRE(owner.ask(owner.good) == Answer::granted);
  for (uint64_t i = 0; i < owner.files.bytes(segment); ++i) {
    REQUIRE(owner.files.at(segment)[i] == std::byte{0});
  }
  owner.files.drop(segment);
  CHECK(fcntl(owner.descriptor, F_GETFD) < 0);
  CHECK(owner.files.at(segment) == nullptr);
  CHECK_FALSE(owner.files.handed_over(segment));
}

}  // namespace
}  // namespace urma::test
