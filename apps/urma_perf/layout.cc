// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/layout.h"

#include <algorithm>

#include "apps/urma_perf/pattern.h"

namespace urma::apps::perf {
namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t line = 64;
// The raw loops receive 64 KiB at a time, at any offset of the landing slots.
constexpr uint64_t raw_slack = 64 * 1024;

constexpr uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint32_t slots_of(const Case& what) {
  if (what.test->plan) return 1;
  if (what.test->ping_pong()) return what.test->sends() ? 4 : 1;
  if (what.test->lane) return calls_per_group(what);
  // A receive is posted again only after its message was checked, and the sender must not wait for
  // that.
  return what.test->sends() ? 2 * what.depth : what.depth;
}

uint64_t ledger_words(const Case& what, uint32_t slots) {
  if (what.test->plan) return 1 + Layout::words_of_block * uint64_t{what.plan.blocks};
  return uint64_t{slots} * what.jetties;
}

// The one write beside a plan needs as many bytes as its blocks have.
uint64_t bytes_from(const Case& what) {
  return what.test->plan ? std::max(what.bytes, what.plan.source_bytes) : what.bytes;
}
uint64_t bytes_to(const Case& what) {
  return what.test->plan ? std::max(what.bytes, what.plan.target_bytes) : what.bytes;
}

}  // namespace

Layout::Layout(const Case& what)
    : slots_(slots_of(what)),
      ledger_words_(ledger_words(what, slots_)),
      stride_(round_up(bytes_to(what), bytes_to(what) < page ? 64 : page)),
      source_(round_up(ledger_words_ * sizeof(uint64_t), page)),
      source_bytes_(Pattern::source_bytes(bytes_from(what))),
      // The stride is not a multiple of the page size: otherwise the first lines of all sources
      // would be in the same sets of a cache.
      source_stride_(round_up(source_bytes_, line) + line),
      sources_(static_cast<uint32_t>(std::max<uint64_t>(what.spread / source_stride_, 1))),
      landing_(what.test->plan ? source_ : source_ + round_up(sources_ * source_stride_, page)),
      bytes_(std::max(source_ + sources_ * source_stride_,
                      landing_ + round_up(uint64_t{slots_} * what.jetties * stride_, page)) +
             raw_slack) {}

uint64_t Layout::source_at(uint32_t window, uint32_t source) const {
  return source_ + source * source_stride_ + uint64_t{window} * Pattern::window_bytes;
}

}  // namespace urma::apps::perf
