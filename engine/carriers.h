// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/entropy.h"
#include "drivers/packet_port.h"
#include "engine/pairs.h"

namespace urma::engine {

// Which access to the memory of peers carries works without packets, if any: that of the port, or,
// once memory of an accelerator is registered, that of accelerators. The Engine owns it; only the
// thread that runs it calls this.
class Carriers {
 public:
  // All of these outlive this object.
  struct Uses {
    drivers::PacketPort& port;
    LineJetty& lines;
    transport::Transport& transport;
    jetty::CarriedSlices& slices;
    const memseg::SegmentTable& segments;
    TokenJudge& judge;
    Entropy& entropy;
  };
  explicit Carriers(const Uses& uses);

  // Memory of an accelerator is about to be registered: from now on it is copied from and to that
  // of peers directly, where that is possible.
  [[gnu::cold]] void use_accelerators();
  // Null if everything goes in packets.
  Pairs* pairs() { return pairs_ ? &*pairs_ : nullptr; }
  const Pairs* pairs() const { return pairs_ ? &*pairs_ : nullptr; }

 private:
  void make_pairs(drivers::RemoteAccess& access);

  const Uses uses_;
  std::unique_ptr<drivers::RemoteAccess> accelerators_;
  std::optional<Pairs> pairs_;
};

}  // namespace urma::engine
