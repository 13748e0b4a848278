// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <new>

#include "base/assert.h"
#include "congestion/controller.h"
#include "transport/rtp/channel_routes.h"
#include "transport/rtp/controller_view.h"

namespace urma::transport {

// How much of a channel may be in flight, and when its next packet may leave: by the controller of
// the channel, which lies inside this object, and by those of its routes if it has several. It
// spares calls of controllers that do not pace. It does not know packets. `Tp` owns it. Only the
// thread that runs the engine calls it.
class Pacer {
 public:
  Pacer(const congestion::ControllerKind& kind, const congestion::Settings& settings)
      : paces_(kind.paces) {
    const void* const made = kind.make(storage_, settings);
    URMA_ASSERT(made == storage_, "a controller begins with its base class");
  }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;
  ~Pacer() { controller().~Controller(); }

  // Passes an event to the controller.
  template <class Event>
  void handle(const Event& event) {
    controller().handle(event);
  }
  uint64_t window_bytes() const { return controller().window_bytes(); }
  // Writes the channel's window and pace.
  void view(ChannelView& out) const { view_controller(controller(), paces_, out); }
  // Returns whether packets may have to wait for their departure. Acknowledgements never do.
  bool paces(ChannelRoutes routes) const { return paces_ || routes.departures().paces(); }
  bool may_depart(ChannelRoutes routes, Time now) const {
    return (!paces_ || now >= own_departure(now)) && routes.departures().may_depart(now);
  }
  // Returns when the next packet may leave; in the past if no controller paces. `bytes`: the routes
  // that have no room for them do not count, unless it is 0.
  Time departure(ChannelRoutes routes, uint32_t bytes) const {
    return std::max(paces_ ? own_departure({}) : Time{}, routes.departures().departure(bytes));
  }
  // A packet is about to leave over this route. Returns what it asks of the switches: nothing if no
  // controller paces.
  congestion::Signal depart(ChannelRoutes routes, uint8_t route, const congestion::Sent& packet) {
    const congestion::Signal asked = paces_ ? controller().request(packet) : congestion::Signal{};
    return routes.departures().paces() ? routes.departures().depart(route, packet) : asked;
  }
  // A packet that `depart` was called for is smaller than foreseen.
  void correct(ChannelRoutes routes, uint8_t route, const congestion::Written& packet) {
    if (paces_) controller().correct(packet);
    if (routes.departures().paces()) routes.departures().correct(route, packet);
  }

 private:
  Time own_departure(Time now) const { return controller().allowance(now).not_before; }
  // A pointer to the controller would take memory.
  congestion::Controller& controller() {
    return *std::launder(reinterpret_cast<congestion::Controller*>(storage_));
  }
  const congestion::Controller& controller() const {
    return *std::launder(reinterpret_cast<const congestion::Controller*>(storage_));
  }

  alignas(8) std::byte storage_[congestion::Controller::storage];
  const bool paces_;
};

}  // namespace urma::transport
