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
  if (what.test->ping_pong()) return what.test->sends() ? 4 : 1;
  if (what.test->lane) return calls_per_group(what);
  // A receive is posted again only after its message was checked, and the sender must not wait for
  // that.
  return what.test->sends() ? 2 * what.depth : what.depth;
}

}  // namespace

Layout::Layout(const Case& what)
    : slots_(slots_of(what)),
      lanes_(uint64_t{slots_} * what.jetties),
      stride_(round_up(what.bytes, what.bytes < page ? 64 : page)),
      source_(round_up(lanes_ * sizeof(uint64_t), page)),
      source_bytes_(Pattern::source_bytes(what.bytes)),
      // The stride is not a multiple of the page size: otherwise the first lines of all sources
      // would be in the same sets of a cache.
      source_stride_(round_up(source_bytes_, line) + line),
      sources_(static_cast<uint32_t>(std::max<uint64_t>(what.spread / source_stride_, 1))),
      landing_(source_ + round_up(sources_ * source_stride_, page)),
      bytes_(landing_ + round_up(lanes_ * stride_, page) + raw_slack) {}

uint64_t Layout::source_at(uint32_t window, uint32_t source) const {
  return source_ + source * source_stride_ + uint64_t{window} * Pattern::window_bytes;
}

}  // namespace urma::apps::perf
