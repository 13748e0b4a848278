// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/entropy.h"
#include "base/region.h"
#include "base/shuffle.h"
#include "urma/core/ids.h"

namespace urma::engine {

// The part of all ids that an engine of a device gives out, so that each gives out others.
struct JettyIdShare {
  uint32_t engine = 0;
  uint32_t engines = 1;
};

// Chooses the id of each new Jetty: one that is not in use, and that an outsider cannot predict.
// This class does not know the Jetties. `JettyControl` owns it; only the thread that runs the
// engine calls it.
//
// The id that was given back last is used first, so that few ids serve any number of Jetties: peers
// store which slices were executed for each id that was ever used, and have limited room for that.
// The numbering of an id's slices continues from Jetty to Jetty (`jetty::Flow`).
class JettyIds {
 public:
  // `most`: the largest number of Jetties at a time.
  JettyIds(uint32_t most, Entropy& entropy, const JettyIdShare& share = {})
      : share_(share), given_back_(most), order_{entropy.next(), entropy.next()} {}

  // Returns nothing if all ids are in use.
  std::optional<JettyId> take() {
    if (given_back_count_ > 0) return JettyId(given_back_[--given_back_count_]);
    while (drawn_ < id_limit) {
      const uint32_t id = order_(drawn_++);
      const bool ours = id % share_.engines == share_.engine;
      if (ours && id >= number(first_dynamic_jetty)) return JettyId(id);
    }
    return std::nullopt;
  }
  // Takes back an id that is no longer in use.
  void give_back(JettyId id) { given_back_[given_back_count_++] = number(id); }

 private:
  const JettyIdShare share_;
  RegionArray<uint32_t> given_back_;
  uint32_t given_back_count_ = 0;
  uint32_t drawn_ = 0;  // how many ids of `order_` have been drawn
  Shuffle order_;
};

}  // namespace urma::engine
