// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/entropy.h"
#include "base/shuffle.h"
#include "urma/core/ids.h"
#include "urma/core/result.h"

namespace urma::umdk {

// The automatic numbers of one context (place.h), in an order that an outsider cannot predict. The
// number that was given back last is used first, because peers remember few. One thread at a time
// calls these functions.
class Numbers {
 public:
  // `index`: that of the process; nothing if no numbers belong to this process. Throws
  // std::bad_alloc.
  explicit Numbers(std::optional<uint32_t> index);

  // Returns a free number: with `tells`, one that tells the process, if any of those is free.
  // Errors: no_resources (all are in use, or the system has no memory).
  Result<JettyId> take(bool tells);
  // From now on this number is free. Does nothing for a number that the program has chosen.
  void give_back(JettyId id);

 private:
  Result<JettyId> draw();

  std::vector<JettyId> telling_;  // those that are free
  std::vector<JettyId> others_;   // those that were given back, with room for all that were drawn
  uint32_t drawn_ = 0;            // how many of `order_` were looked at
  uint32_t taken_ = 0;            // how many others were drawn
  SecureEntropy entropy_;
  const Shuffle order_{entropy_.next(), entropy_.next()};
};

}  // namespace urma::umdk
