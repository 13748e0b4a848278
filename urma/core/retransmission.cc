#include "urma/core/retransmission.h"

#include <algorithm>
#include <iterator>

namespace urma {
namespace {

constexpr NamedRetransmission named[] = {
    {"sel-rack", "what is missing, once later packets have come; a probe for the last ones",
     sel_rack},
    {"sel-fast", "what is missing, once the peer says so: single path, little loss", sel_fast},
    {"sel-timeout", "what is missing, after a time-out: many paths, very little loss", sel_timeout},
    {"gbn-fast",
     "all from the first missing one, once the peer says so: single path, hardly any "
     "loss",
     gbn_fast},
    {"gbn-timeout", "all from the first missing one, after a time-out: many paths, hardly any loss",
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
