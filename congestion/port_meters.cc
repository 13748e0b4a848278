// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "congestion/caqm_r.h"
#include "congestion/caqm_w.h"
#include "congestion/port_meter.h"

namespace urma::congestion {
namespace {

// A port that leaves all signals as they are: a switch without congestion control.
class NoMeter final : public PortMeter {
 public:
  explicit NoMeter(const PortSettings&) {}

  Signal arrive(Time, uint32_t, uint64_t, Signal in) override { return in; }
  Signal depart(Time, uint32_t, uint64_t, Signal in) override { return in; }
};

template <class Kind>
PortMeter* make(void* storage, const PortSettings& settings) {
  static_assert(sizeof(Kind) <= PortMeter::storage && PortMeter::storage < 128);
  return new (storage) Kind(settings);
}

constexpr PortMeterKind kinds[] = {
    {"none", "leaves all signals as they are", make<NoMeter>, Metering::none},
    {"caqm_w", "grants increases of windows, and marks when overloaded", make<CaqmWMeter>,
     Metering::increases, true},
    {"caqm_r", "counts flows and names their fair rate", make<CaqmRMeter>, Metering::rates},
};

}  // namespace

std::span<const PortMeterKind> port_meters() { return kinds; }

const PortMeterKind* find_port_meter(std::string_view name) {
  for (const PortMeterKind& kind : kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace urma::congestion
