#include <new>

#include "congestion/aimd.h"
#include "congestion/controller.h"
#include "congestion/fixed.h"

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
