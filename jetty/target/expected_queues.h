#pragma once

#include <array>

#include "base/bits.h"
#include "jetty/target/execution_record.h"
#include "wire/ta_headers.h"

namespace urma::jetty {

// The queues of peers of which a message was executed last, and how the next message of each
// begins: its BTAH is known but for the opcode, the order and the event. So such a message is
// recognised, and its record found, by one comparison. What else may have changed meanwhile is not
// known here. The Target owns it; only the thread that runs the engine calls it.
class ExpectedQueues {
 public:
  struct Queue {
    PeerId peer;                        // null if this entry is unused
    uint64_t next = 0;                  // the fixed part of the next BTAH
    ExecutionRecord* record = nullptr;  // exists as long as the peer's incarnation
  };

  // Returns the queue whose next message begins with this BTAH, or null.
  [[gnu::always_inline]] Queue* find(PeerId peer, uint64_t base) {
    Queue& queue = entry(peer, base);
    const bool expected = (base & Btah::fixed_bits) == queue.next && queue.peer == peer &&
                          queue.record->is_next(Btah::tassn_of(base));
    return expected ? &queue : nullptr;
  }
  // The newest slice of this queue, which has such a record, was a message of one packet.
  void expect(PeerId peer, uint32_t rc_id, ExecutionRecord& record) {
    const Btah next{.token_present = true,
                    .target_present = true,
                    .tassn = (record.newest() + 1).wire(),
                    .rc_id = rc_id};
    const uint64_t word = next.word();
    entry(peer, word) = {.peer = peer, .next = word & Btah::fixed_bits, .record = &record};
  }
  // The expected message has been executed.
  static void advance(Queue& queue) {
    queue.record->execute_next();
    queue.next = Btah::with_next_tassn(queue.next);
  }

 private:
  static constexpr size_t count = 16;

  // The lowest bits of a BTAH are those of the RC id.
  Queue& entry(PeerId peer, uint64_t base) { return queues_[(peer.index ^ base) % count]; }

  std::array<Queue, count> queues_;
};

}  // namespace urma::jetty
