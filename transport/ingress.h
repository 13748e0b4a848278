// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "transport/datagrams.h"
#include "transport/setup.h"

namespace urma::transport {

// Takes received packets: verifies each packet, finds its channel, and hands it to the channel, to
// set-up, or as a datagram to the layer above. There is one class for each medium, which contains
// the loop over the burst. Packets that are dropped are counted by reason. Only the thread that
// runs the engine calls it.
class Ingress {
 public:
  struct Uses {
    Links& links;
    Setup& setup;
    Datagrams& datagrams;
  };
  virtual ~Ingress() = default;
  Ingress(const Ingress&) = delete;
  Ingress& operator=(const Ingress&) = delete;

  virtual void receive(std::span<const RxFrame> frames, Time now) = 0;

 protected:
  Ingress(const Common& common, const Uses& uses)
      : sink_(common.sink),
        counters_(common.counters),
        links_(uses.links),
        setup_(uses.setup),
        datagrams_(uses.datagrams) {}

  PacketSink& sink_;
  Counters& counters_;
  Links& links_;
  Setup& setup_;
  Datagrams& datagrams_;
};

}  // namespace urma::transport
