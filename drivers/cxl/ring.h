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
    const uint64_t end = end_of(planned_, lines_of(message_bytes));
    if (!fits(end)) return false;
    planned_ = end;
    return true;
  }
  // False: there is no room.
  bool write(const TxFrame& frame, uint32_t message_bytes) {
    const uint32_t lines = lines_of(message_bytes);
    const uint64_t end = end_of(next_, lines);
    if (!fits(end)) return false;
    const uint64_t begin = end - lines;
    // The mark behind it is cleared before this one is shown, so that the reader stops there.
    mark(end).store(nothing_yet, std::memory_order_relaxed);
    Line& first = ring_->lines[begin % ring_lines];
    std::byte* const content = first.content;
    flatten(frame, content);
    if (begin != next_) {
      first.mark.store(message_bytes, std::memory_order_relaxed);
      mark(next_).store(goes_on_at_the_beginning, std::memory_order_release);
    } else {
      first.mark.store(message_bytes, std::memory_order_release);
    }
    next_ = end;
    return true;
  }
  void written() { planned_ = next_; }

  // Lines that the other end has taken. It may say anything: more than there was is not believed.
  uint64_t taken() {
    const uint64_t says = ring_->control.receiver.taken.load(std::memory_order_acquire);
    if (says >= taken_ && says <= next_) taken_ = says;
    return taken_;
  }
  bool empty() { return taken() == next_; }

 private:
  std::atomic<uint32_t>& mark(uint64_t line) { return ring_->lines[line % ring_lines].mark; }
  // Where a message ends that is written next: it does not go over the ring's end.
  static uint64_t end_of(uint64_t next, uint32_t lines) {
    const uint64_t left = ring_lines - next % ring_lines;
    return next + (left < lines ? left : 0) + lines;
  }
  // The line behind it must be free as well.
  bool fits(uint64_t end) {
    return end + 1 - taken_ <= ring_lines || end + 1 - taken() <= ring_lines;
  }

  Ring* ring_ = nullptr;
  uint64_t next_ = 0;     // lines, ever
  uint64_t planned_ = 0;  // with what has been promised room
  uint64_t taken_ = 0;    // as last seen
};

// The receiving end. It believes nothing but its own count.
class RingReader {
 public:
  RingReader() = default;
  explicit RingReader(Ring& ring) : ring_(&ring) {}

  explicit operator bool() const { return ring_ != nullptr; }
  bool any() const {
    return mark(next_).load(std::memory_order_relaxed) != nothing_yet && !broken_;
  }

  // The next message: null if there is none. It stays where it is until `release` has passed it.
  const std::byte* read(uint32_t& message_bytes) {
    uint32_t says = mark(next_).load(std::memory_order_acquire);
    if (says == nothing_yet || broken_) return nullptr;
    if (says == goes_on_at_the_beginning) {
      next_ += ring_lines - next_ % ring_lines;
      says = mark(next_).load(std::memory_order_acquire);
    }
    const uint32_t lines = lines_of(says);
    // What no writer of ours can have written: nothing behind it can be believed.
    broken_ = says - 1 >= most_message_bytes || lines > ring_lines - next_ % ring_lines;
    if (broken_) return nullptr;
    const std::byte* const content = ring_->lines[next_ % ring_lines].content;
    next_ += lines;
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
  std::atomic<uint32_t>& mark(uint64_t line) const { return ring_->lines[line % ring_lines].mark; }

  Ring* ring_ = nullptr;
  uint64_t next_ = 0;  // lines, ever
  bool broken_ = false;
};

}  // namespace urma::drivers::cxl
