#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "jetty/jfc.h"
#include "urma/core/frame.h"
#include "urma/core/work.h"

namespace urma::jetty {

// Permits 0..count-1 that go round: vacant -> posted (application) -> engine -> JFC -> vacant (when
// its completion is polled). Two rings of `count` places for `count` permits: neither can overflow.
// Writers: posted ring - the posting thread; vacant ring - the polling thread.
class Leases {
 public:
  explicit Leases(uint16_t count);

  uint16_t count() const { return count_; }

  // ---- posting thread
  uint32_t vacant() const { return returned_.load(std::memory_order_acquire) - taken_vacant_; }
  uint16_t take_vacant() { return vacant_ring_[taken_vacant_++ & mask_]; }
  // Puts a filled permit in line; seen by the engine after `publish`.
  void stage(uint16_t lease) { posted_ring_[staged_++ & mask_] = lease; }
  void publish() { posted_.store(staged_, std::memory_order_release); }

  // ---- engine
  uint32_t waiting() const { return posted_.load(std::memory_order_acquire) - taken_posted_; }
  uint16_t take_posted() { return posted_ring_[taken_posted_++ & mask_]; }
  uint16_t next_posted() const { return posted_ring_[taken_posted_ & mask_]; }

  // ---- polling thread
  void give_back(uint16_t lease) {
    const uint32_t at = returned_.load(std::memory_order_relaxed);
    vacant_ring_[at & mask_] = lease;
    returned_.store(at + 1, std::memory_order_release);
  }

 private:
  std::unique_ptr<uint16_t[]> posted_ring_;
  std::unique_ptr<uint16_t[]> vacant_ring_;
  uint32_t mask_ = 0;
  uint16_t count_ = 0;

  alignas(64) uint32_t taken_vacant_ = 0;  // posting thread
  uint32_t staged_ = 0;
  std::atomic<uint32_t> posted_{0};
  alignas(64) std::atomic<uint32_t> returned_{0};  // polling thread
  alignas(64) uint32_t taken_posted_ = 0;          // engine
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
  uint32_t bytes;
  uint64_t tag;
  uint64_t immediate;  // or what is notified
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

// Where a write notifies. Few works have one, and berths lie close together: it lies apart.
struct NotifyTarget {
  uint64_t address;
  TokenId token_id;
  TokenValue token;
};

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

// What one Jetty's application and engine share.
class Queues {
 public:
  // `jfc` outlives it. `inline_bytes`: for each berth, copied from works with inline data.
  Queues(uint16_t berths, uint16_t receives, Jfc& jfc, uint32_t inline_bytes = 0);

  // ---- posting thread

  // Takes works until berths run out and publishes them together. The last vacant berth takes only
  // a signalled work: its completion is what brings the unsignalled ones' berths back.
  size_t post(std::span<const Work> works);
  // Posts buffers for messages; returns how many.
  size_t receive(std::span<const Buffer> pieces, uint64_t tag);
  uint32_t vacant_berths() const { return berths_.vacant(); }
  uint32_t vacant_receives() const { return receives_.vacant(); }

  // ---- polling thread (through Jfc::poll)

  void polled(const Completion& completion, uint16_t lease);

  // ---- whoever lets go of it (Jfc::retire)

  // The Jetty is gone, and not all of its completions have been polled: the queues keep themselves.
  struct Retirement {
    Queues* next = nullptr;
    uint64_t until = 0;  // entries of the JFC written before it may belong to them
    std::shared_ptr<Queues> self;
  };
  Retirement& retirement() { return retirement_; }

  // ---- engine

  Leases& berths() { return berths_; }
  Leases& receives() { return receives_; }
  const Berth& berth(uint16_t lease) const { return berth_[lease]; }
  std::span<const Piece> pieces(uint16_t lease) const;
  const NotifyTarget& notify(uint16_t lease) const { return notify_[lease]; }
  const ReceiveSlot& slot(uint16_t lease) const { return slot_[lease]; }
  std::span<const Piece> slot_pieces(uint16_t lease) const;
  // Berths that return with another one's completion.
  void chain(uint16_t lease, uint16_t next) { chain_[lease] = next; }
  // Of the immediates that were completed, how many have been polled. As many as there are receive
  // slots may be unpolled.
  uint32_t immediates_polled() const { return immediates_polled_.load(std::memory_order_acquire); }

  Jfc& jfc() { return jfc_; }
  // JFC entries that this Jetty may have written and not yet got back.
  uint32_t entries() const { return entries_of(berths_.count(), receives_.count()); }
  static uint32_t entries_of(uint32_t berths, uint32_t receives) { return berths + 2 * receives; }

  static constexpr uint16_t none = UINT16_MAX;

 private:
  void fill(Berth& berth, const Work& work, uint16_t lease);
  uint64_t name_pieces(Berth& berth, std::span<const Buffer> buffers, uint16_t lease);
  void copy_in(Berth& berth, std::span<const Buffer> buffers, uint16_t lease);

  Leases berths_;
  Leases receives_;
  std::unique_ptr<Berth[]> berth_;
  std::unique_ptr<NotifyTarget[]> notify_;
  std::unique_ptr<Piece[]> pieces_;  // max_pieces for each berth, then for each receive slot
  std::unique_ptr<ReceiveSlot[]> slot_;
  std::unique_ptr<uint16_t[]> chain_;
  const uint32_t inline_bytes_;
  std::unique_ptr<std::byte[]> inline_data_;  // inline_bytes_ for each berth
  Jfc& jfc_;
  Retirement retirement_;
  alignas(64) std::atomic<uint32_t> immediates_polled_{0};  // polling thread
};

}  // namespace urma::jetty
