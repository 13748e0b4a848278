// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "urma/core/atomic.h"
#include "urma/core/ids.h"
#include "urma/core/order.h"
#include "urma/core/rights.h"
#include "urma/core/status.h"

namespace urma {

inline constexpr uint64_t max_write_bytes = uint64_t{1} << 30;  // the longest write or read
inline constexpr uint64_t max_send_bytes = 64 * 1024;           // the longest send: one slice
inline constexpr size_t max_buffers = 16;          // the most scatter/gather entries of a work
inline constexpr uint64_t notify_bytes = 8;        // size and alignment of a notification
inline constexpr uint32_t max_inline_bytes = 192;  // the largest JettyOptions::inline_bytes

// A segment of a peer, from Device::import or Segment::local. It is a value that can be copied,
// kept in a work, and shared between threads, and is valid only on the device that imported it.
struct RemoteSegment {
  PeerId peer;                                     // the owner
  uint64_t address = 0;                            // of its first byte, in the owner
  uint64_t bytes = 0;                              // its length
  TokenId token_id{};                              // says which segment is meant
  TokenValue token{};                              // proves that the request may access it
  Rights rights = Rights::local_only;              // the accesses that this device may make
  AtomicDomain atomics = AtomicDomain::processor;  // where atomics on it are executed

  // Returns whether the segment lies in memory of the medium (a window) that all its devices map.
  // Writes and reads are then copies by the local processor, and the owner notices only works that
  // notify it.
  bool mapped() const { return address >> 63 != 0; }
};

// A Jetty or a Jetty group of a peer, from Device::import or `local` of the object: the target of
// sends and immediates. It is a value, as a RemoteSegment is.
struct RemoteJetty {
  PeerId peer;         // the owner
  JettyId id{};        // its number on the owner's device; of a Jetty group, with `group_bit`
  TokenValue token{};  // proves that the request may reach it

  // Returns whether this object names a Jetty; a default RemoteJetty does not.
  explicit operator bool() const { return static_cast<bool>(peer); }
};

// Memory of this process. The library accesses it only between the post of a work and the poll of
// its completion; for a work with inline data, only during the post. The memory must be mapped for
// that long, and writable if the library stores to it. The library does not check this; if the
// memory is not mapped or not writable, the process receives SIGSEGV. A range that no process can
// have (at null, around the end of the address space, or in its upper half, which belongs to the
// kernel) is refused: a work with it completes as `bad_work`, and `receive` returns false.
struct Buffer {
  void* data = nullptr;  // its first byte
  size_t bytes = 0;      // its length
};

// The kinds of works. `receive` occurs in completions only.
enum class Operation : uint8_t { write, read, send, receive, atomic };
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(Operation operation) { return operation <= Operation::atomic; }

// A work request: what an application posts. It is a value that can be built once and posted many
// times. Build it with the functions below and in urma/core/atomic_works.h, rather than by its
// fields:
//
//   urma::write(bytes, segment, 4096).to(jetty).immediate(42).tag(7)
//
// A work with a value that its enumeration does not have completes as `bad_work`. If that value is
// its operation, or its operation is `receive`, Completion::operation is `write`.
struct [[nodiscard]] Work {
  Operation operation = Operation::write;  // what the work does
  bool with_immediate = false;             // an immediate arrives with it
  bool with_notify = false;                // a notification is stored after it
  Status notify_verdict = Status::ok;      // why the notification's location is invalid, if it is
  bool signalled = true;                   // has a completion of its own
  bool solicits = false;                   // wakes a target that is armed for Wake::solicited
  bool copied = false;                     // inline data: `post` copies the bytes
  Order order = Order::none;               // what it waits for at the target
  Fence fence = Fence::none;               // what it waits for before it is sent
  Atomic atomic{};                         // atomic: which one
  Update update{};                         // Atomic::load and store: how the word changes
  uint8_t group_hint = 0;                  // which member of a Jetty group receives it
  Buffer buffer;                    // the local memory, if `buffers` is empty; atomic: the size of
                                    // the word, and the memory that `into` names
  std::span<const Buffer> buffers;  // the local memory; up to max_buffers; read by `post`
  RemoteSegment segment;            // write, read, atomic: the remote memory
  uint64_t offset = 0;              // and where in it, from the segment's first byte
  RemoteJetty target;               // send, and write with immediate: the Jetty that is notified
  uint64_t immediate_value = 0;     // the immediate, the notification, or an atomic's operand
  uint64_t expected_value = 0;      // compare_swap: the value that is replaced
  uint64_t tag_value = 0;           // returned in Completion::tag
  uint64_t notify_address = 0;      // of the notification, in the owner; its peer is in `target`
  TokenId notify_token_id{};        // of the segment in which the notification is stored
  TokenValue notify_token{};        // of that segment

  // The constructors are for the functions below. They set each member once; otherwise compilers
  // clear a whole work by a string instruction, which takes longer than filling it.
  Work() = default;
  Work(Operation what, const Buffer& memory, const RemoteSegment& there, uint64_t at)
      : operation(what), buffer(memory), segment(there), offset(at) {}
  Work(Operation what, std::span<const Buffer> memory, const RemoteSegment& there, uint64_t at)
      : operation(what), buffers(memory), segment(there), offset(at) {}
  Work(Operation what, const Buffer& memory, const RemoteJetty& there)
      : operation(what), buffer(memory), target(there) {}
  Work(Operation what, std::span<const Buffer> memory, const RemoteJetty& there)
      : operation(what), buffers(memory), target(there) {}

  // The Jetty that receives the message (send), or the immediate (write).
  Work& to(const RemoteJetty& jetty) { return target = jetty, *this; }
  // For writes and sends: adds an immediate of 64 bits, which arrives in Completion::immediate at
  // the target after all data is in place. A write with an immediate takes a receive slot of the
  // target Jetty.
  Work& immediate(uint64_t value) { return with_immediate = true, immediate_value = value, *this; }
  // Write with notify (UB): after all data is in place, 8 bytes of a segment of the same peer,
  // aligned to 8, are set to `value` (in the target's byte order) by one store. A reader that sees
  // the value by an atomic load (acquire) sees the data. A notification takes no receive slot of
  // the target, completes nothing there and wakes no thread. If the work is refused, the 8 bytes do
  // not change. Only for writes, and not together with an immediate. `at` is the offset in the
  // segment, in bytes.
  Work& notify(const RemoteSegment& where, uint64_t at, uint64_t value);
  // Sets 64 bits that the library does not interpret and returns in Completion::tag.
  Work& tag(uint64_t value) { return tag_value = value, *this; }
  // Solicited (UB: FCE): the arrival wakes a thread of the target that sleeps until a solicited
  // arrival (Wake::solicited). For sends, and writes with an immediate.
  Work& solicited() { return solicits = true, *this; }
  // Which member of a Jetty group with GroupPolicy::hint receives the message. Messages of one hint
  // reach one member, as long as the members stay the same. For sends, and writes with an
  // immediate; ignored if the target is not a group.
  Work& hint(uint8_t value) { return group_hint = value, *this; }
  // Inline data (UB): `post` copies the bytes, so the buffer belongs to the application again when
  // it returns. For writes and sends of up to JettyOptions::inline_bytes, from memory that
  // processors can access; other works complete as `bad_work`.
  Work& inline_data() { return copied = true, *this; }
  // Only for atomics: when the atomic is executed, the value that it fetches is stored in `word`,
  // too, before the completion can be polled. The value is one store if `word` is aligned to its
  // size, so an application may wait for it. `word` has the size of the remote word, and belongs
  // to the library until the completion. The atomic completes as `bad_work` if processors cannot
  // access `word` (memory of a GPU), or if it is an atomic_store. An atomic that completes as
  // `unknown` may have stored a value; after any other failure `word` is unchanged.
  Work& into(void* word) { return buffer.data = word, *this; }
  // The work is executed at its target after all earlier relaxed and strong works of its Jetty (UB:
  // SO), those to other peers included. It does not wait for works that ended as `unknown`.
  Work& strong() { return order = Order::strong, *this; }
  // Later strong works of the Jetty wait for this work (UB: RO), which itself does not wait.
  Work& relaxed() { return order = Order::relaxed, *this; }
  // No part of the work is sent before all earlier works of its Jetty (Fence::all), or all earlier
  // reads and atomics (Fence::reads), have ended, successfully or not. Later works wait with it.
  Work& fenced(Fence from = Fence::all) { return fence = from, *this; }
  // The work has no completion of its own unless it fails. The completion of the next signalled
  // work of the Jetty implies that this work has succeeded.
  Work& unsignalled() { return signalled = false, *this; }
};

inline Work& Work::notify(const RemoteSegment& where, uint64_t at, uint64_t value) {
  const bool outside = at > where.bytes || where.bytes - at < notify_bytes;
  const bool refused = outside || !has(where.rights, Rights::write);
  with_notify = true;
  target = {.peer = where.peer};
  immediate_value = value;
  notify_address = where.address + at;
  notify_token_id = where.token_id;
  notify_token = where.token;
  notify_verdict = notify_address % notify_bytes != 0 ? Status::bad_work
                   : refused                          ? Status::remote_access
                                                      : Status::ok;
  return *this;
}

namespace detail {
inline Buffer whole(std::span<const std::byte> memory) {
  return {const_cast<std::byte*>(memory.data()), memory.size()};
}
}  // namespace detail

// A write: copies `from`, of 0 to max_write_bytes bytes, to the segment `to` at `offset`. 1, 2, 4
// or 8 aligned bytes of a mapped segment are written by one store. Otherwise each byte may be
// stored more than once until the work has completed; use an immediate or a notification to tell
// the target that all data is in place. If both ranges lie in one window but belong to two devices,
// they must not overlap.
inline Work write(std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset = 0) {
  return {Operation::write, detail::whole(from), to, offset};
}
// A write that gathers several buffers into one range. The array is read by `post`.
inline Work write(std::span<const Buffer> from, const RemoteSegment& to, uint64_t offset = 0) {
  return {Operation::write, from, to, offset};
}

// A read: copies from the segment `from` at `offset` into `to`, which has 0 to max_write_bytes
// bytes.
inline Work read(std::span<std::byte> to, const RemoteSegment& from, uint64_t offset = 0) {
  return {Operation::read, detail::whole(to), from, offset};
}
// A read that scatters one range into several buffers. The array is read by `post`.
inline Work read(std::span<const Buffer> to, const RemoteSegment& from, uint64_t offset = 0) {
  return {Operation::read, to, from, offset};
}

// A send: delivers a message of 0 to max_send_bytes bytes into a buffer that the target has posted.
inline Work send(std::span<const std::byte> message, const RemoteJetty& to) {
  return {Operation::send, detail::whole(message), to};
}
// A send that gathers its message from several buffers. The array is read by `post`.
inline Work send(std::span<const Buffer> message, const RemoteJetty& to) {
  return {Operation::send, message, to};
}

// How one work or one arrival ended. There is exactly one completion for each signalled work, each
// failed work, and each message or immediate that arrived.
struct Completion {
  Status status = Status::ok;              // name(status) prints it; describe(status).cure helps
  Operation operation = Operation::write;  // the work's; `receive` for an arrival
  bool with_immediate = false;             // `immediate` is valid
  bool solicited : 1 = false;              // arrival: the sender marked it (Work::solicited)
  bool written : 1 = false;                // arrival: a write's, whose data is in a segment
  uint32_t bytes = 0;                      // the length of the work, or of the message
  uint64_t tag = 0;                        // of the work or the receive; 0 for an immediate alone
  uint64_t immediate = 0;  // the immediate; for an atomic, the value that it fetched
  JettyId jetty{};         // the Jetty of this device
  JettyId from_jetty{};    // arrival: the Jetty that posted it
  PeerId from{};           // arrival: the peer that sent it

  // Returns whether the work was executed, or the message arrived whole.
  bool ok() const { return status == Status::ok; }
  // For an atomic that is `ok`: the previous value of the word, as an unsigned integer; 0 for an
  // atomic_store.
  uint64_t fetched() const { return immediate; }
};

}  // namespace urma
