#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/lazy_block.h"
#include "jetty/jfc.h"
#include "ordering/complete_gate.h"
#include "ordering/submit_gate.h"
#include "urma/core/time.h"
#include "urma/core/work.h"
#include "wire/frame.h"

namespace urma::jetty {

class Queues;

// Permits 0..count-1 that go round: vacant -> posted (application) -> engine -> JFC -> vacant (when
// its completion is polled). Two rings of `count` places for `count` permits: neither can overflow.
// All of it, and what its owner keeps for each permit, is address space until the first one is
// taken: zeros are what it begins with.
// Writers: posted ring - the posting thread; vacant ring - the polling thread.
class Leases : private LazyBlock {
 public:
  // `behind`: bytes of the owner's, zeroed. Throws std::bad_alloc.
  explicit Leases(uint16_t count, size_t behind = 0);

  uint16_t count() const { return count_; }
  // False: no permit was ever posted. Who is told of a post is told of this, too.
  bool used() const { return touched(); }

  // ---- posting thread
  uint32_t vacant() const {
    const Lines& at = lines();
    return at.returned.load(std::memory_order_acquire) + count_ - at.taken_vacant;
  }
  uint16_t take_vacant() {
    const uint32_t at = lines().taken_vacant++ & mask_;
    return static_cast<uint16_t>(vacant_ring()[at] ^ at);
  }
  // Puts a filled permit in line; seen by the engine after `publish`.
  void stage(uint16_t lease) { posted_ring()[lines().staged++ & mask_] = lease; }
  void publish() {
    touch();
    lines().posted.store(lines().staged, std::memory_order_release);
  }

  // ---- engine
  uint32_t waiting() const {
    return lines().posted.load(std::memory_order_acquire) - lines().taken_posted;
  }
  uint16_t take_posted() { return posted_ring()[lines().taken_posted++ & mask_]; }
  uint16_t next_posted(uint32_t ahead = 0) const {
    return posted_ring()[(lines().taken_posted + ahead) & mask_];
  }

  // ---- polling thread
  void give_back(uint16_t lease) {
    Lines& own = lines();
    const uint32_t returned = own.returned.load(std::memory_order_relaxed);
    const uint32_t at = (count_ + returned) & mask_;
    vacant_ring()[at] = static_cast<uint16_t>(lease ^ at);
    own.returned.store(returned + 1, std::memory_order_release);
  }

 private:
  friend class Queues;

  struct Lines {
    alignas(64) uint32_t taken_vacant;  // posting thread
    uint32_t staged;
    std::atomic<uint32_t> posted;
    alignas(64) std::atomic<uint32_t> returned;  // polling thread
    std::atomic<uint32_t> immediates_polled;
    alignas(64) uint32_t taken_posted;  // engine
    alignas(8) std::byte rest[48];      // the owner's, when the engine has done with it
  };
  static constexpr size_t rings = 4;  // of 16 bits a permit; the last two are the owner's

  Lines& lines() const { return *reinterpret_cast<Lines*>(data()); }
  uint16_t* ring(size_t which) const {
    return reinterpret_cast<uint16_t*>(data() + sizeof(Lines)) + which * (mask_ + size_t{1});
  }
  // Holds permits xor their places, so that zeros are all permits in order.
  uint16_t* vacant_ring() const { return ring(0); }
  uint16_t* posted_ring() const { return ring(1); }
  uint16_t* owners_ring() const { return ring(2); }
  std::byte* behind() const { return reinterpret_cast<std::byte*>(ring(rings)); }

  const uint16_t mask_;
  const uint16_t count_;
};

// A work in its berth: written by the posting thread, then read by the engine until its completion
// is polled.
struct Berth {
  Operation operation;
  bool with_immediate;
  bool with_notify;  // its target is in Queues::notify
  bool signalled;
  bool solicited;
  uint8_t piece_count;
  Status verdict;  // not ok: found wrong when posted, to be completed with this
  Order order;
  Fence fence;
  Atomic atomic;
  Update update;
  bool doubtful;  // engine: executed on memory that was revoked meanwhile
  uint32_t bytes;
  uint64_t tag;
  uint64_t immediate;  // or what is notified, or an atomic's operand
  PeerId peer;
  uint64_t address;
  TokenId token_id;
  TokenValue token;
  JettyId target;
  TokenValue target_token;
  Piece piece;  // the only one, or none; several lie in Queues::pieces
};

// Whether a write also tells its target, when all of it is there.
inline bool tells(const Berth& berth) { return berth.with_immediate || berth.with_notify; }
// Whether it may have to wait for works before it.
inline bool asks_order(const Berth& berth) {
  return berth.order != Order::none || berth.fence != Fence::none;
}
// Whether it may be copied where it goes.
inline bool is_mapped(const Berth& berth) {
  return berth.operation != Operation::send && berth.address >> 63 != 0;
}
// Whether works behind it may have to wait for what it brings back.
inline bool fetches(const Berth& berth) {
  return berth.operation == Operation::read || berth.operation == Operation::atomic;
}
// Whether its target must keep what it brings back, so that it can be told again.
inline bool keeps_result(const Berth& berth) {
  return berth.operation == Operation::atomic && berth.atomic != Atomic::store;
}

// Where a write notifies. Few works have one, and berths lie close together: it lies apart.
struct NotifyTarget {
  uint64_t address;
  TokenId token_id;
  TokenValue token;
};

// What an atomic expects, and has brought back; where a write's NotifyTarget lies.
struct AtomicValues {
  uint64_t expected;
  uint64_t fetched;  // engine
};
static_assert(sizeof(AtomicValues) == sizeof(NotifyTarget));

// A buffer that waits for a message.
struct ReceiveSlot {
  uint64_t tag;
  uint32_t bytes;
  uint8_t piece_count;
  Piece piece;
};

inline bool overlaps(std::span<const Piece> pieces, const std::byte* base, uint64_t bytes) {
  for (const Piece& piece : pieces) {
    if (piece.data < base + bytes && base < piece.data + piece.bytes) return true;
  }
  return false;
}

// What the engine knows of a work, beside its berth.
struct WorkState {
  Time progress{};  // when something of it last happened
  Time cancelled_at{};
  uint32_t flow = UINT32_MAX;
  uint32_t number = 0;  // in its flow
  uint32_t cut_bytes = 0;
  uint16_t open_slices = 0;
  uint16_t older = UINT16_MAX;  // in post order
  uint16_t newer = UINT16_MAX;
  uint16_t next_to_cut = UINT16_MAX;  // in its flow
  Status status = Status::ok;         // of what has ended so far
  Order order = Order::none;          // as its target is told
  bool held = false;                  // has not begun, for the works before it
  bool cut = false;                   // nothing of it remains to be cut
  bool in_line = false;               // waits in its flow to be cut
  bool executed = false;              // some slice of it was, or may have been
  bool cancelled = false;
  bool timed_out = false;  // cancelled because its time was up
  bool overdue = false;
};

// What one Jetty's application and engine share, and what the engine keeps for each of its berths.
class Queues {
 public:
  // `inline_bytes`: for each berth, copied from works with inline data. All throw std::bad_alloc.
  Queues(uint16_t berths, uint16_t receives, std::shared_ptr<Jfc> jfc, uint32_t inline_bytes = 0);
  // `jfc` outlives it.
  Queues(uint16_t berths, uint16_t receives, Jfc& jfc, uint32_t inline_bytes = 0);
  // With a completion queue of its own, of which all is reserved, in the same piece of memory.
  static std::shared_ptr<Queues> with_own_jfc(uint16_t berths, uint16_t receives,
                                              uint32_t inline_bytes);

  static size_t bytes_with_own_jfc();

  // Only sends of so many bytes that ask for no order are posted here. Before anything is.
  void only_datagrams(uint32_t most_bytes) { datagram_bytes_ = most_bytes; }

  // ---- posting thread

  // Takes works until berths run out and publishes them together. The last vacant berth takes only
  // a signalled work: its completion is what brings the unsignalled ones' berths back.
  size_t post(std::span<const Work> works);
  // Posts buffers for messages; returns how many. Each could be memory of this process.
  size_t receive(std::span<const Buffer> pieces, uint64_t tag);
  uint32_t vacant_berths() const { return berths_.vacant(); }
  uint32_t vacant_receives() const { return receives_.vacant(); }

  // ---- polling thread (through Jfc::poll)

  void polled(const Completion& completion, uint16_t lease);
  // Where completions that were waited for lie until the next wait.
  std::span<Completion> waited() {
    berths_.touch();
    return {reinterpret_cast<Completion*>(berths_.behind() + waited_at()), most_waited()};
  }

  // ---- whoever lets go of it (Jfc::retire)

  // The Jetty is gone, and not all of its completions have been polled: the queues keep themselves.
  struct Retirement {
    Queues* next = nullptr;
    uint64_t until = 0;  // entries of the JFC written before it may belong to them
    std::shared_ptr<Queues> self;
  };
  // Begins it, in the memory of what will not be taken any more; `end_retirement` ends it.
  Retirement& retire();
  Retirement& retirement();
  std::shared_ptr<Queues> end_retirement();

  // ---- engine

  Leases& berths() { return berths_; }
  Leases& receives() { return receives_; }
  // False: nothing was ever posted. Asked before any other memory of a Jetty is looked at.
  bool used() const { return berths_.used() || receives_.used(); }
  const Berth& berth(uint16_t lease) const { return all_berths()[lease]; }
  std::span<const Piece> pieces(uint16_t lease) const;
  const NotifyTarget& notify(uint16_t lease) const { return notify_targets()[lease]; }
  const AtomicValues& values(uint16_t lease) const { return atomic_values()[lease]; }
  void fetched(uint16_t lease, uint64_t value) { atomic_values()[lease].fetched = value; }
  void doubt(uint16_t lease) { all_berths()[lease].doubtful = true; }
  const ReceiveSlot& slot(uint16_t lease) const { return slots()[lease]; }
  std::span<const Piece> slot_pieces(uint16_t lease) const;
  // Berths that return with another one's completion.
  void chain(uint16_t lease, uint16_t next) { chained()[lease] = next; }
  // Of the immediates that were completed, how many have been polled. As many as there are receive
  // slots may be unpolled.
  uint32_t immediates_polled() const {
    return receives_.lines().immediates_polled.load(std::memory_order_acquire);
  }
  WorkState* works() { return reinterpret_cast<WorkState*>(berths_.behind() + works_at()); }
  ordering::CompleteGate::Slot* gate_slots() {
    return reinterpret_cast<ordering::CompleteGate::Slot*>(berths_.behind() + gate_slots_at());
  }
  ordering::SubmitGate& submit_gate() {
    return *reinterpret_cast<ordering::SubmitGate*>(berths_.behind() + submit_gate_at());
  }
  ordering::SubmitGate::Slot* submit_slots() {
    return reinterpret_cast<ordering::SubmitGate::Slot*>(berths_.behind() + submit_slots_at());
  }
  // Room for as many as there are receive slots.
  uint16_t* recycled() { return receives_.owners_ring(); }

  Jfc& jfc() { return *jfc_; }
  static std::shared_ptr<Jfc> jfc_of(const std::shared_ptr<Queues>& queues) {
    if (!queues->has_own_jfc()) return queues->jfc_;
    return {queues, queues->jfc_.get()};
  }
  bool has_own_jfc() const { return jfc_.use_count() == 0; }
  // The Jetty is gone. The queue that it shared lives as long as the result.
  std::shared_ptr<Jfc> let_go_of_jfc() { return std::move(jfc_); }
  // JFC entries that this Jetty may have written and not yet got back.
  uint32_t entries() const { return entries_of(berths_.count(), receives_.count()); }
  static uint32_t entries_of(uint32_t berths, uint32_t receives) { return berths + 2 * receives; }

  static constexpr uint16_t none = UINT16_MAX;

 private:
  struct WithJfc;

  void fill(Berth& berth, const Work& work, uint16_t lease);
  uint64_t name_pieces(Berth& berth, std::span<const Buffer> buffers, uint16_t lease);
  void copy_in(Berth& berth, std::span<const Buffer> buffers, uint16_t lease);

  // Behind the leases of berths, in this order: what most works need first.
  static size_t behind_berths(size_t berths, size_t inline_bytes, size_t waited);
  static size_t behind_receives(size_t receives);
  // Completions of others may come to a shared queue. There is one for the end of the device.
  static uint32_t most_waited(bool own_jfc, uint32_t entries) {
    constexpr uint32_t most = 64;
    return own_jfc ? std::clamp(entries, 1u, most) : most;
  }
  uint32_t most_waited() const { return most_waited(has_own_jfc(), entries()); }
  size_t works_at() const { return berths_.count() * sizeof(Berth); }
  size_t gate_slots_at() const { return works_at() + berths_.count() * sizeof(WorkState); }
  size_t notify_at() const {
    return gate_slots_at() + berths_.count() * sizeof(ordering::CompleteGate::Slot);
  }
  size_t waited_at() const { return notify_at() + berths_.count() * sizeof(NotifyTarget); }
  size_t pieces_at() const { return waited_at() + most_waited() * sizeof(Completion); }
  size_t submit_gate_at() const {
    return pieces_at() + berths_.count() * size_t{max_pieces} * sizeof(Piece);
  }
  size_t submit_slots_at() const { return submit_gate_at() + sizeof(ordering::SubmitGate); }
  size_t inline_at() const {
    return submit_slots_at() + berths_.count() * sizeof(ordering::SubmitGate::Slot);
  }
  Berth* all_berths() const { return reinterpret_cast<Berth*>(berths_.behind()); }
  NotifyTarget* notify_targets() const {
    return reinterpret_cast<NotifyTarget*>(berths_.behind() + notify_at());
  }
  AtomicValues* atomic_values() const {
    return reinterpret_cast<AtomicValues*>(berths_.behind() + notify_at());
  }
  // max_pieces for each berth, for each receive slot.
  Piece* pieces_of(uint16_t lease) const {
    return reinterpret_cast<Piece*>(berths_.behind() + pieces_at()) + size_t{lease} * max_pieces;
  }
  uint16_t* chained() const { return berths_.owners_ring(); }
  ReceiveSlot* slots() const { return reinterpret_cast<ReceiveSlot*>(receives_.behind()); }
  Piece* pieces_of_slot(uint16_t lease) const {
    return reinterpret_cast<Piece*>(slots() + receives_.count()) + size_t{lease} * max_pieces;
  }

  Leases berths_;
  Leases receives_;
  std::shared_ptr<Jfc> jfc_;
  const uint32_t inline_bytes_;
  uint32_t datagram_bytes_ = 0;  // 0: anything is posted
};

}  // namespace urma::jetty
