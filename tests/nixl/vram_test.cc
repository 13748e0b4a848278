// SPDX-License-Identifier: Apache-2.0
// NIXL's agents move memory of GPUs.
#include <algorithm>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/accelerator/gpu.h"
#include "tests/catch.h"
#include "tests/nixl/agent.h"

namespace urma::test {
namespace {

using Range = Agent::Range;

constexpr size_t memory_bytes = 1 << 20;

std::vector<std::byte> random_bytes(uint64_t seed) {
  std::vector<std::byte> out(memory_bytes);
  Prng prng(seed);
  for (std::byte& one : out) one = static_cast<std::byte>(prng.next());
  return out;
}

// Ranges of equal sizes that lie in one order here, and in the opposite order there.
std::vector<Range> mirrored(size_t bytes) {
  std::vector<Range> out;
  for (size_t at = 0; at + bytes <= memory_bytes; at += bytes) {
    out.push_back({.here = at, .there = memory_bytes - at - bytes, .bytes = bytes});
  }
  return out;
}

std::vector<std::byte> mirror(const std::vector<std::byte>& data, size_t bytes) {
  std::vector<std::byte> out(data.size());
  for (const Range& one : mirrored(bytes)) {
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(one.here), one.bytes,
                out.begin() + static_cast<ptrdiff_t>(one.there));
  }
  return out;
}

// Two agents, each with memory of a GPU of its own.
struct GpuPair {
  explicit GpuPair(const std::string& device)
      : a("a", device, here.span()), b("b", device, there.span()) {
    a.load(b);
  }

  GpuBytes here{memory_bytes};
  GpuBytes there{memory_bytes, 1};
  Agent a;
  Agent b;
};

}  // namespace

TEST_CASE("memory of GPUs is written and read in lists of ranges, with notifications") {
  const Media media;
  for (const std::string& device : media.devices()) {
    INFO(device);
    GpuPair pair(device);
    auto& [here, there, a, b] = pair;
    const std::string note = "done";
    // The first works go in packets, the later ones directly.
    for (uint64_t round = 0; round < 20; ++round) {
      INFO("round " << round);
      const bool reads = round % 2 == 1;
      const size_t bytes = round % 4 < 2 ? 4096 : 262'144;
      const std::vector<std::byte> data = random_bytes(round);
      (reads ? there : here).set(data);
      (reads ? here : there).fill(std::byte{0});
      REQUIRE(a.run(reads ? NIXL_READ : NIXL_WRITE, mirrored(bytes), &note) == NIXL_SUCCESS);
      REQUIRE(b.notes(1) == notif_list_t{{"a", note}});
      REQUIRE(((reads ? here : there).get(0, memory_bytes) == mirror(data, bytes)));
    }
  }
}

TEST_CASE("one request moves between memory of a GPU and memory of the host") {
  const Media media;
  for (const std::string& device : media.devices()) {
    INFO(device);
    GpuBytes gpu(memory_bytes);
    Agent a("a", device, gpu.span());
    Agent b("b", device, memory_bytes);
    a.load(b);
    const std::vector<std::byte> data = random_bytes(1);
    gpu.set(data);
    REQUIRE(a.run(NIXL_WRITE, mirrored(65'536)) == NIXL_SUCCESS);
    REQUIRE((b.memory == mirror(data, 65'536)));
    std::ranges::copy(random_bytes(2), b.memory.begin());
    REQUIRE(a.run(NIXL_READ, mirrored(4096)) == NIXL_SUCCESS);
    REQUIRE((gpu.get(0, memory_bytes) == mirror(b.memory, 4096)));
  }
}

TEST_CASE("when memory of a GPU is deregistered, no agent writes it any more") {
  const Media media;
  for (const std::string& device : media.devices()) {
    INFO(device);
    GpuPair pair(device);
    auto& [here, there, a, b] = pair;
    here.fill(std::byte{1});
    nixlBackendReqH* const request = a.prepare(NIXL_WRITE, mirrored(4096));
    REQUIRE(request != nullptr);
    nixl_status_t status = a.finish(request, a.post(request));
    REQUIRE(status == NIXL_SUCCESS);
    status = a.post(request);
    b.deregister();
    there.fill(std::byte{7});
    status = a.finish(request, status);
    CHECK(status != NIXL_IN_PROG);
    CHECK(a.finish(request, a.post(request)) == NIXL_ERR_REMOTE_DISCONNECT);
    CHECK((there.get(0, memory_bytes) == std::vector<std::byte>(memory_bytes, std::byte{7})));
    a.engine().releaseReqH(request);
  }
}

}  // namespace urma::test
