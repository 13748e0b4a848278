// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "urma/core/ids.h"
#include "urma/core/work.h"

#if URMA_HAS_PROBES
#include <sys/sdt.h>
#endif

// Static tracepoints (USDT) of the provider `urma`, for bpftrace, perf and gdb. docs/operating.md
// says what they mean to users. Without `sys/sdt.h` at build time they are nothing; else each is
// one `nop`, until a tracer replaces it, and a note that says where the arguments are. So pass only
// what the caller has at hand: arguments are computed even if no tracer is attached.
//
// They are always inlined, because tests compile them without probes, and the linker would keep
// either copy. Any thread may pass them.
namespace urma::probes {

#if URMA_HAS_PROBES
#define URMA_PROBE(name, count, ...) DTRACE_PROBE##count(urma, name, __VA_ARGS__)
#else
#define URMA_PROBE(name, count, ...)
#endif

// Returns the same object, and has the compiler forget what was stored there: arguments then are
// where the object is, instead of in registers that the code around needs.
template <class Object>
[[gnu::always_inline]] inline const Object& in_memory(const Object& object) {
  const Object* forgotten = &object;
  asm("" : "+r"(forgotten));
  return *forgotten;
}

// A work is in its berth. Queue and berth name it among all works of the process, until it
// completes.
[[gnu::always_inline]] inline void post([[maybe_unused]] const void* queue,
                                        [[maybe_unused]] uint16_t berth,
                                        [[maybe_unused]] Operation operation,
                                        [[maybe_unused]] uint64_t tag,
                                        [[maybe_unused]] uint32_t bytes,
                                        [[maybe_unused]] PeerId peer) {
  URMA_PROBE(post, 6, queue, berth, static_cast<uint8_t>(operation), tag, bytes, peer.index);
}

// Packets of a channel go to the port.
[[gnu::always_inline]] inline void transmit([[maybe_unused]] PeerId peer,
                                            [[maybe_unused]] uint64_t packets) {
  URMA_PROBE(transmit, 2, peer.index, packets);
}

// A packet has arrived.
[[gnu::always_inline]] inline void receive([[maybe_unused]] uint32_t bytes,
                                           [[maybe_unused]] uint8_t path) {
  URMA_PROBE(receive, 2, bytes, path);
}

// A slice of a peer was executed here.
[[gnu::always_inline]] inline void execute([[maybe_unused]] PeerId peer,
                                           [[maybe_unused]] uint32_t from_jetty,
                                           [[maybe_unused]] uint8_t opcode) {
  URMA_PROBE(execute, 3, peer.index, from_jetty, opcode);
}

// A completion is about to be shown to the application.
[[gnu::always_inline]] inline void complete([[maybe_unused]] const void* queue,
                                            [[maybe_unused]] uint16_t lease,
                                            [[maybe_unused]] const Completion& completion) {
  URMA_PROBE(complete, 7, queue, lease, static_cast<uint8_t>(completion.operation), completion.tag,
             completion.bytes, static_cast<uint8_t>(completion.status), number(completion.jetty));
}

#undef URMA_PROBE

}  // namespace urma::probes
