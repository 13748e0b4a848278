// SPDX-License-Identifier: Apache-2.0
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

namespace urma::apps::perf {

// The fastest exchange of messages over memory that two processes share, without liburma: the loops
// that `--limit` compares with. Each word that one side stores and the other polls lies alone on
// its cache line, and lines of different owners are 4 KiB apart. Stores release, loads acquire.
// Pollers spin without PAUSE, as the library does.

// How messages pass from one side to the other.
enum class Way : uint8_t {
  number,   // only the message's number, stored in a slot of a ring
  in_slot,  // the message in a slot, followed by its number
  placed,   // the message in one of 1024 buffers in turn, where it stays; then its number in a slot
  handed,   // the message in one of four buffers, from which it is copied; its number on another
            // line
  woken,    // like `handed`, to a receiver that sleeps on the line of the number
  stamped,  // like `in_slot`, as many as fit; the receiver reports every 64 taken messages
  piped,    // in parts through four buffers, as many as fit; their count is on one line
};

// How the receiver uses a message.
enum class Use : uint8_t { nothing, read, copy };

// The offsets of the parts of a lane, the same ones for both sides.
struct LanePlan {
  Way way = Way::number;
  uint64_t bytes = 8;  // of one message
  Use use = Use::nothing;

  uint64_t slots() const;
  uint64_t slot_bytes() const;  // the number is the last word of a slot
  uint64_t buffers() const;
  uint64_t buffer_bytes() const;
  uint64_t lane_bytes() const;
};

// The messages in one direction.
class Lane {
 public:
  // The memory has `lane_bytes` and was zeroed once.
  Lane(const LanePlan& plan, std::span<std::byte> memory);

  const LanePlan& plan() const { return plan_; }
  std::byte* slot(uint64_t number) const { return ring_ + (number & (slots_ - 1)) * slot_bytes_; }
  std::byte* buffer(uint64_t number) const {
    return area_ + (number & (buffers_ - 1)) * buffer_bytes_;
  }
  // Returns the word that becomes `number` when message `number` is there.
  std::atomic<uint64_t>& announced(uint64_t number) const {
    return numbered_by_slot_ ? word(slot(number) + slot_bytes_ - sizeof(uint64_t)) : tail();
  }
  std::atomic<uint64_t>& tail() const { return word(tail_); }  // written by the sender
  std::atomic<uint64_t>& head() const { return word(head_); }  // written by the receiver

  // Sends message `number`, counted from 1. The message is there when this returns.
  void put(uint64_t number, std::span<const std::byte> message) const;
  bool has(uint64_t number) const {
    return announced(number).load(std::memory_order_acquire) == number;
  }
  // Spins or sleeps until message `number` is there. Returns false when the time is reached.
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

// Sends a message and waits for one back. A round trip that the end of a time interrupts continues
// with the next one.
class ShmPing {
 public:
  // `rest` is the time of sleep before each message, for which the other side delays its answer.
  ShmPing(const Lane& out, const Lane& in, std::span<const std::byte> source,
          std::span<std::byte> landing, int64_t rest)
      : out_(out), in_(in), source_(source), landing_(landing), rest_(rest) {}

  // The round trip in progress will not be recorded.
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

// Answers each message of a ShmPing.
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

// Sends messages as fast as there is room for them, from all parts of the source.
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
  uint64_t taken_ = 0;  // as far as this side knows
  uint64_t in_message_ = 0;
  size_t at_ = 0;
};

// Copies between memory of this side and memory that both sides map. The other side does nothing.
// Each copy uses the next slots, as works do.
class ShmCopier {
 public:
  // `step` is the distance between two landing slots; sources are one cache line apart.
  ShmCopier(std::span<const std::byte> source, std::span<std::byte> landing, uint64_t bytes,
            uint64_t step)
      : source_(source), landing_(landing), bytes_(bytes), step_(step) {}

  // From now on copies come from random parts of the source.
  void spread() { spread_ = true; }
  // From now on executes an atomic instruction on a word instead of a copy.
  void operate(Atomic what) { operates_ = what; }
  // From now on so many copies or instructions lie between two readings of the clock, and the time
  // of one of them is recorded in picoseconds.
  void group(uint64_t count) { group_ = count; }
  // Copies as fast as possible, and counts in `tally`.
  void run(int64_t until);
  // Copies one by one, or in groups, and records the time of each copy.
  void run(int64_t until, Histogram& times);
  RawTally tally;

 private:
  template <size_t fixed>
  void copy();
  void copy_group();
  template <class Word>
  void operate_on(std::byte* at);
  void operate_once();

  std::span<const std::byte> source_;
  std::span<std::byte> landing_;
  uint64_t bytes_;
  uint64_t step_;
  std::optional<Atomic> operates_{};
  uint64_t group_ = 0;  // 0 means that each copy is timed alone
  size_t from_ = 0;
  size_t to_ = 0;
  bool spread_ = false;
  Draw draw_{1};
};

// Receives the messages of a ShmSender, and counts them in `tally`.
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

}  // namespace urma::apps::perf
