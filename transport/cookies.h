// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bits.h"
#include "base/entropy.h"
#include "base/siphash.h"
#include "transport/arrived_setup.h"

namespace urma::transport {

// Makes and checks cookies, which prove that the sender of an OPEN receives at the address that it
// sends from. Nothing is stored for a sender: a cookie is a keyed hash of fields of the OPEN, and
// expires after 4 to 8 s. It does not decide which OPEN needs one. `Admission` owns it; only the
// thread that runs the engine calls it.
class Cookies {
 public:
  explicit Cookies(Entropy& entropy) : hash_(entropy.next(), entropy.next()) {}

  // Returns the cookie that this OPEN is to bring back; never zero.
  uint64_t make(const ArrivedSetup& open) const { return of(open, epoch_of(open.now)); }
  // Returns whether the OPEN carries the cookie that was made for it, and that has not expired.
  bool holds(const ArrivedSetup& open) const {
    const uint64_t epoch = epoch_of(open.now);
    return open.message.cookie == of(open, epoch) || open.message.cookie == of(open, epoch - 1);
  }

 private:
  static constexpr Duration epoch_length = std::chrono::seconds(4);
  static uint64_t epoch_of(Time now) {
    return static_cast<uint64_t>(now.time_since_epoch() / epoch_length);
  }
  uint64_t of(const ArrivedSetup& open, uint64_t epoch) const {
    const uint64_t words[] = {load_be<8>(open.from.address.bytes.data()),
                              load_be<8>(open.from.address.bytes.data() + 8),
                              uint64_t{open.from.port} << 32 | open.message.from_tpn,
                              open.message.from_life,
                              open.message.attempt,
                              epoch};
    return hash_(words) | 1;  // zero means "no cookie"
  }

  SipHash hash_;
};

}  // namespace urma::transport
