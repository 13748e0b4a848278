// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/event_sink.h"
#include "jetty/groups.h"
#include "jetty/initiator/initiator.h"
#include "jetty/target/target.h"

namespace urma::jetty {

// The transaction layer: the transport asks it for packets to send, and passes received packets to
// it. It owns the Jetties, the state of the peers, and the initiator and the target, between which
// it distributes calls. Only the thread that runs the engine calls it.
class Transactions final : public transport::PacketSource, public transport::PacketSink {
 public:
  struct Limits {
    uint32_t jetties = 1024;
    uint32_t peers = 1024;
    uint32_t flows = 16 * 1024;       // pairs of Jetty and peer that have communicated
    uint32_t slices = 16 * 1024;      // slices outstanding at peers
    uint32_t answers = 16 * 1024;     // answers owed to peers
    uint32_t assemblies = 16 * 1024;  // slices of which some packets have arrived
    // records of peers' queues that used sends or immediates, beyond the shares
    uint32_t records = 4 * 1024;
    uint32_t share = 16;        // records that each peer may have in any case
    uint32_t reads = 64;        // reads being answered, for each peer
    uint32_t sequences = 1024;  // queues of peers whose order is kept
    uint32_t parked = 1024;     // packets of such queues that wait for their turn
  };

  Transactions(const Limits& limits, memseg::SegmentTable& segments, transport::Channels& channels,
               EventSink& events, uint64_t seed);

  Jetties& jetties() { return jetties_; }
  Groups& groups() { return groups_; }
  Initiator& initiator() { return initiator_; }
  Target& target() { return target_; }
  EventSink& events() { return events_; }
  // The caller reports to it to which fill new packets belong, and up to which fill the driver has
  // settled all frames. After a pass has received, it is settled, so that no copy lasts longer than
  // the pass.
  Staging& staging() { return staging_; }

  // PacketSource
  void write(std::span<transport::PacketSlot> packets) override;

  // PacketSink
  bool admits(const transport::Received& packet) override;
  void accept(const transport::Received& packet, Time now) override;
  bool accept_expected(PeerId from, std::span<const std::byte> packet, Time now) override {
    return target_.handle_expected(from, packet, now);
  }
  bool accept_next(const transport::Received& packet) override {
    return target_.handle_next(packet);
  }
  void delivered(PeerId peer, std::span<const transport::SliceRef> slices, Time now) override;
  void up(PeerId peer, transport::Channel& channel, Time now) override;
  void silent(PeerId peer) override;
  void path(PeerId peer, uint8_t number, transport::PathIs now) override;
  void down(PeerId peer, transport::Why why, Time now) override;

 private:
  void lose(PeerState& peer, Status why);

  EventSink& events_;
  Staging staging_;
  Jetties jetties_;
  Groups groups_;
  PeerStates peers_;
  Initiator initiator_;
  Target target_;
};

}  // namespace urma::jetty
