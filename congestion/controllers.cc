// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "congestion/aimd.h"
#include "congestion/caqm_r.h"
#include "congestion/caqm_w.h"
#include "congestion/controller.h"
#include "congestion/dcqcn.h"
#include "congestion/fixed.h"
#include "congestion/ldcp.h"

namespace urma::congestion {
namespace {

template <class Kind>
Controller* make(void* storage, const Settings& settings) {
  static_assert(sizeof(Kind) <= Controller::storage);
  return new (storage) Kind(settings);
}

// The first one is the default.
constexpr ControllerKind kinds[] = {
    {"aimd", "loss-driven window: slow start, additive increase, multiplicative decrease",
     make<Aimd>},
    {"fixed", "a constant window of the receiver's buffer: lossless media, measurements",
     make<Fixed>},
    {"ldcp", "a window that ECN marks reduce; starts with all that the path holds", make<Ldcp>,
     Needs::marks},
    {"dcqcn", "a rate that notifications cut: lossless links", make<Dcqcn>, Needs::notifications,
     true},
    {"caqm_w", "increases that switches grant (UB 6.6.1.3); without them as caqm_r", make<CaqmW>,
     Needs::increases, true},
    {"caqm_r", "rates that switches name; without them delays and ECN marks", make<CaqmR>,
     Needs::rates, true},
};

}  // namespace

std::span<const ControllerKind> controllers() { return kinds; }

const ControllerKind* find_controller(std::string_view name) {
  for (const ControllerKind& kind : kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace urma::congestion
