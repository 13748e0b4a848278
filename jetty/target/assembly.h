// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "jetty/jetty.h"
#include "jetty/parking.h"
#include "jetty/target/execution_record.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

// A slice at its target (UB 4.3.13), from the arrival of its first packet to that of its last, and
// what it holds meanwhile. Packets are placed as they arrive, so nothing else about them is stored.
struct Assembly {
  static constexpr uint32_t none = UINT32_MAX;

  // How the slice's packets are treated. Decided when the first one arrives; later it can only
  // become stricter.
  enum class Verdict : uint8_t {
    run,
    refuse,       // remote abort: wrong token, bounds or rights
    no_receives,  // a message or an immediate to a Jetty without receives
    too_long,     // a message longer than its receive buffer
    not_ready,    // no receive slot is posted
    no_room,      // there is no room to record its execution
    executed,     // it was executed before, on another channel: answer again
    ignore,       // it was cancelled, or is too old to tell whether it was executed: no answer
    drop,         // its peer is being ignored (Refusals): no answer
    no_context,   // it names a sequence context that does not exist
    unsupported,  // an atomic that does not exist, or not for this memory
    parked,       // it waits for its turn: its packets are stored (Parking)
  };

  PeerId peer;
  uint32_t channel = 0;
  uint32_t slice = 0;
  uint32_t rc_id = 0;
  uint32_t tassn = 0;  // wire bits
  const OpcodeInfo* info = nullptr;
  bool solicited = false;
  Verdict verdict = Verdict::run;
  ExecutionRecord* record = nullptr;  // where its execution is recorded; null if it need not be
  Tassn number{};                     // its number in that record
  uint32_t context = none;            // the sequence context of its queue, if any
  Order order = Order::none;
  Kept kept{};                      // its packets, if parked
  uint32_t next_parked = none;      // the next parked slice of the same queue
  bool missing = false;             // guarded memory was not accessible
  bool complained = false;          // it was refused, and the event has been raised
  bool permit = false;              // holds one of the receiver's permits for immediates
  uint16_t receive = Queues::none;  // the receive slot that it fills
  Jetty* jetty = nullptr;           // its target, while it holds a slot or permit
  Jetty* receiver = nullptr;        // the Jetty that these belong to: the target, or a shared JFR
  uint32_t packets = 0;             // packets that have arrived
  uint32_t needed = 0;              // packets that it has; 0 until known
  uint32_t bytes = 0;      // of the message, known with its last packet; or of the atomic's word
  uint64_t copies = 0;     // to memory of an accelerator, or guarded: their number; 0: none
  uint64_t immediate = 0;  // or the value that an atomic fetched
  uint32_t message_length = 0;  // write with immediate: of the whole work
  WriteWords expected{};        // headers of the packet that follows the last one, if it is a write
  uint32_t previous = none;     // of the same peer
  uint32_t next = none;

  // Returns whether all packets have arrived.
  bool whole() const { return packets == needed; }
  // A packet has arrived, and shows how the next one would begin.
  void expect_next(const transport::Received& packet, const ParsedRequest& request);
  // Returns whether this is that packet, is full, and leaves another one to arrive.
  bool expects(const transport::Received& packet, uint32_t packet_bytes) const;
  // The last packet of a message shows how long the message is.
  void note_length(const ParsedRequest& last_packet, uint32_t packet_bytes);

  // From now on the assembly holds a receive slot or permit of `to_receive`, for a message to `to`.
  // While a Jetty counts assemblies it is not destroyed without Target::detach.
  void hold(Jetty& to, Jetty& to_receive) {
    jetty = &to;
    receiver = &to_receive;
    ++jetty->assemblies;
    ++receiver->assemblies;
  }
  void let_go() {
    --jetty->assemblies;
    --receiver->assemblies;
  }
  // Returns whether the slice is a message that is being placed in this memory.
  bool fills(const std::byte* base, uint64_t size) const;

  // The slice will not be executed by this assembly: the record remembers `mark` instead.
  void abandon(ExecutionRecord::Mark mark) {
    if (record == nullptr) return;
    record->set(number, mark);
    record = nullptr;
  }
  // The slice will not be executed, and the application will not be notified: gives back the
  // receive slot or permit, and the mark in the record.
  [[gnu::cold]] void give_back();
};

}  // namespace urma::jetty
