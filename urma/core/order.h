#pragma once

#include <cstdint>

namespace urma {

// How a work may overtake others of its Jetty (UB 5.5); docs/ordering.md states it exactly. The
// numbers are the wire's.
enum class Order : uint8_t {
  none = 0,     // NO: as it comes
  relaxed = 1,  // RO: as it comes, too, but what is strong waits for it
  strong = 2,   // SO: executed after all earlier relaxed and strong ones have been
};
// Whether it is one of the values above: any number can be cast to an enumeration.
constexpr bool is_valid(Order order) { return order <= Order::strong; }

// What a work waits for before anything of it is sent; later works of its Jetty wait with it.
enum class Fence : uint8_t {
  none = 0,
  reads = 1,  // all earlier reads and atomics
  all = 2,    // all earlier works
};
constexpr bool is_valid(Fence fence) { return fence <= Fence::all; }

// Who keeps strong works in order (UB: service mode).
enum class ServiceMode : uint8_t {
  automatic,  // the target while it can, else the initiator
  // ROI: a strong work is sent when all that it must follow has been answered.
  initiator,
  // ROT: it is sent at once, and the target has it wait in a sequence context. A target that has
  // none free leaves it to the initiator, and so does whatever the target cannot see: memory that
  // is mapped, works for other peers, reads; and what it could not keep until its turn: works of
  // more than 256 KiB.
  target,
  // UNO: nobody, and nothing else is promised either. The Jetty posts sends of at most
  // Device::datagram_bytes, which need no channel, are `ok` when they have left, and may be lost,
  // come twice or in any order; who has no receive slot for one loses it. Other works, and those
  // that ask for order, complete as `bad_work`.
  unreliable,
};
constexpr bool is_valid(ServiceMode mode) { return mode <= ServiceMode::unreliable; }

}  // namespace urma
