// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/faults.h"

#include <algorithm>

#include "drivers/frame_pool.h"

namespace urma::drivers::sim {

void Faults::cut(const Endpoint& from, const Endpoint& to, bool severed, size_t longest) {
  std::erase_if(cuts_, [&](const Cut& cut) { return cut.from == from && cut.to == to; });
  if (severed) cuts_.push_back({from, to, longest});
}

bool Faults::is_cut(const Endpoint& from, const Endpoint& to, size_t bytes) const {
  return std::ranges::any_of(cuts_, [&](const Cut& cut) {
    return cut.from == from && cut.to == to && bytes > cut.longest;
  });
}

void Faults::show(const Endpoint& from, const TxFrame& frame) {
  if (!on_leave) return;
  shown_.resize(frame.bytes());
  flatten(frame, shown_.data());
  show(from, shown_);
}

}  // namespace urma::drivers::sim
