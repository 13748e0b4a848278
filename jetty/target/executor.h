// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "jetty/jetty.h"
#include "jetty/staging.h"
#include "jetty/target/addressees.h"
#include "jetty/target/assembly.h"
#include "memseg/segment_table.h"
#include "urma/core/event.h"

namespace urma::jetty {

// The only code that touches registered memory and receive buffers on behalf of a peer. If an
// opcode has no case here, the code does not compile. It knows Jetties and segments, but not
// whether a slice was executed before, nor how it is answered. Only the thread that runs the engine
// calls it.
class Executor {
 public:
  Executor(memseg::SegmentTable& segments, Jetties& jetties, Addressees& addressees,
           Staging& staging)
      : segments_(segments), jetties_(jetties), addressees_(addressees), staging_(staging) {}

  // A message that has one packet, as its application will see it.
  struct Message {
    PeerId from;
    JettyId from_jetty{};
    bool solicited = false;
    bool with_immediate = false;
    bool written = false;  // its data goes to a segment
    uint64_t immediate = 0;
    uint32_t bytes = 0;  // of the data; of the whole work, if it is a write
  };
  // Executes a message to the Jetty `to`, if the receiver has a buffer of one piece for it; else
  // returns false and changes nothing. `receiver`: the Jetty whose receives the message takes.
  // `data` has `message.bytes`.
  bool deliver(const Jetty& to, Jetty& receiver, const Message& message, const std::byte* data);
  // The same for a write with an immediate. `memory` and `token` say where its data, which may be
  // empty, is written to.
  bool deliver(const Jetty& to, Jetty& receiver, const Message& message, const Maetah& memory,
               TokenValue token, std::span<const std::byte> data);

  // Takes the receive slot or permit that the slice needs, or sets the verdict that says why not.
  void begin(Assembly& assembly, const TaRequest& request);
  // Places one packet's bytes. A refusal changes the assembly's verdict.
  void place(Assembly& assembly, const ParsedRequest& packet);
  // Places the data of a packet whose headers are those of a write that runs. Returns false, and
  // places nothing, if `place` has to decide.
  bool place_next(const WriteWords& headers, std::span<const std::byte> data);
  // All packets have been placed; `request` is the last one to arrive. Notifies the application if
  // the opcode requires it, and returns whether it did. If a notification is not allowed any more,
  // or data did not reach the memory of an accelerator, the verdict changes.
  bool finish(Assembly& assembly, const TaRequest& request);

  // Returns whether a read is allowed. Not for zero bytes.
  bool readable(const TaRequest& request) const;

  // Returns whether all of the slice, which begins at `start`, may be written.
  bool writable(const TaRequest& request, uint64_t start) const;

  // The event that a refused request raises. `guessed`: its token never was valid. A peer that
  // still uses a revoked token, or does not know that a Jetty was destroyed, has not guessed.
  struct Complaint {
    Event event;
    bool guessed = false;
  };
  std::optional<Complaint> complaint(const TaRequest& request, const OpcodeInfo& info) const;

  // Completes all posted receives as flushed.
  void flush_receives(Jetty& jetty);
  // Completes, as flushed, those receives of all Jetties whose buffers lie in this memory; other
  // receives stay posted.
  void flush_receives(const std::byte* base, uint64_t bytes);

 private:
  void begin_message(Assembly& assembly, const TaRequest& request);
  bool take_for_immediate(Assembly& assembly, Jetty& receiver);
  void begin_immediate(Assembly& assembly, const TaRequest& request);
  void begin_notify(Assembly& assembly, const TaRequest& request);
  void begin_atomic(Assembly& assembly, const TaRequest& request);
  void run_atomic(Assembly& assembly, const ParsedRequest& packet);
  void place_memory(Assembly& assembly, const ParsedRequest& packet);
  void place_message(Assembly& assembly, const ParsedRequest& packet);
  bool finish_message(Assembly& assembly);
  bool finish_immediate(Assembly& assembly);
  bool finish_notify(Assembly& assembly, const TaRequest& request);

  void complete(const Jetty& to, Jetty& receiver, const Message& message, uint64_t tag,
                uint16_t lease);
  bool shows_token(const TaRequest& request) const;
  uint64_t owner(Assembly& assembly);
  bool put(Assembly& assembly, const memseg::SegmentTable::Access& to,
           std::span<const std::byte> data);
  Jetty* receiver(Assembly& assembly, const Addressees::Found& target);
  void complete_receive(Assembly& assembly, const Completion& completion);
  std::byte* notified(const Ntfetah& notify) const;
  [[gnu::cold]] void flush_receive(Jetty& jetty, uint16_t lease);
  void flush_receives(Jetty& jetty, const std::byte* base, uint64_t bytes);
  Completion arrival(const Assembly& assembly, Status status) const;

  memseg::SegmentTable& segments_;
  Jetties& jetties_;
  Addressees& addressees_;
  Staging& staging_;
};

}  // namespace urma::jetty
