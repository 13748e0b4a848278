// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "urma/core/ids.h"
#include "urma/core/time.h"

namespace urma::jetty {

// Limits peers that guess tokens. When one address has shown more than 16 tokens in a second that
// never were valid, the peer that showed the last one is ignored for 100 ms, then each further time
// for twice as long, up to 10 s. An address stays remembered when a peer there begins another
// incarnation. Other peers at the address are not ignored as long as they show no wrong token
// themselves. Only the thread that runs the engine calls it.
class Guesses {
 public:
  static constexpr uint32_t most_in_a_second = 16;
  static constexpr Duration shortest = std::chrono::milliseconds(100);
  static constexpr Duration longest = std::chrono::seconds(10);
  // After this time without a wrong token an address is forgotten.
  static constexpr Duration forgiven = std::chrono::seconds(20);
  // How many addresses are remembered. A new one replaces the one that has shown no wrong token for
  // longest.
  static constexpr size_t addresses = 64;

  // A peer at this address has shown a wrong token. Returns until when the peer is to be ignored,
  // if at all.
  std::optional<Time> wrong(const Eid& address, Time now);
  // Returns whether peers at this address are to be ignored, for callers that do not store the
  // result of `wrong`.
  bool ignores(const Eid& address, Time now) const;

 private:
  struct Suspect {
    Eid address;
    Time since{};    // the beginning of the second that is counted
    uint32_t count;  // wrong tokens in it; 0 if this entry is unused
    Time latest{};
    Time until{};     // until when it is ignored
    Duration next{};  // for how long it will be ignored the next time
  };
  Suspect& suspect(const Eid& address, Time now);

  std::array<Suspect, addresses> suspects_{};
};

}  // namespace urma::jetty
