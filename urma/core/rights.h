#pragma once

#include <cstdint>

namespace urma {

// What a segment lets others do (UB 9). Without any, it serves its owner's works only.
enum class Rights : uint8_t {
  local_only = 0,
  read = 1,
  write = 2,
  atomic = 4,
};
constexpr Rights operator|(Rights a, Rights b) {
  return static_cast<Rights>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has(Rights all, Rights wanted) {
  return (static_cast<uint8_t>(all) & static_cast<uint8_t>(wanted)) == static_cast<uint8_t>(wanted);
}

// Whether it has no other bits: any number can be cast to an enumeration.
constexpr bool is_valid(Rights rights) {
  return has(Rights::read | Rights::write | Rights::atomic, rights);
}

// What an access to a segment must show.
enum class TokenPolicy : uint8_t {
  plain_text,  // a TokenValue
  none,        // nothing but the TokenID: for what anybody may have
  signature,   // a TokenValue that only signs: not yet
  encryption,  // and all of the packet encrypted: not yet
};
constexpr bool is_valid(TokenPolicy policy) { return policy <= TokenPolicy::encryption; }

// Who executes the atomics on a segment: one for all, whichever way they come, and for its owner's
// own as well, or they are none. Fixed when it is registered.
enum class AtomicDomain : uint8_t {
  processor,  // instructions of whoever maps it, up to 8 bytes
  engine,     // the owner's engine
  device,     // the owner's device
};
constexpr bool is_valid(AtomicDomain domain) { return domain <= AtomicDomain::device; }

}  // namespace urma
