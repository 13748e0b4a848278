#pragma once

#include <array>
#include <optional>

#include "urma/core/ids.h"
#include "urma/core/time.h"

namespace urma::jetty {

// Who tries tokens that never were any. More than 16 wrong ones in a second from one address, and
// the peer that showed the last one is not listened to for 100 ms; each further time for twice as
// long, up to 10 s. What an address has done is remembered when a peer there begins another life;
// other peers at the address are listened to for as long as they show no wrong token themselves.
class Guesses {
 public:
  static constexpr uint32_t most_in_a_second = 16;
  static constexpr Duration shortest = std::chrono::milliseconds(100);
  static constexpr Duration longest = std::chrono::seconds(10);
  // So long without a wrong token, and an address begins afresh.
  static constexpr Duration forgiven = std::chrono::seconds(20);
  // Addresses at a time: the one that has been quiet for longest is forgotten for the next.
  static constexpr size_t addresses = 64;

  // A peer at this address has shown a wrong token: until when it is not listened to, if at all.
  std::optional<Time> wrong(const Eid& address, Time now);
  // For who cannot remember that: whether none at this address is to be listened to.
  bool deaf_to(const Eid& address, Time now) const;

 private:
  struct Suspect {
    Eid address;
    Time since{};    // the second that is counted
    uint32_t count;  // in it; 0 in all: nobody
    Time latest{};
    Time until{};     // it is not listened to
    Duration next{};  // for how long the next time
  };
  Suspect& suspect(const Eid& address, Time now);

  std::array<Suspect, addresses> suspects_{};
};

}  // namespace urma::jetty
