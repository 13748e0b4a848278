// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/accelerator_memory.h"
#include "base/address_space.h"
#include "base/array_layout.h"
#include "jetty/berth.h"
#include "jetty/examine.h"
#include "jetty/leases.h"
#include "ordering/complete_gate.h"
#include "ordering/submit_gate.h"
#include "urma/core/work.h"

namespace urma::jetty {

// A Jetty's send queue (UB: JFS): its berths, and what the engine keeps for each of them. The
// application's thread fills a berth and posts it as a lease; the engine reads it until the work's
// completion has been polled. It does not know peers, slices, or the completion queue.
class Jfs : public Leases {
 public:
  // Each berth holds `inline_bytes` of works with inline data. `waited`: the most completions that
  // one wait can return. Throws std::bad_alloc.
  Jfs(uint16_t berths, uint32_t inline_bytes, size_t waited);

  // ---- posting thread

  // From now on only sends of up to `most_bytes` that ask for no order can be posted. Call it
  // before anything is posted.
  void only_datagrams(uint32_t most_bytes) { datagram_bytes_ = most_bytes; }
  // Returns whether a berth is vacant for this work. The last one takes only a signalled work,
  // because the berths of unsignalled works are given back with its completion.
  bool has_berth(const Work& work) const {
    const uint32_t left = vacant();
    return left > 1 || (left == 1 && work.signalled);
  }
  // The local memory of a work.
  struct Memory {
    uint64_t bytes = 0;
    Piece piece{};  // the only one, or none
    uint8_t piece_count = 0;
    bool staged = false;  // some of it is an accelerator's
  };
  // Returns the memory that the work names. Several pieces are stored beside this vacant berth. The
  // number of bytes is impossible if the work names too many buffers, or bytes that cannot be
  // memory of a process.
  Memory memory_of(const Work& work, uint16_t lease);
  // Returns these pieces, of which `one` is the only one, or none.
  std::span<const Piece> pieces(const Piece& one, uint8_t count, uint16_t lease) const {
    if (count > 1) [[unlikely]]
      return {all_pieces(lease), count};
    return {&one, count};
  }
  // Returns `ok`, or the status with which this work completes: as jetty::examine, and whether this
  // queue takes it.
  Status examine(const Work& work, uint64_t bytes, bool staged) const {
    const bool more = !knows_order(work) || work.copied || datagram_bytes_ > 0;
    if (more) [[unlikely]]
      return examine_more(work, bytes, staged);
    return jetty::examine(work, bytes);
  }
  // Fills berths until they run out, and publishes them together.
  size_t post(std::span<const Work> works);

  // ---- polling thread

  // Gives a berth, and those chained behind it, back to the application.
  void polled(uint16_t lease);
  // Returns the memory that holds the completions of a wait until the next wait.
  std::span<Completion> waited() {
    touch();
    return {begin<Completion>(), waited_};
  }

  // ---- engine

  const Berth& berth(uint16_t lease) const { return begin<Berth>()[lease]; }
  // Returns the memory that the work names.
  [[gnu::always_inline]] std::span<const Piece> pieces(uint16_t lease) const {
    const Berth& named = berth(lease);
    return pieces(named.piece, named.piece_count, lease);
  }
  const NotifyTarget& notify(uint16_t lease) const { return begin<BesideBerth>()[lease].notify; }
  const AtomicValues& values(uint16_t lease) const { return begin<BesideBerth>()[lease].atomic; }
  void fetched(uint16_t lease, uint64_t value) {
    begin<BesideBerth>()[lease].atomic.fetched = value;
    if (berth(lease).piece_count > 0) store_fetched(lease, value);
  }
  void doubt(uint16_t lease) { begin<Berth>()[lease].doubtful = true; }
  // The berth number `next` will be given back together with `lease`.
  void chain(uint16_t lease, uint16_t next) { owners_ring()[lease] = next; }
  WorkState* works() { return begin<WorkState>(); }
  ordering::CompleteGate::Slot* gate_slots() { return begin<ordering::CompleteGate::Slot>(); }
  ordering::SubmitGate& submit_gate() { return *begin<ordering::SubmitGate>(); }
  ordering::SubmitGate::Slot* submit_slots() { return begin<ordering::SubmitGate::Slot>(); }

  // ---- the thread that destroys the Jetty

  // Memory that is not used any more once the last work has ended.
  using Leases::spare;
  using Leases::spare_bytes;
  using Leases::touch;

 private:
  void store_fetched(uint16_t lease, uint64_t value);

  // Few works notify or are atomics, and none is both.
  union BesideBerth {
    NotifyTarget notify;
    AtomicValues atomic;
  };
  struct Counts {
    size_t one = 1;
    size_t berths;
    size_t waited;
    size_t inline_bytes;  // of all berths
  };
  // Ordered by how often works need them.
  using Layout =
      ArrayLayout<Counts, ArrayOf<Berth, &Counts::berths>, ArrayOf<WorkState, &Counts::berths>,
                  ArrayOf<ordering::CompleteGate::Slot, &Counts::berths>,
                  ArrayOf<BesideBerth, &Counts::berths>, ArrayOf<Completion, &Counts::waited>,
                  ArrayOf<Piece, &Counts::berths, max_pieces>,
                  ArrayOf<ordering::SubmitGate, &Counts::one>,
                  ArrayOf<ordering::SubmitGate::Slot, &Counts::berths>,
                  ArrayOf<std::byte, &Counts::inline_bytes>>;

  static Counts counts(uint16_t berths, uint32_t inline_bytes, size_t waited) {
    return {.berths = berths, .waited = waited, .inline_bytes = size_t{berths} * inline_bytes};
  }
  template <class Item>
  Item* begin() const {
    return Layout::begin<Item>(behind(), counts(count(), inline_bytes_, waited_));
  }

  static constexpr uint64_t too_many = UINT64_MAX / 2;

  static bool may_name(const Buffer& buffer) {
    return buffer.bytes <= max_write_bytes && could_be_memory(buffer.data, buffer.bytes);
  }
  static bool knows_order(const Work& work) { return is_valid(work.order) && is_valid(work.fence); }
  static Piece piece_of(const Buffer& buffer) {
    return {static_cast<const std::byte*>(buffer.data), static_cast<uint32_t>(buffer.bytes)};
  }

  void fill(Berth& berth, const Work& work, uint16_t lease);
  [[gnu::cold]] void fill_more(Berth& berth, const Work& work, uint16_t lease);
  [[gnu::cold]] Status examine_more(const Work& work, uint64_t bytes, bool staged) const;
  Memory memory_of(std::span<const Buffer> buffers, uint16_t lease);
  void copy_in(Berth& berth, uint16_t lease);
  Piece* all_pieces(uint16_t lease) const { return begin<Piece>() + size_t{lease} * max_pieces; }

  uint32_t datagram_bytes_ = 0;  // 0: any work can be posted
  const uint16_t inline_bytes_;
  const uint16_t waited_;
};

[[gnu::always_inline]] inline Jfs::Memory Jfs::memory_of(const Work& work, uint16_t lease) {
  // An atomic's operands are stored with the work: only the value that it fetches has memory.
  if (work.operation == Operation::atomic) {
    const bool into = work.buffer.data != nullptr;
    return {.bytes = work.buffer.bytes, .piece = piece_of(work.buffer), .piece_count = into};
  }
  if (!work.buffers.empty()) [[unlikely]]
    return memory_of(work.buffers, lease);
  if (work.buffer.bytes == 0) return {};
  if (!may_name(work.buffer)) [[unlikely]]
    return {.bytes = too_many};
  return {.bytes = work.buffer.bytes,
          .piece = piece_of(work.buffer),
          .piece_count = 1,
          .staged = AcceleratorMemory::has(work.buffer.data)};
}

}  // namespace urma::jetty
