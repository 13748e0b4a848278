#pragma once

#include <cstring>

#include "drivers/cxl/layout.h"
#include "drivers/frame_pool.h"

namespace urma::drivers::cxl {

// The sending end of a ring. What it knows of its own place in it is private; of the other end it
// reads one number, and only when it seems to be full.
class RingWriter {
 public:
  RingWriter() = default;
  explicit RingWriter(Ring& ring) : ring_(&ring) {}

  explicit operator bool() const { return ring_ != nullptr; }

  // Whether one more message of at most so many bytes will fit, behind those that were promised
  // room since the last `written`.
  bool reserve(uint32_t message_bytes) {
    const Place place = place_behind(planned_, lines_of(message_bytes));
    if (!fits(place.end.lines)) return false;
    planned_ = place.end;
    return true;
  }
  bool promised() const { return planned_.lines != next_.lines; }
  // Where a message of so many bytes is written, which `end` shows. Null: there is no room.
  std::byte* begin(uint32_t message_bytes) {
    begun_ = place_behind(next_, lines_of(message_bytes));
    if (!fits(begun_.end.lines)) return nullptr;
    begun_bytes_ = message_bytes;
    return ring_->lines[begun_.line].content;
  }
  void end() {
    // The mark behind it is cleared before this one is shown, so that the reader stops there.
    mark(begun_.end.line).store(nothing_yet, std::memory_order_relaxed);
    if (begun_.line != next_.line) {
      mark(begun_.line).store(begun_bytes_, std::memory_order_relaxed);
      mark(next_.line).store(goes_on_at_the_beginning, std::memory_order_release);
    } else {
      mark(begun_.line).store(begun_bytes_, std::memory_order_release);
    }
    next_ = begun_.end;
    own_ahead();
  }
  bool write(const TxFrame& frame, uint32_t message_bytes) {
    std::byte* const content = begin(message_bytes);
    if (content == nullptr) return false;
    flatten(frame, content);
    end();
    return true;
  }
  void written() { planned_ = next_; }

  // Lines that the other end has taken. It may say anything: more than there was is not believed.
  uint64_t taken() {
    const uint64_t says = ring_->control.receiver.taken.load(std::memory_order_acquire);
    if (says >= taken_ && says <= next_.lines) taken_ = says;
    return taken_;
  }
  bool empty() { return taken() == next_.lines; }

 private:
  struct Position {
    uint64_t lines = 0;  // ever
    uint32_t line = 0;   // the same, in the ring
  };
  struct Place {
    uint32_t line = 0;  // the first one
    Position end;
  };

  std::atomic<uint32_t>& mark(uint32_t line) { return ring_->lines[line].mark; }
  // The lines of the messages to come are the reader's still. Asked for when they are written, each
  // would hold up all stores behind it: a row of small messages takes a third longer.
  void own_ahead() const {
#if defined(__x86_64__)
    constexpr uint32_t lines_ahead = 8;
    const uint32_t line = next_.line + lines_ahead;
    asm volatile("prefetchw %0" ::"m"(ring_->lines[line < ring_lines ? line : line - ring_lines]));
#endif
  }
  // A message does not go over the ring's end.
  static Place place_behind(const Position& position, uint32_t lines) {
    const uint32_t left = ring_lines - position.line;
    if (lines < left) return {position.line, {position.lines + lines, position.line + lines}};
    if (lines == left) return {position.line, {position.lines + lines, 0}};
    return {0, {position.lines + left + lines, lines}};
  }
  // The line behind it must be free as well.
  bool fits(uint64_t end) {
    return end + 1 - taken_ <= ring_lines || end + 1 - taken() <= ring_lines;
  }

  Ring* ring_ = nullptr;
  Position next_;
  Position planned_;  // with what has been promised room
  Place begun_;
  uint32_t begun_bytes_ = 0;
  uint64_t taken_ = 0;  // as last seen
};

// The receiving end. It believes nothing but its own count.
class RingReader {
 public:
  RingReader() = default;
  explicit RingReader(Ring& ring) : ring_(&ring) {}

  explicit operator bool() const { return ring_ != nullptr; }
  bool any() const {
    return mark(line_).load(std::memory_order_relaxed) != nothing_yet && !broken_;
  }

  // The next message: null if there is none. It stays where it is until `release` has passed it.
  const std::byte* read(uint32_t& message_bytes) {
    uint32_t says = mark(line_).load(std::memory_order_acquire);
    if (says == nothing_yet || broken_) return nullptr;
    if (says == goes_on_at_the_beginning) {
      next_ += ring_lines - line_;
      line_ = 0;
      says = mark(line_).load(std::memory_order_acquire);
    }
    const uint32_t lines = lines_of(says);
    // What no writer of ours can have written: nothing behind it can be believed.
    broken_ = says - 1 >= most_message_bytes || lines > ring_lines - line_;
    if (broken_) return nullptr;
    const std::byte* const content = ring_->lines[line_].content;
    next_ += lines;
    line_ = line_ + lines == ring_lines ? 0 : line_ + lines;
    message_bytes = says;
    return content;
  }
  // What can be written over again: everything before this count of lines.
  uint64_t next() const { return next_; }
  void release(uint64_t until) {
    ring_->control.receiver.taken.store(until, std::memory_order_release);
  }
  // A mark made no sense. Nothing is read any more.
  bool broken() const { return broken_; }

 private:
  std::atomic<uint32_t>& mark(uint32_t line) const { return ring_->lines[line].mark; }

  Ring* ring_ = nullptr;
  uint64_t next_ = 0;  // lines, ever
  uint32_t line_ = 0;  // the same, in the ring
  bool broken_ = false;
};

}  // namespace urma::drivers::cxl
