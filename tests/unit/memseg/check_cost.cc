// SPDX-License-Identifier: Apache-2.0
// Measures the time of an access check. Run segment_check by hand, from build/release.

#include <chrono>
#include <cstdio>
#include <vector>

#include "base/prng.h"
#include "memseg/segment_table.h"

namespace {

using urma::memseg::SegmentTable;

double nanoseconds(const SegmentTable& table, const std::vector<SegmentTable::Made>& made,
                   const std::vector<uint64_t>& addresses, size_t used) {
  constexpr int checks = 20'000'000;
  urma::Prng prng(1);
  std::vector<uint32_t> order(1 << 12);
  for (uint32_t& one : order) one = static_cast<uint32_t>(prng.below(used));
  uint64_t found = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < checks; ++i) {
    // The next check depends on the result of this one, as work behind a check does.
    const uint32_t which = order[(static_cast<size_t>(i) + (found & 1)) % order.size()];
    const SegmentTable::Token& token = made[which].token;
    found += 2 * (table.check(token.id, token.value, addresses[which] + 8, 64,
                              urma::Rights::write) != nullptr);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
  if (found != 2 * uint64_t{checks}) std::puts("refused");
  return took.count() / checks;
}

}  // namespace

int main() {
  std::printf("segments    8 in use   4096 in use   all in use    ns for a check\n");
  std::vector<std::byte> memory(4096);
  for (const uint32_t count : {8u, 4096u, 1'000'000u}) {
    SegmentTable table(count, urma::SipHash(1, 2));
    std::vector<SegmentTable::Made> made(count);
    std::vector<uint64_t> addresses(count, reinterpret_cast<uint64_t>(memory.data()));
    for (SegmentTable::Made& one : made) {
      table.add({memory.data(), memory.size(), urma::Rights::write}, urma::TokenPolicy::plain_text,
                one);
    }
    std::printf("%8u  %10.1f  %12.1f  %11.1f\n", count, nanoseconds(table, made, addresses, 8),
                nanoseconds(table, made, addresses, std::min(count, 4096u)),
                nanoseconds(table, made, addresses, count));
  }
}
