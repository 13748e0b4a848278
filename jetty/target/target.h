// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jetty/event_sink.h"
#include "jetty/target/answers.h"
#include "jetty/target/assemblies.h"
#include "jetty/target/datagrams.h"
#include "jetty/target/execution_record.h"
#include "jetty/target/executor.h"
#include "jetty/target/fetched_values.h"
#include "jetty/target/refusals.h"
#include "jetty/target/sequences.h"

namespace urma::jetty {

// Counts what became of requests since the device was opened. `Target` writes it; only the thread
// that runs the engine reads it.
struct TargetCounters {
  uint64_t executed = 0;   // slices
  uint64_t refused = 0;    // slices answered with an error: no right, no such Jetty, bad length
  uint64_t not_ready = 0;  // slices whose receiver had no receive posted
  uint64_t repeated = 0;   // slices that were executed before
  uint64_t withdrawn = 0;  // fillers
  uint64_t malformed = 0;  // malformed requests
  uint64_t ignored = 0;    // slices of peers that are being ignored
  uint64_t parked = 0;     // slices that were parked until their turn
  uint64_t too_early = 0;  // slices refused before their turn, to be sent again
  uint64_t datagrams = 0;  // delivered
  uint64_t datagrams_dropped = 0;  // no receive slot, no such Jetty, or a wrong token
};

// The way of a request's packets, which arrive in any order: each packet is placed as it arrives,
// each slice is executed once, and answered when all of it has arrived. The state is in the parts
// that it asks in turn (README.md), none of which knows the Target. It knows only slices, not
// works. Transactions owns it; only the thread that runs the engine calls it.
class Target {
 public:
  struct Limits {
    uint32_t answers;     // answers owed at a time
    uint32_t assemblies;  // slices of which some packets have arrived
    // records of initiator queues that used sends or immediates, beyond the shares
    uint32_t records;
    uint32_t share;      // records that each peer may have in any case
    uint32_t reads;      // reads being answered, for each peer
    uint32_t sequences;  // initiator queues whose order is kept
    uint32_t parked;     // packets of slices that wait for their turn
  };
  Target(const Limits& limits, PeerStates& peers, memseg::SegmentTable& segments, Jetties& jetties,
         Groups& groups, transport::Channels& channels, Staging& staging, EventSink& events);

  // Returns whether there is room for this packet.
  bool admits(const transport::Received& packet);
  // The fast path for the most frequent packet: a message, or a write with an immediate, that
  // consists of one packet, is the next slice of a queue that has a record, and is for a Jetty that
  // can take it. As PacketSink::accept_expected.
  bool handle_expected(PeerId from, std::span<const std::byte> packet, Time now);
  // The fast path for the packets of a long write: one that follows the packet which arrived last,
  // and does not end the slice. As PacketSink::accept_next.
  bool handle_next(const transport::Received& packet);
  void handle_request(const transport::Received& packet, const ParsedRequest& request, Time now);
  // Handles a message that is not answered.
  void handle_datagram(const transport::Received& packet, Time now);
  void handle_malformed() { ++counters_.malformed; }
  [[gnu::cold]] void handle_filler(const transport::Received& packet, Time now);

  Answers& answers() { return answers_; }

  [[gnu::cold]] void down(PeerState& peer, bool over);
  // Call it before the Jetty is destroyed: slices that need it are refused.
  void detach(const Jetty& jetty) { assemblies_.detach(jetty); }
  void flush_receives(Jetty& jetty) { executor_.flush_receives(jetty); }
  // Completes, as flushed, the receives whose buffers lie in this memory. After this no message is
  // placed there.
  void flush_memory(const std::byte* base, uint64_t bytes);

  const TargetCounters& counters() const { return counters_; }

 private:
  using Verdict = Assembly::Verdict;

  // Parked slices need room for their answers when their turn comes.
  bool has_room(const PeerState& peer) const {
    return peer.answers + sequences_.parked() < answers_.room();
  }

  // The way of a packet.
  template <TaOpcode opcode>
  bool deliver(PeerId from, uint64_t base, std::span<const std::byte> packet);
  void handle_further(Assembly& assembly, const transport::Received& packet,
                      const ParsedRequest& request, Time now);
  [[gnu::cold]] void refuse_opcode(const transport::Received& packet, const Btah& base, Time now);
  void handle_read(const transport::Received& packet, const ParsedRequest& request, Time now);
  void begin(Assembly& assembly, const transport::Received& packet, const ParsedRequest& request);
  void start(Assembly& assembly, const transport::Received& packet, const ParsedRequest& request);
  void take(Assembly& assembly, const transport::Received& packet, const ParsedRequest& request);
  void finish(Assembly& assembly, const TaRequest& request, Time now);

  // The answer of a slice.
  void answer(const Assembly& assembly, Response status, uint8_t info, Time now);
  void answer_executed(const Assembly& assembly, bool notified, Time now);
  void note_executed(PeerId peer, uint32_t rc_id, TaOpcode opcode);
  void refuse(const Assembly& assembly, CompleterError error, Time now);

  // Other slices of the queue or the peer.
  void pass_over(const ExecutionRecord& record, Tassn number, Time now);
  void advance(uint32_t context, Time now);
  [[gnu::cold]] void unpark(Assembly& assembly, Time now);
  void note_refusal(Assembly& assembly, const TaRequest& request, Time now);
  [[gnu::cold]] void complain(PeerId peer, const TaRequest& request, const OpcodeInfo& info,
                              Time now);
  void ignore(PeerState& peer, Time until);
  [[gnu::cold]] void forget(Assembly& assembly);

  const uint32_t reads_;
  PeerStates& peers_;
  Addressees addressees_;
  Executor executor_;
  Answers answers_;
  ExecutionRecords records_;
  FetchedValues fetched_;
  Assemblies assemblies_;
  Sequences sequences_;
  Refusals refusals_;  // of requests
  Datagrams datagrams_;
  TargetCounters counters_;
};

}  // namespace urma::jetty
