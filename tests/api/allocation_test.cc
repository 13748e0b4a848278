// SPDX-License-Identifier: Apache-2.0
// R13: the N-th of all allocations that a process makes while it opens, uses and closes devices is
// refused, for each N. Either a call returns an error that says so or all works complete, and
// nothing is leaked.

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "tests/api/helpers.h"
#include "tests/long_run.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

constexpr uint64_t none = UINT64_MAX;

std::atomic<bool> counting{false};
std::atomic<uint64_t> requests{0};
std::atomic<uint64_t> first_refused{none};
std::atomic<uint64_t> last_refused{none};
std::atomic<int64_t> blocks{0};  // that are allocated now
std::atomic<int64_t> mapped{0};  // bytes of mappings that exist now

bool refused() {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const uint64_t number = requests.fetch_add(1);
  return number >= first_refused.load() && number <= last_refused.load();
}

void* held(void* block) {
  if (block != nullptr) blocks.fetch_add(1);
  return block;
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  if (!refused()) return held(__libc_malloc(bytes));
  errno = ENOMEM;
  return nullptr;
}
void* calloc(size_t count, size_t bytes) {
  if (!refused()) return held(__libc_calloc(count, bytes));
  errno = ENOMEM;
  return nullptr;
}
void* realloc(void* old, size_t bytes) {
  if (refused()) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = __libc_realloc(old, bytes);
  return old == nullptr ? held(block) : block;
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  if (!refused()) return held(__libc_memalign(alignment, bytes));
  errno = ENOMEM;
  return nullptr;
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (refused()) return ENOMEM;
  *out = held(__libc_memalign(alignment, bytes));
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  if (block != nullptr) blocks.fetch_sub(1);
  __libc_free(block);
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (refused()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  const long made = syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
  void* const out = reinterpret_cast<void*>(made);
  // A mapping that replaces another does not change the sum.
  if (out != MAP_FAILED && (flags & MAP_FIXED) == 0) {
    mapped.fetch_add(static_cast<int64_t>((bytes + 4095) / 4096 * 4096));
  }
  return out;
}
int munmap(void* at, size_t bytes) {
  mapped.fetch_sub(static_cast<int64_t>((bytes + 4095) / 4096 * 4096));
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}

}  // extern "C"

namespace urma::test {
namespace {

// The memory and the descriptors that exist at one moment.
struct Held {
  int64_t blocks = ::blocks;
  int64_t mapped = ::mapped;
  ptrdiff_t descriptors = 0;

  static Held now() {
    Held out;
    const std::filesystem::directory_iterator all("/proc/self/fd");
    out.descriptors = std::distance(begin(all), end(all));
    return out;
  }
};

// An error says what failed and how to fix it, unless there was no memory for its own text.
struct Refusal {
  bool fair = true;
  std::array<char, 200> what{};
};
Refusal refusal;

template <class Value>
bool refuses(const Result<Value>& result) {
  if (result.ok()) return false;
  const Error& error = result.error();
  const bool says = error.message.empty() || error.message.find("Fix: ") != error.message.npos;
  if (says && !(error.status == Status::ok)) return true;
  refusal.fair = false;
  std::snprintf(refusal.what.data(), refusal.what.size(), "%d: %s", static_cast<int>(error.status),
                error.message.c_str());
  return true;
}

// Sets up devices and exchanges works in both directions, as far as memory allows. Returns false if
// a work did not complete.
bool use(const std::string& text, const DeviceOptions& options) {
  static std::array<std::byte, 4096> local;
  auto here = urma::open(text, options);
  if (refuses(here)) return true;
  auto there = urma::open(text, options);
  if (refuses(there)) return true;
  auto memory = there->allocate(1 << 20);
  auto own = here->register_memory(local);
  auto inbox = there->jfr({.receives = 8});
  auto shared = here->jfc(64);
  if (refuses(memory) || refuses(own) || refuses(inbox) || refuses(shared)) return true;
  auto sender = here->jetty({.berths = 16, .completions = &*shared});
  auto target = there->jetty({.berths = 4, .receives = 8});
  if (refuses(sender) || refuses(target)) return true;
  if (refuses(there->publish("r13", *memory, *target))) return true;
  const Result<Imported> to = here->import("urma://localhost/r13", 50ms);
  if (refuses(to)) return true;
  auto import = here->start_import("urma://localhost/r13", {.limit = 50ms});
  if (refuses(import)) return true;
  std::optional<Result<Imported>> again;
  while (!(again = import->poll())) {
  }
  if (refuses(*again)) return true;
  std::array<std::byte, 64> message;
  for (uint64_t tag = 0; tag < 4; ++tag)
    REQUIRE(target->receive(std::span(local).subspan(64 * tag, 64), tag));
  uint64_t posted = 0;
  for (int i = 0; i < 3; ++i) {
    posted += sender->post(write(std::span(local).first(3000), to->segment).tag(1));
    posted += sender->post(read(std::span(local).first(3000), to->segment).tag(2));
    posted += sender->post(send(message, to->jetty).tag(3));
    posted += sender->post(write(message, to->segment).to(to->jetty).immediate(4).tag(4));
  }
  std::array<Completion, 16> out;
  const auto begun = std::chrono::steady_clock::now();
  while (posted > 0) {
    const size_t count = shared->poll(out);
    posted -= count;
    (void)target->poll(out);  // takes the arrivals
    if (std::chrono::steady_clock::now() - begun > patience) return false;
  }
  refuses(here->paths(to->segment.peer));
  refuses(here->endpoint(to->segment.peer));
  refuses(here->settings());
  refuses(here->stats());
  refuses(memory->rotate());
  refuses(there->unpublish("r13"));
  refuses(sender->flush());
  refuses(memory->unregister());
  refuses(own->unregister());
  return true;
}

struct Setting {
  const char* text;
  Threads threads;
};

TEST_CASE(
    "R13: whichever allocation fails, calls return errors or works complete, and nothing is "
    "leaked") {
  const bool thorough = long_run();
  for (const Setting& setting : {Setting{"udp:", Threads::inlined},
                                 {"udp:", Threads::automatic},
                                 {"cxl:", Threads::inlined},
                                 {"paths():udp:+udp:", Threads::inlined},
                                 {"fault(loss=5%):udp:", Threads::inlined}}) {
    const Medium medium(setting.text);
    // A set-up without an answer lasts until its timeout.
    const DeviceOptions options = {.threads = setting.threads, .operation_timeout = 300ms};
    const std::string text = medium.text();
    for (int i = 0; i < 3; ++i)
      REQUIRE(use(
          text,
          options));  // so that memory that is allocated only once exists before the count begins
    requests = 0;
    first_refused = none;
    counting = true;
    const bool well = use(text, options);
    counting = false;
    REQUIRE(well);
    const uint64_t all = requests;
    const Held before = Held::now();
    // The quick test refuses each of the first allocations, which open the device, and then one of
    // every `step`.
    const uint64_t step = thorough ? 1 : std::max<uint64_t>(all / 150, 1);
    const auto next = [&](uint64_t n) { return n < 300 ? n + 1 : n + step; };
    for (const uint64_t for_how_many : {uint64_t{1}, none}) {
      for (uint64_t n = 0; n < all; n = next(n)) {
        refusal = {};
        last_refused = for_how_many == none ? none : n;
        first_refused = n;
        requests = 0;
        counting = true;
        const bool ended = use(text, options);
        counting = false;
        INFO(text << ", allocation " << n << " of " << all
                  << (for_how_many == 1 ? " fails" : " and all later ones fail"));
        REQUIRE(ended);
        if (!refusal.fair) UNSCOPED_INFO(refusal.what.data());
        CHECK(refusal.fair);
        const Held after = Held::now();
        CHECK(after.descriptors == before.descriptors);
      }
    }
    // Runs once more without a refusal: no more memory may be held than before the refusals.
    REQUIRE(use(text, options));
    const Held after = Held::now();
    INFO(text);
    CHECK(after.blocks <= before.blocks + 8);
    CHECK(after.mapped <= before.mapped);
    std::printf(
        "R13 %s: %lu allocations; one in %lu refused, alone and with all later ones: %ld blocks "
        "and "
        "%ld bytes more than before\n",
        text.c_str(), all, step, after.blocks - before.blocks, after.mapped - before.mapped);
  }
}

}  // namespace
}  // namespace urma::test
