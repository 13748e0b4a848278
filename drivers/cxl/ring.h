// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "base/prefetch.h"
#include "drivers/cxl/caches.h"
#include "drivers/cxl/layout.h"
#include "drivers/frame_pool.h"
#include "drivers/packet_port.h"

namespace urma::drivers::cxl {

// Remembers which lines of a ring begin with a mark that the writer has written, or cleared, in the
// last lap. The other lines contain old payload, or data of an earlier owner.
class MarkedLines {
 public:
  bool has(uint32_t line) const { return words_[line / 64] >> line % 64 & 1; }
  void add(uint32_t line) { words_[line / 64] |= uint64_t{1} << line % 64; }
  void remove(uint32_t line, uint32_t lines) {
    while (lines > 0) {
      const uint32_t here = std::min(lines, 64 - line % 64);
      const uint64_t ones = here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1;
      words_[line / 64] &= ~(ones << line % 64);
      line += here;
      lines -= here;
    }
  }
  void clear() { words_ = {}; }

 private:
  static_assert(ring_lines % 64 == 0);
  std::array<uint64_t, ring_lines / 64> words_;
};

static_assert(lines_of(NextLine::short_bytes) == 1 && lines_of(NextLine::short_bytes + 1) == 2);
static_assert(lines_of(NextLine::long_bytes) == 2 && lines_of(NextLine::long_bytes + 1) == 3);

// The sending end of a ring. Its own position in the ring is private; of the other end it reads one
// number, and only when the ring seems to be full.
class RingWriter {
 public:
  RingWriter() = default;
  // The ring has just been given to its pair. `marked` belongs to this writer and outlives it.
  // `caches` is null where memory is coherent.
  RingWriter(Ring& ring, MarkedLines& marked, Caches* caches = nullptr)
      : ring_(&ring), marked_(&marked), caches_(caches) {
    marked.clear();
    // The lines in this processor's cache may be from an earlier owner of the ring.
    if (caches_ != nullptr) caches_->refresh(&ring, sizeof ring);
    prepare_line();
  }

  explicit operator bool() const { return ring_ != nullptr; }

  // Returns whether one more message of at most `message_bytes` will fit, in addition to those for
  // which room was reserved since the last `written`.
  bool reserve(uint32_t message_bytes) {
    const Room room = room_behind(planned_, lines_of(message_bytes));
    if (!fits(room.end.lines)) return false;
    planned_ = room.end;
    line_ = {};
    return true;
  }
  bool promised() const { return planned_.lines != next_.lines; }
  // Returns where to write a message of `message_bytes`; `end` makes it visible to the receiver.
  // Returns null if there is no room.
  std::byte* begin(uint32_t message_bytes) {
    begun_ = room_behind(next_, lines_of(message_bytes));
    if (!fits(begun_.end.lines)) return nullptr;
    begun_bytes_ = message_bytes;
    return ring_->lines[begun_.line].content;
  }
  void end() {
    if (caches_ != nullptr) caches_->write_back(ring_->lines[begun_.line].content, begun_bytes_);
    // The reader must find a mark behind the message. Writing a mark there takes the cache line
    // from the reader, which polls it.
    if (!marked_->has(begun_.end.line)) {
      mark(begun_.end.line, nothing_yet);
      marked_->add(begun_.end.line);
    }
    if (begun_.line == next_.line) {
      mark(begun_.line, next_.lap | begun_bytes_);
      marked_->remove(begun_.line + 1, lines_of(begun_bytes_) - 1);
    } else {
      mark(0, (next_.lap + one_lap) | begun_bytes_);
      mark(next_.line, next_.lap | goes_on_at_the_beginning);
      marked_->add(0);
      marked_->remove(1, lines_of(begun_bytes_) - 1);
      marked_->remove(next_.line + 1, ring_lines - next_.line - 1);
    }
    next_ = begun_.end;
    own_ahead(1);
  }
  bool write(const TxFrame& frame, uint32_t message_bytes) {
    std::byte* const content = begin(message_bytes);
    if (content == nullptr) return false;
    flatten(frame, content);
    end();
    return true;
  }
  void written() {
    if (!promised() && line_.content != nullptr) return;
    planned_ = next_;
    prepare_line();
  }

  // The place of the next message, if it is short, fits without a look at the other end, and no
  // room was reserved since the last `written`.
  const NextLine& line() const { return line_; }
  // A message of `message_bytes` was sent there.
  void sent_line(uint32_t message_bytes) {
    const uint32_t lines = lines_of(message_bytes);
    marked_->remove(next_.line + 1, lines - 1);
    // Member by member: a load of both words of a position waits until the stores of each have left
    // the processor's store buffer, and these are behind the mark, whose line is the reader's.
    planned_.lines = next_.lines += lines;
    planned_.line = next_.line += lines;
    planned_.lap = next_.lap;
    own_ahead(lines);
    prepare_line();
  }

  // Returns the lines that the other end has taken. The other end may store any value, so a value
  // above what was sent is ignored.
  uint64_t taken() {
    const auto& receiver = ring_->control.receiver;
    if (caches_ != nullptr) caches_->refresh(&receiver, sizeof receiver);
    const uint64_t says = receiver.taken.load(std::memory_order_acquire);
    if (says >= taken_ && says <= next_.lines) taken_ = says;
    return taken_;
  }
  bool empty() { return taken() == next_.lines; }

 private:
  struct Position {
    uint64_t lines = 0;  // since the ring was given to its pair
    uint32_t line = 0;   // the same position, as an index in the ring
    uint32_t lap = 0;    // as in a mark
  };
  struct Room {
    uint32_t line = 0;  // the first one
    Position end;
  };

  void mark(uint32_t line, uint32_t value) {
    std::atomic<uint32_t>& mark = ring_->lines[line].mark;
    mark.store(value, std::memory_order_release);
    if (caches_ != nullptr) caches_->write_back(&mark, sizeof mark);
  }
  // The cache lines of the next messages still belong to the reader's processor. If each were
  // requested only when it is written, it would delay all stores behind it, and a series of small
  // messages would take a third longer.
  void own_ahead(uint32_t lines) const {
    constexpr uint32_t lines_ahead = 8;
    for (uint32_t line = next_.line + lines_ahead; lines > 0; --lines, --line) {
      prefetch_to_write(&ring_->lines[line < ring_lines ? line : line - ring_lines]);
    }
  }
  // The mark behind the message must have been written before.
  void prepare_line() {
    line_ = {};
    if (next_.line + 2 >= ring_lines || caches_ != nullptr) return;
    Line& line = ring_->lines[next_.line];
    const uint64_t room = ring_lines - 1 - (next_.lines - taken_);
    line_ = {.content = line.content,
             .mark = &line.mark,
             .lap = next_.lap,
             .takes_short = room >= 1 && marked_->has(next_.line + 1),
             .takes_long = room >= 2 && marked_->has(next_.line + 2)};
  }
  // A message never wraps around the end of the ring.
  static Room room_behind(const Position& at, uint32_t lines) {
    const uint32_t left = ring_lines - at.line;
    if (lines < left) return {at.line, {at.lines + lines, at.line + lines, at.lap}};
    if (lines == left) return {at.line, {at.lines + lines, 0, at.lap + one_lap}};
    return {0, {at.lines + left + lines, lines, at.lap + one_lap}};
  }
  // The line behind it must be free as well.
  bool fits(uint64_t end) {
    return end + 1 - taken_ <= ring_lines || end + 1 - taken() <= ring_lines;
  }

  Ring* ring_ = nullptr;
  MarkedLines* marked_ = nullptr;
  Caches* caches_ = nullptr;
  Position next_;
  Position planned_;  // with what has been promised room
  Room begun_;
  uint32_t begun_bytes_ = 0;
  NextLine line_;
  uint64_t taken_ = 0;  // as last read
};

// The receiving end of a ring. It trusts only its own count of lines: the sender may write anything
// into the ring at any time, so each length and mark is checked.
class RingReader {
 public:
  RingReader() = default;
  explicit RingReader(Ring& ring, Caches* caches = nullptr) : ring_(&ring), caches_(caches) {
    if (caches_ != nullptr) caches_->refresh(&ring, sizeof ring);
  }

  explicit operator bool() const { return ring_ != nullptr; }
  bool any() const { return says(std::memory_order_relaxed) != nothing_yet && !broken_; }

  // Returns the next message, or null if there is none. The message stays in place until `release`
  // has passed it.
  const std::byte* read(uint32_t& message_bytes) {
    uint32_t bytes = says(std::memory_order_acquire);
    if (bytes == nothing_yet || broken_) return nullptr;
    if (bytes == goes_on_at_the_beginning) {
      next_ += ring_lines - line_;
      line_ = 0;
      lap_ += one_lap;
      bytes = says(std::memory_order_acquire);
    }
    const uint32_t lines = lines_of(bytes);
    // No writer of this library writes such a mark, so nothing behind it is trusted.
    broken_ = bytes - 1 >= most_message_bytes || lines > ring_lines - line_;
    if (broken_) return nullptr;
    const std::byte* const content = ring_->lines[line_].content;
    if (caches_ != nullptr) caches_->refresh(content, bytes);
    // The headers are read first; meanwhile the rest of a short message comes.
    if (lines == 2) prefetch_to_read(&ring_->lines[line_ + 1]);
    next_ += lines;
    line_ += lines;
    if (line_ == ring_lines) {
      line_ = 0;
      lap_ += one_lap;
    }
    message_bytes = bytes;
    return content;
  }
  // Returns the count of lines before which all lines may be overwritten.
  uint64_t next() const { return next_; }
  void release(uint64_t until) {
    auto& receiver = ring_->control.receiver;
    receiver.taken.store(until, std::memory_order_release);
    if (caches_ != nullptr) caches_->write_back(&receiver, sizeof receiver);
  }
  // Returns whether an invalid mark was found. Then nothing is read from the ring any more.
  bool broken() const { return broken_; }

 private:
  // Returns the next mark without its lap, or `nothing_yet` if the mark is from another lap.
  uint32_t says(std::memory_order order) const {
    const std::atomic<uint32_t>& next = ring_->lines[line_].mark;
    if (caches_ != nullptr) caches_->refresh(&next, sizeof next);
    const uint32_t mark = next.load(order) ^ lap_;
    return mark < one_lap ? mark : nothing_yet;
  }

  Ring* ring_ = nullptr;
  Caches* caches_ = nullptr;
  uint64_t next_ = 0;  // lines, since the ring was given to its pair
  uint32_t line_ = 0;  // the same position, as an index in the ring
  uint32_t lap_ = 0;   // as in a mark
  bool broken_ = false;
};

}  // namespace urma::drivers::cxl
