#pragma once

#include <new>

#include "base/assert.h"
#include "congestion/controller.h"

namespace urma::transport {

// How much of a channel may be in flight, and when its next packet may leave. It owns the
// congestion controller, which lies inside it, and spares calls of those that do not pace. It knows
// no packets. `Tp` owns it. Only the thread that runs the engine calls it.
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
  // Returns whether packets may have to wait for their departure. Acknowledgements never do.
  bool paces() const { return paces_; }
  // Returns when the next packet may leave; in the past if the controller does not pace.
  Time departure(Time now) const {
    return paces_ ? controller().allowance(now).not_before : Time{};
  }
  bool may_depart(Time now) const { return !paces_ || now >= departure(now); }
  // A packet is about to leave. Returns what it asks of the switches.
  congestion::Signal depart(const congestion::Sent& packet) {
    return paces_ ? controller().request(packet) : congestion::Signal{};
  }

 private:
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
