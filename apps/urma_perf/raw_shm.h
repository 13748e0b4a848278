#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "apps/urma_perf/draw.h"
#include "apps/urma_perf/histogram.h"
#include "apps/urma_perf/raw.h"
#include "urma/urma.hpp"

namespace urma::perf {

// The fastest exchange of messages over memory that two processes share, without liburma: the loops
// that `--limit` compares with. Each word that one side stores and the other polls lies alone on
// its cache line, and lines of different owners are 4 KiB apart. Stores release, loads acquire.
// Pollers spin without PAUSE, as the library does.

// How messages get from one side to the other.
enum class Way : uint8_t {
  number,   // nothing but the message's number, stored in a slot of a ring
  in_slot,  // the message in the slot, then its number
  placed,   // the message in one of 1024 buffers in turn, where it stays; then a slot
  handed,   // copied into one of four buffers; its number on a line of its own
  woken,    // as handed, to a receiver asleep on that line
  stamped,  // as in_slot, as many as fit; the receiver reports every 64 taken
  piped,    // copied piecewise into one of four buffers, as many as fit; their count on a line
};

// How the receiver uses a message.
enum class Use : uint8_t { nothing, read, copy };

// Where the parts of a lane lie, in the same places for both sides.
struct LanePlan {
  Way way = Way::number;
  uint64_t bytes = 8;  // of a message
  Use use = Use::nothing;

  uint64_t slots() const;
  uint64_t slot_bytes() const;  // the number is the last word
  uint64_t buffers() const;
  uint64_t buffer_bytes() const;
  uint64_t lane_bytes() const;
};

// One direction.
class Lane {
 public:
  // Memory of `lane_bytes`, zeroed once.
  Lane(const LanePlan& plan, std::span<std::byte> memory);

  const LanePlan& plan() const { return plan_; }
  std::byte* slot(uint64_t number) const { return ring_ + (number & (slots_ - 1)) * slot_bytes_; }
  std::byte* buffer(uint64_t number) const {
    return area_ + (number & (buffers_ - 1)) * buffer_bytes_;
  }
  // The word that is `number` when message `number` is there.
  std::atomic<uint64_t>& announced(uint64_t number) const {
    return numbered_by_slot_ ? word(slot(number) + slot_bytes_ - sizeof(uint64_t)) : tail();
  }
  std::atomic<uint64_t>& tail() const { return word(tail_); }  // written by the sender
  std::atomic<uint64_t>& head() const { return word(head_); }  // written by the receiver

  // Message `number`, from 1 on, is there when this returns.
  void put(uint64_t number, std::span<const std::byte> message) const;
  bool has(uint64_t number) const {
    return announced(number).load(std::memory_order_acquire) == number;
  }
  // Spins or sleeps for it; false when the time is reached.
  bool await(uint64_t number, int64_t until) const;
  // Uses a message that is there.
  void take(uint64_t number, std::span<std::byte> landing) const;

 private:
  static std::atomic<uint64_t>& word(std::byte* at) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(at);
  }
  bool sleep(uint64_t number, int64_t until) const;

  LanePlan plan_;
  uint64_t slots_;
  uint64_t slot_bytes_;
  uint64_t buffers_;
  uint64_t buffer_bytes_;
  bool numbered_by_slot_;
  std::byte* tail_;
  std::byte* head_;
  std::byte* ring_;
  std::byte* area_;
};

// A message there, one back. What a time cuts in two goes on with the next.
class ShmPing {
 public:
  // `rest`: before each message, and what the other side holds its answer for.
  ShmPing(const Lane& out, const Lane& in, std::span<const std::byte> source,
          std::span<std::byte> landing, int64_t rest)
      : out_(out), in_(in), source_(source), landing_(landing), rest_(rest) {}

  // Does not record the round trip that is under way.
  void begin() { sent_ = 0; }
  void run(int64_t until, Histogram& round_trips);

 private:
  Lane out_;
  Lane in_;
  std::span<const std::byte> source_;
  std::span<std::byte> landing_;
  int64_t rest_;
  uint64_t number_ = 0;
  bool waiting_ = false;
  int64_t sent_ = 0;
};

class ShmPong {
 public:
  ShmPong(const Lane& in, const Lane& out, std::span<std::byte> landing,
          std::span<const std::byte> source, int64_t rest)
      : in_(in), out_(out), landing_(landing), source_(source), rest_(rest) {}

  void run(int64_t until);

 private:
  Lane in_;
  Lane out_;
  std::span<std::byte> landing_;
  std::span<const std::byte> source_;
  int64_t rest_;
  uint64_t number_ = 0;
};

// Messages as fast as there is room for them, from all over the source.
class ShmSender {
 public:
  ShmSender(const Lane& lane, std::span<const std::byte> source) : lane_(lane), source_(source) {}

  void run(int64_t until);

 private:
  bool room(uint64_t for_so_many, int64_t until);
  bool send_stamped(int64_t until);
  bool send_piece(int64_t until);

  Lane lane_;
  std::span<const std::byte> source_;
  uint64_t put_ = 0;
  uint64_t taken_ = 0;  // as far as we know
  uint64_t in_message_ = 0;
  size_t at_ = 0;
};

// Copies between memory of one side's own and what both map, by that side alone: the other one has
// nothing to do. Each from and to the next place, as works do.
class ShmCopier {
 public:
  // `step`: from one place that messages land in to the next; sources lie a line apart.
  ShmCopier(std::span<const std::byte> source, std::span<std::byte> landing, uint64_t bytes,
            uint64_t step)
      : source_(source), landing_(landing), bytes_(bytes), step_(step) {}

  // From here on from random places of the source.
  void spread() { spread_ = true; }
  // From here on by an atomic instruction on a word there, instead of a copy.
  void operate(Atomic what) { operates_ = what; }
  // As fast as they go, counted in `tally`.
  void run(int64_t until);
  // One by one.
  void run(int64_t until, Histogram& times);
  RawTally tally;

 private:
  void copy();
  template <class Word>
  void operate_on(std::byte* at);
  void operate_once();

  std::span<const std::byte> source_;
  std::span<std::byte> landing_;
  uint64_t bytes_;
  uint64_t step_;
  std::optional<Atomic> operates_{};
  size_t from_ = 0;
  size_t to_ = 0;
  bool spread_ = false;
  Draw draw_{1};
};

class ShmReceiver {
 public:
  ShmReceiver(const Lane& lane, std::span<std::byte> landing) : lane_(lane), landing_(landing) {}

  void run(int64_t until);
  RawTally tally;

 private:
  uint64_t take_stamped();
  uint64_t take_piece();

  Lane lane_;
  std::span<std::byte> landing_;
  uint64_t taken_ = 0;
  uint64_t in_message_ = 0;
  size_t at_ = 0;
};

}  // namespace urma::perf
