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

inline constexpr uint64_t max_write_bytes = uint64_t{1} << 30;  // writes and reads
inline constexpr uint64_t max_send_bytes = 64 * 1024;           // sends: one slice
inline constexpr size_t max_buffers = 16;                       // scatter/gather entries of a work
inline constexpr uint64_t notify_bytes = 8;                     // a notification; its alignment
inline constexpr uint32_t max_inline_bytes = 192;               // JettyOptions::inline_bytes

// Somebody's registered memory, as imported. A value: copy it, keep it in a work, share it between
// threads; it is good on the device that imported it.
struct RemoteSegment {
  PeerId peer;
  uint64_t address = 0;  // the owner's address of its first byte
  uint64_t bytes = 0;
  TokenId token_id{};
  TokenValue token{};
  Rights rights = Rights::local_only;
  AtomicDomain atomics = AtomicDomain::processor;

  // Whether it lies in memory of its medium's, a window's, which all devices there map: writes and
  // reads of it are copies by this processor, and its owner hears only what it is told.
  bool mapped() const { return address >> 63 != 0; }
};

// Somebody's Jetty, as imported: where sends and immediates go.
struct RemoteJetty {
  PeerId peer;
  JettyId id{};
  TokenValue token{};

  explicit operator bool() const { return static_cast<bool>(peer); }
};

// Memory of this process. The library reads or fills it between the post of a work and the poll of
// its completion, and never else; that of a work with inline data within the post. It must be
// mapped for that long, and writable where it is filled: the library does not look, and the process
// gets SIGSEGV otherwise. Bytes that no process can have - at null, around the end of the address
// space, in its upper half, which is the kernel's - are refused: a work with them completes as
// `bad_work`, `receive` returns false.
struct Buffer {
  void* data = nullptr;
  size_t bytes = 0;
};

enum class Operation : uint8_t { write, read, send, receive, atomic };
constexpr bool is_valid(Operation operation) { return operation <= Operation::atomic; }

// What an application posts: a value that can be built once and posted many times. Built with the
// functions below:
//
//   urma::write(bytes, segment, 4096).to(jetty).immediate(42).tag(7)
//
// A work with a value that its enumeration does not have completes as `bad_work`; if that is its
// operation, or this is `receive`, Completion::operation says `write`.
struct Work {
  Operation operation = Operation::write;
  bool with_immediate = false;
  bool with_notify = false;
  Status notify_verdict = Status::ok;  // what is wrong with where the notification goes
  bool signalled = true;
  bool solicits = false;
  bool copied = false;
  Order order = Order::none;
  Fence fence = Fence::none;
  Atomic atomic{};                  // of an atomic: which one
  Update update{};                  // and how, where it is a load or a store
  Buffer buffer;                    // used when `buffers` is empty; of an atomic: its bytes alone
  std::span<const Buffer> buffers;  // up to max_buffers; read by `post`, not kept
  RemoteSegment segment;            // write, read, atomic
  uint64_t offset = 0;              // there: from the segment's first byte
  RemoteJetty target;               // send, and write with immediate
  uint64_t immediate_value = 0;     // or what is notified, or an atomic's operand
  uint64_t expected_value = 0;      // compare_swap
  uint64_t tag_value = 0;
  uint64_t notify_address = 0;  // the owner's; its peer is in `target`
  TokenId notify_token_id{};
  TokenValue notify_token{};

  // The Jetty that is told (write with immediate) or that receives (send).
  Work& to(const RemoteJetty& jetty) { return target = jetty, *this; }
  // 64 bits that arrive with the completion at the target, after all data is in place.
  Work& immediate(uint64_t value) { return with_immediate = true, immediate_value = value, *this; }
  // Write with notify: 8 bytes of a segment of the same peer, aligned to 8, become `value` (in the
  // target's byte order) by one store after all data is in place; who sees it by an atomic load
  // (acquire) sees the data. It takes no receive slot of the target and completes nothing there;
  // nobody is woken. What is refused leaves the 8 bytes as they were. A write alone can have it,
  // and not together with an immediate.
  Work& notify(const RemoteSegment& where, uint64_t at, uint64_t value);
  // The user's own 64 bits, in the completion.
  Work& tag(uint64_t value) { return tag_value = value, *this; }
  // Solicited (UB: FCE): who sleeps at the target for such arrivals only is woken
  // (Wake::solicited). Sends, and writes with immediate.
  Work& solicited() { return solicits = true, *this; }
  // Inline data (UB): `post` copies the bytes, and the buffer is the application's again when it
  // returns. Writes and sends of up to JettyOptions::inline_bytes; others complete as `bad_work`.
  Work& inline_data() { return copied = true, *this; }
  // Executed at its target after all earlier relaxed and strong works of its Jetty have been
  // (UB: SO), whichever peers they went to. What ended as `unknown` is not waited for.
  Work& strong() { return order = Order::strong, *this; }
  // Later strong works wait for it (UB: RO); it waits for nothing.
  Work& relaxed() { return order = Order::relaxed, *this; }
  // Nothing of it is sent before all earlier works of its Jetty, or its reads and atomics, have
  // ended, however they did; later ones wait with it.
  Work& fenced(Fence from = Fence::all) { return fence = from, *this; }
  // No completion of its own unless it fails: the next signalled work of the Jetty implies it.
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

// Copies `from` to `to` at `offset`. 0 to max_write_bytes. 1, 2, 4 or 8 aligned bytes of a mapped
// segment change by one store; of more, or of other segments, each byte may be stored more than
// once until the work has completed: who must know when all is there is told (immediate, notify).
// Where both lie in one window, but are reached through two devices, they must not overlap.
inline Work write(std::span<const std::byte> from, const RemoteSegment& to, uint64_t offset = 0) {
  Work work;
  work.operation = Operation::write;
  work.buffer = {const_cast<std::byte*>(from.data()), from.size()};
  work.segment = to;
  work.offset = offset;
  return work;
}
// Gathers several buffers into one range; `from` is read by `post`.
inline Work write(std::span<const Buffer> from, const RemoteSegment& to, uint64_t offset = 0) {
  Work work;
  work.operation = Operation::write;
  work.buffers = from;
  work.segment = to;
  work.offset = offset;
  return work;
}

// Copies from `from` at `offset` into `to`. 0 to max_write_bytes.
inline Work read(std::span<std::byte> to, const RemoteSegment& from, uint64_t offset = 0) {
  Work work;
  work.operation = Operation::read;
  work.buffer = {to.data(), to.size()};
  work.segment = from;
  work.offset = offset;
  return work;
}
inline Work read(std::span<const Buffer> to, const RemoteSegment& from, uint64_t offset = 0) {
  Work work;
  work.operation = Operation::read;
  work.buffers = to;
  work.segment = from;
  work.offset = offset;
  return work;
}

// Delivers a message into a buffer that the target has posted. 0 to max_send_bytes.
inline Work send(std::span<const std::byte> message, const RemoteJetty& to) {
  Work work;
  work.operation = Operation::send;
  work.buffer = {const_cast<std::byte*>(message.data()), message.size()};
  work.target = to;
  return work;
}
inline Work send(std::span<const Buffer> message, const RemoteJetty& to) {
  Work work;
  work.operation = Operation::send;
  work.buffers = message;
  work.target = to;
  return work;
}

// How one work, or one arrival, ended. Exactly one for each signalled work, each failed work, and
// each message or immediate that arrived.
struct Completion {
  Status status = Status::ok;  // to be printed: name(status); what to do: describe(status).cure
  Operation operation = Operation::write;  // `receive`: something arrived
  bool with_immediate = false;
  bool solicited = false;  // receive: its poster asked for whoever sleeps here to be woken
  uint32_t bytes = 0;      // of the work; of the message that arrived
  uint64_t tag = 0;        // the work's; the receive's (0 for an immediate without message)
  uint64_t immediate = 0;  // of an atomic: what it fetched
  JettyId jetty{};         // which of our Jetties
  JettyId from_jetty{};    // receive: the Jetty that posted it
  PeerId from{};           // receive: and whose it is

  bool ok() const { return status == Status::ok; }
  // Of an atomic that is `ok`: what the word was, as an unsigned integer; 0 of an atomic_store.
  uint64_t fetched() const { return immediate; }
};

}  // namespace urma
