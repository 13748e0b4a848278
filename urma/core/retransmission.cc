// SPDX-License-Identifier: Apache-2.0
#include "urma/core/retransmission.h"

#include <algorithm>
#include <iterator>

namespace urma {
namespace {

constexpr NamedRetransmission named[] = {
    {"sel-rack",
     "missing packets, once later ones have arrived; a probe detects the loss of the last packets",
     sel_rack},
    {"sel-fast",
     "missing packets, once the peer reports them missing: for a single path and little loss",
     sel_fast},
    {"sel-timeout", "missing packets, after a time-out: for several paths and very little loss",
     sel_timeout},
    {"gbn-fast",
     "all packets from the first missing one on, once the peer reports it missing: for a single "
     "path and hardly any "
     "loss",
     gbn_fast},
    {"gbn-timeout",
     "all packets from the first missing one on, after a time-out: for several paths and hardly "
     "any loss",
     gbn_timeout},
};

}  // namespace

NamedRetransmissions named_retransmissions() { return {std::begin(named), std::end(named)}; }

const NamedRetransmission* find_retransmission(std::string_view name) {
  const auto* found = std::find_if(std::begin(named), std::end(named),
                                   [&](const auto& one) { return one.name == name; });
  return found == std::end(named) ? nullptr : found;
}

std::string_view name(const Retransmission& mode) {
  for (const NamedRetransmission& one : named) {
    if (one.mode.scope == mode.scope && one.mode.trigger == mode.trigger &&
        one.mode.keeps_out_of_order == mode.keeps_out_of_order) {
      return one.name;
    }
  }
  return "custom";
}

}  // namespace urma
