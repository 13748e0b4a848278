// SPDX-License-Identifier: Apache-2.0
#include "jetty/queues.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.h"

namespace urma::jetty {
namespace {

// Returns how many completions one wait can return. A shared queue may return completions of other
// Jetties, so the result is `most`. It is at least one, for the completion that reports the end of
// the device.
size_t most_waited(bool own_jfc, uint32_t entries) {
  constexpr uint32_t most = 64;
  return own_jfc ? std::clamp(entries, 1u, most) : most;
}

}  // namespace

Queues::Queues(uint16_t berths, uint16_t receives, std::shared_ptr<Jfc> jfc, uint32_t inline_bytes)
    : jfs_(berths, inline_bytes, most_waited(jfc.use_count() == 0, entries_of(berths, receives))),
      jfr_(receives),
      jfc_(std::move(jfc)) {
  URMA_ASSERT(static_cast<void*>(this) == &jfs_, "probes name a queue by either address");
}

Queues::Queues(uint16_t berths, uint16_t receives, Jfc& jfc, uint32_t inline_bytes)
    : Queues(berths, receives, std::shared_ptr<Jfc>(std::shared_ptr<void>(), &jfc), inline_bytes) {}

struct Queues::WithJfc {
  WithJfc(uint16_t berths, uint16_t receives, uint32_t inline_bytes)
      : jfc(std::max(entries_of(berths, receives), 1u)),
        queues(berths, receives, jfc, inline_bytes) {}

  Jfc jfc;
  Queues queues;
};

std::shared_ptr<Queues> Queues::with_own_jfc(uint16_t berths, uint16_t receives,
                                             uint32_t inline_bytes) {
  auto both = std::make_shared<WithJfc>(berths, receives, inline_bytes);
  both->jfc.reserve(both->queues.entries());
  return {both, &both->queues};
}

// Includes the counts of the shared pointers.
size_t Queues::bytes_with_own_jfc() { return sizeof(WithJfc) + 2 * sizeof(void*); }

Queues::Retirement& Queues::retire() {
  static_assert(sizeof(Retirement) <= Jfs::spare_bytes);
  jfs_.touch();
  return *new (jfs_.spare()) Retirement;
}

Queues::Retirement& Queues::retirement() {
  return *std::launder(reinterpret_cast<Retirement*>(jfs_.spare()));
}

std::shared_ptr<Queues> Queues::end_retirement() {
  Retirement& ending = retirement();
  std::shared_ptr<Queues> self = std::move(ending.self);
  ending.~Retirement();
  new (jfs_.spare()) std::byte[sizeof(Retirement)]{};
  return self;
}

}  // namespace urma::jetty
