// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma {

// The earlier works of its Jetty that a work waits for at its target (UB 5.5). docs/reliability.md
// has the exact rules. The values are those on the wire.
enum class Order : uint8_t {
  none = 0,     // UB: NO. Executed as it arrives
  relaxed = 1,  // UB: RO. Executed as it arrives; later strong works wait for it
  strong = 2,   // UB: SO. Executed after all earlier relaxed and strong works
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(Order order) { return order <= Order::strong; }

// The earlier works of its Jetty that must have ended before any part of a work is sent. Later
// works of the Jetty wait with it.
enum class Fence : uint8_t {
  none = 0,   // the work waits for no earlier work
  reads = 1,  // all earlier reads and atomics
  all = 2,    // all earlier works
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(Fence fence) { return fence <= Fence::all; }

// The side that keeps strong works in order (UB: service mode).
enum class ServiceMode : uint8_t {
  // The target keeps the order if it can, otherwise the initiator does.
  automatic,
  // UB: ROI. The initiator sends a strong work only after all works that it must follow have been
  // answered, so each strong work takes a round trip.
  initiator,
  // UB: ROT. The initiator sends a strong work immediately, and the target parks it in a sequence
  // context until its turn. The initiator keeps the order instead if the target has no free
  // context, and for works whose order the target cannot see or cannot keep: works on mapped
  // memory, works for other peers, reads, and works of more than 256 KiB.
  target,
  // UB: UNO. Neither side keeps an order. The Jetty posts only sends, of at most
  // Device::datagram_bytes. They need no channel, complete as `ok` once they are sent, and may be
  // lost, duplicated or reordered; a receiver without a vacant receive slot drops them. Other
  // works, and works with an order or a fence, complete as `bad_work`.
  unreliable,
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(ServiceMode mode) { return mode <= ServiceMode::unreliable; }

}  // namespace urma
