#pragma once

#include <cstdint>

#include "jetty/jetty.h"
#include "jetty/parking.h"
#include "jetty/target/execution_record.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

// A slice at its target (UB 4.3.13), from its first packet to arrive until its last. Packets are
// placed as they come, so this is all that is remembered of those that have.
struct Assembly {
  static constexpr uint32_t none = UINT32_MAX;

  // What is done with its packets, decided at the first one and never softened.
  enum class Verdict : uint8_t {
    run,
    refuse,       // remote abort: token, bounds, rights
    no_receives,  // a message or an immediate, to a Jetty that cannot take one any more
    too_long,     // a message that its receive buffer cannot hold
    not_ready,    // no receive slot
    no_room,      // nothing could remember that it was executed
    executed,     // it came before, on another channel: answer again
    ignore,       // it was withdrawn, or nothing can be said of it: no answer
    drop,         // nobody listens to its peer: no answer, as if it had never come
    no_context,   // it names a sequence context that its queue does not have
    unsupported,  // an atomic of a kind that there is not, or not here
    parked,       // its turn has not come: its packets are kept (Parking)
  };

  PeerId peer;
  uint32_t channel = 0;
  uint32_t slice = 0;
  uint32_t rc_id = 0;
  uint32_t tassn = 0;  // wire bits
  const OpcodeInfo* info = nullptr;
  bool solicited = false;
  Verdict verdict = Verdict::run;
  ExecutionRecord* record = nullptr;  // where it is noted that it was executed; null: need not be
  Tassn number{};                     // there
  uint32_t context = none;            // where its queue's order is kept, if it is
  Order order = Order::none;
  Kept kept{};                      // parked: its packets
  uint32_t next_parked = none;      // of the same queue, later ones
  bool missing = false;             // memory that is guarded was not there
  bool complained = false;          // it was refused, and who should know does
  bool permit = false;              // holds one of the receiver's permits for immediates
  uint16_t receive = Queues::none;  // the receive slot that it fills
  Jetty* jetty = nullptr;           // its target, when it holds either
  Jetty* receiver = nullptr;        // and whose they are: the target's own, or a shared JFR's
  uint32_t packets = 0;             // that have come
  uint32_t needed = 0;              // 0: not known yet
  uint32_t bytes = 0;               // of the message: known with its last packet; of the word
  uint64_t immediate = 0;           // or what an atomic fetched
  uint32_t message_length = 0;      // write with immediate: of the whole work
  uint32_t previous = none;         // of the same peer
  uint32_t next = none;
};

}  // namespace urma::jetty
