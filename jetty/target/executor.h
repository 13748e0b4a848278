#pragma once

#include <optional>

#include "jetty/jetty.h"
#include "jetty/target/assembly.h"
#include "memseg/segment_table.h"
#include "urma/core/event.h"

namespace urma::jetty {

// The only code that touches registered memory and receive buffers on a peer's behalf. An opcode
// that it does not know does not compile.
class Executor {
 public:
  Executor(memseg::SegmentTable& segments, Jetties& jetties)
      : segments_(segments), jetties_(jetties) {}

  // All of it at once for a message in one packet, to a Jetty with a buffer of one piece for it.
  // False: not so, or it is refused; nothing has happened.
  bool deliver(const MessageHeaders& headers, std::span<const std::byte> data, PeerId from);
  // The same for a write with an immediate, all of whose data this is, if any.
  bool deliver(const ImmediateHeaders& headers, std::span<const std::byte> data, PeerId from);

  // Takes what the slice needs of its target (a receive slot, a permit), or says why not.
  void begin(Assembly& assembly, const TaRequest& request);
  // Puts one packet's bytes where they belong. A refusal changes the assembly's verdict.
  void place(Assembly& assembly, const ParsedRequest& packet);
  // Every packet is in place, the last one to come being `request`: tells the application, if it is
  // to be told. True: it was told. A notification that is not allowed any more changes the verdict.
  bool finish(Assembly& assembly, const TaRequest& request);
  // Gives back what `begin` took: nothing will be told.
  [[gnu::cold]] void release(Assembly& assembly);

  // Whether a read may have its data, under the same check. Not for zero bytes.
  bool readable(const TaRequest& request) const;

  // Whether all of the slice, which begins there, may be written.
  bool writable(const TaRequest& request, uint64_t start) const;

  // What the owner should know of a request that was refused. `guessed`: its token was never one;
  // who is late with what was taken away, or does not know that a Jetty is gone, guesses nothing.
  struct Complaint {
    Event event;
    bool guessed = false;
  };
  std::optional<Complaint> complaint(const TaRequest& request, const OpcodeInfo& info) const;

  // Completes the receives that wait, as flushed.
  void flush_receives(Jetty& jetty);
  // Of all Jetties, those whose buffers lie in this memory; the others wait on.
  void flush_receives(const std::byte* base, uint64_t bytes);
  // Whether the slice is a message on its way into this memory.
  bool fills(const Assembly& assembly, const std::byte* base, uint64_t bytes);

 private:
  void begin_message(Assembly& assembly, const TaRequest& request);
  void begin_immediate(Assembly& assembly, const TaRequest& request);
  void begin_notify(Assembly& assembly, const TaRequest& request);
  void begin_atomic(Assembly& assembly, const TaRequest& request);
  void run_atomic(Assembly& assembly, const ParsedRequest& packet);
  void place_memory(Assembly& assembly, const ParsedRequest& packet);
  void place_message(Assembly& assembly, const ParsedRequest& packet);
  bool finish_message(Assembly& assembly);
  bool finish_immediate(Assembly& assembly);
  bool finish_notify(Assembly& assembly, const TaRequest& request);

  bool shows_token(const TaRequest& request) const;
  bool put(const memseg::SegmentTable::Access& to, std::span<const std::byte> data) const;
  Jetty* target(const Mtetah& named, TokenValue token);
  Jetty* receiver(Assembly& assembly, Jetty* target);
  void hold(Assembly& assembly, Jetty& jetty, Jetty& receiver);
  void let_go(Assembly& assembly);
  void tell(Assembly& assembly, const Completion& completion);
  std::byte* notified(const Ntfetah& notify) const;
  bool take_slot(Jetty& jetty, uint16_t& lease);
  [[gnu::cold]] void flush_receive(Jetty& jetty, uint16_t lease);
  void flush_receives(Jetty& jetty, const std::byte* base, uint64_t bytes);
  Completion arrival(const Assembly& assembly, Status status) const;

  memseg::SegmentTable& segments_;
  Jetties& jetties_;
};

}  // namespace urma::jetty
