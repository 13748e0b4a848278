// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace urma {

// The accesses that peers may make to a segment (UB 9), as a set of bits. With local_only, only
// works of the segment's owner may use it.
enum class Rights : uint8_t {
  local_only = 0,  // none
  read = 1,        // read works, and reads of a lane
  write = 2,       // write works, notifications, and writes of a lane
  atomic = 4,      // atomics
};
// Returns the rights of both sets.
constexpr Rights operator|(Rights a, Rights b) {
  return static_cast<Rights>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
// Returns whether `all` contains each of the rights in `wanted`.
constexpr bool has(Rights all, Rights wanted) {
  return (static_cast<uint8_t>(all) & static_cast<uint8_t>(wanted)) == static_cast<uint8_t>(wanted);
}

// Returns whether only bits of these rights are set, since any number can be cast to an
// enumeration.
constexpr bool is_valid(Rights rights) {
  return has(Rights::read | Rights::write | Rights::atomic, rights);
}

// How requests prove that they may access a segment (UB 9).
enum class TokenPolicy : uint8_t {
  plain_text,  // the request contains the TokenValue
  none,        // no proof: every process that knows the TokenID may access the segment
  signature,   // the request is signed with the TokenValue: not supported
  encryption,  // the packet is encrypted as well: not supported
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(TokenPolicy policy) { return policy <= TokenPolicy::encryption; }

// Where the atomics on a segment are executed. All atomics on a segment, those of its owner
// included, must be executed in the same way, or they are not indivisible; so the domain is fixed
// at registration.
enum class AtomicDomain : uint8_t {
  processor,  // instructions of the processor, in the owner or in a peer that maps the segment
  engine,     // the owner's engine: peers send requests also if they map the segment
  device,     // the owner's device: not supported
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(AtomicDomain domain) { return domain <= AtomicDomain::device; }

}  // namespace urma
