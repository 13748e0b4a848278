// SPDX-License-Identifier: Apache-2.0
// Compares a ring of the window with a list of its expected contents, also while another process
// overwrites parts of it.

#include "drivers/cxl/ring.h"

#include "drivers/cxl/acted_caches.h"

#include <deque>
#include <map>
#include <memory>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/drivers/ports.h"

namespace urma::test {
namespace {

using namespace drivers::cxl;

// Both ends of a ring, and its expected contents.
class RingModel {
 public:
  enum class Memory : uint8_t { coherent, not_coherent };

  explicit RingModel(uint64_t seed, Memory memory = Memory::coherent) : prng_(seed) {
    std::memset(static_cast<void*>(ring_.get()), 0xa5, sizeof(Ring));
    // Does what `Window::give` does.
    ring_->control.receiver.taken = 0;
    ring_->lines[0].mark = nothing_yet;
    if (memory == Memory::not_coherent) {
      auto* const bytes = reinterpret_cast<std::byte*>(ring_.get());
      writers_caches_ = ActedCaches::make(bytes, sizeof(Ring), seed);
      readers_caches_ = ActedCaches::make(bytes, sizeof(Ring), seed + 1);
    }
    writer_ = RingWriter(ring_in(writers_caches_), marked_, writers_caches_.get());
    reader_ = RingReader(ring_in(readers_caches_), readers_caches_.get());
  }

  bool write(uint32_t bytes) {
    put_together(bytes);
    if (!writer_.write(frame_, bytes)) return false;
    in_.push_back({number_++, bytes});
    return true;
  }
  // Writes a message into the next line, if that takes it.
  bool write_in_line(uint32_t bytes) {
    const NextLine& line = writer_.line();
    if (!line.takes(bytes)) return false;
    put_together(bytes);
    drivers::flatten(frame_, line.content);
    line.send(bytes);
    writer_.sent_line(bytes);
    in_.push_back({number_++, bytes});
    return true;
  }
  const NextLine& line() const { return writer_.line(); }
  // Fills all messages that are written from now on with this mark.
  void write_full_of(uint32_t mark) {
    for (size_t i = 0; i + sizeof mark <= pattern_.size(); i += sizeof mark) {
      std::memcpy(&pattern_[i], &mark, sizeof mark);
    }
  }
  void written() { writer_.written(); }
  bool reserve(uint32_t bytes) { return writer_.reserve(bytes); }

  // Reads one message and keeps it.
  bool read() {
    uint32_t bytes = 0;
    const std::byte* const at = reader_.read(bytes);
    if (at == nullptr) {
      REQUIRE(in_.empty());
      return false;
    }
    REQUIRE_FALSE(in_.empty());
    REQUIRE(bytes == in_.front().bytes);
    kept_.push_back({in_.front(), at, reader_.next()});
    in_.pop_front();
    return true;
  }
  // Checks that the oldest kept message is unchanged, and releases it.
  void release() {
    const Kept& one = kept_.front();
    check(one.message, one.at);
    reader_.release(one.until);
    kept_.pop_front();
  }
  size_t kept() const { return kept_.size(); }
  size_t unread() const { return in_.size(); }
  bool empty() { return writer_.empty(); }
  Prng& prng() { return prng_; }

 private:
  struct Message {
    uint64_t number;
    uint32_t bytes;
  };
  struct Kept {
    Message message;
    const std::byte* at;
    uint64_t until;
  };

  void put_together(uint32_t bytes) {
    frame_.head = head_.data();
    frame_.head_bytes = static_cast<uint8_t>(std::min<uint32_t>(bytes, 20));
    frame_.tail_bytes =
        static_cast<uint8_t>(std::min<uint32_t>(bytes - frame_.head_bytes, TxFrame::tail_room));
    const uint32_t rest = bytes - frame_.head_bytes - frame_.tail_bytes;
    frame_.piece_count = rest > 0;
    frame_.pieces[0] = {pattern_.data() + number_ % 251, rest};
    std::memset(frame_.head, static_cast<int>(number_), frame_.head_bytes);
    frame_.tail.fill(static_cast<std::byte>(~number_));
  }
  Ring& ring_in(const std::unique_ptr<ActedCaches>& caches) {
    return caches == nullptr ? *ring_ : *reinterpret_cast<Ring*>(caches->copy());
  }
  void check(const Message& message, const std::byte* at) const {
    const uint32_t head = std::min<uint32_t>(message.bytes, 20);
    const uint32_t tail = std::min<uint32_t>(message.bytes - head, TxFrame::tail_room);
    const uint32_t rest = message.bytes - head - tail;
    bool same = std::memcmp(at + head, pattern_.data() + message.number % 251, rest) == 0;
    for (uint32_t i = 0; i < head; ++i) same &= at[i] == static_cast<std::byte>(message.number);
    for (uint32_t i = 0; i < tail; ++i) {
      same &= at[head + rest + i] == static_cast<std::byte>(~message.number);
    }
    REQUIRE(same);
  }

  std::unique_ptr<Ring> ring_ = std::make_unique<Ring>();
  std::unique_ptr<ActedCaches> writers_caches_;
  std::unique_ptr<ActedCaches> readers_caches_;
  MarkedLines marked_;
  RingWriter writer_;
  RingReader reader_;
  Prng prng_;
  std::array<std::byte, TxFrame::head_room> head_{};
  Packet pattern_ = packet_of(most_message_bytes + 256, 1);
  TxFrame frame_;
  uint64_t number_ = 0;
  std::deque<Message> in_;
  std::deque<Kept> kept_;
};

TEST_CASE("messages of every size pass through a ring unchanged") {
  RingModel model(1);
  for (uint32_t bytes = 1; bytes <= most_message_bytes; ++bytes) {
    REQUIRE(model.write(bytes));
    model.written();
    REQUIRE(model.read());
    model.release();
  }
  CHECK(model.empty());
}

void read_and_write_at_random(RingModel& model) {
  Prng& prng = model.prng();
  const auto any_size = [&] {
    return static_cast<uint32_t>(prng.between(1, uint64_t{most_message_bytes} >> prng.below(17)));
  };
  for (int turn = 0; turn < 200'000; ++turn) {
    switch (prng.below(4)) {
      case 0:
        // Short messages are sent as an engine sends them: in the next line, if that is possible.
        if (prng.below(2) == 0 &&
            model.write_in_line(static_cast<uint32_t>(prng.between(1, 130)))) {
          break;
        }
        model.write(any_size());
        model.written();
        break;
      case 1:
        model.read();
        break;
      default:
        if (model.kept() > 0 && (model.kept() > 20 || prng.below(2) == 0)) model.release();
        break;
    }
  }
  while (model.read()) {
  }
  while (model.kept() > 0) model.release();
  CHECK(model.empty());
}

TEST_CASE(
    "messages of all sizes stay intact while a reader keeps some and a writer fills the ring") {
  RingModel coherent(2);
  read_and_write_at_random(coherent);
  RingModel not_coherent(2, RingModel::Memory::not_coherent);
  read_and_write_at_random(not_coherent);
}

TEST_CASE("a series of short messages is sent in lines that are prepared, from the second lap on") {
  for (const uint32_t bytes : {NextLine::short_bytes, NextLine::long_bytes}) {
    RingModel model(4);
    uint32_t in_line = 0;
    const uint32_t lap = ring_lines / lines_of(bytes);
    for (uint32_t i = 0; i < 3 * lap; ++i) {
      const bool prepared = model.write_in_line(bytes);
      if (!prepared) {
        REQUIRE(model.write(bytes));
        model.written();
      }
      in_line += prepared;
      REQUIRE(model.read());
      model.release();
    }
    CHECK(in_line > 2 * lap - 10);
    CHECK(in_line < 2 * lap + 10);
  }
}

TEST_CASE("no line is prepared for too long a message, a full ring, or beside reserved room") {
  RingModel model(5);
  while (!model.line().takes(1)) {
    REQUIRE(model.write(1));
    model.written();
    REQUIRE(model.read());
    model.release();
  }
  CHECK_FALSE(model.line().takes(NextLine::long_bytes + 1));
  REQUIRE(model.reserve(1));
  CHECK_FALSE(model.line().takes(1));
  model.written();
  CHECK(model.line().takes(1));
  while (model.write_in_line(1)) {
  }
  CHECK(model.unread() > 0);
  // Either the ring is full, or its end is near.
  while (model.write(1)) model.written();
  CHECK_FALSE(model.line().takes(1));
  CHECK(model.unread() == ring_lines - 1);
  RingModel not_coherent(5, RingModel::Memory::not_coherent);
  CHECK_FALSE(not_coherent.line().takes(1));
}

TEST_CASE("messages with reserved room fit, and reservations succeed if there is room") {
  RingModel model(3);
  Prng& prng = model.prng();
  uint64_t refused = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    // A burst: first reservations of the largest possible sizes, then the messages.
    std::vector<uint32_t> promised;
    for (uint64_t count = prng.between(1, 64); count > 0; --count) {
      const auto most =
          static_cast<uint32_t>(prng.between(1, uint64_t{most_message_bytes} >> prng.below(17)));
      if (!model.reserve(most)) {
        ++refused;
        break;
      }
      promised.push_back(most);
    }
    for (const uint32_t most : promised) {
      const uint64_t less = prng.below(std::min<uint64_t>(most, 97));
      REQUIRE(model.write(most - static_cast<uint32_t>(less)));
    }
    model.written();
    if (model.unread() == 0 && model.kept() == 0) REQUIRE(model.reserve(most_message_bytes));
    model.written();
    for (uint64_t count = prng.below(80); count > 0; --count) model.read();
    while (model.kept() > prng.below(10)) model.release();
  }
  CHECK(refused > 100);
}

TEST_CASE("a full ring accepts no further message, and loses none") {
  RingModel model(4);
  for (const uint32_t bytes : {1u, 60u, 61u, 4096u, most_message_bytes}) {
    for (int lap = 0; lap < 5; ++lap) {
      while (model.write(bytes)) model.written();
      CHECK(model.unread() * lines_of(bytes) > ring_lines - 2 * lines_of(bytes) - 2);
      while (model.read()) {
      }
      CHECK_FALSE(model.write(bytes));  // a message that the reader keeps still occupies its room
      while (model.kept() > 0) model.release();
    }
  }
  CHECK(model.empty());
}

TEST_CASE("payload that looks like future marks is not taken for marks") {
  for (const uint32_t ahead : {1U, 2U}) {
    RingModel model(ahead);
    uint64_t lines = 0;
    while (lines < uint64_t{12} * ring_lines) {
      const auto lap = static_cast<uint32_t>(lines / ring_lines) + ahead;
      const uint32_t says = model.prng().chance(0.2) ? goes_on_at_the_beginning : 5;
      model.write_full_of(lap * one_lap | says);
      const uint32_t bytes = model.prng().chance(0.5)
                                 ? 1 + static_cast<uint32_t>(model.prng().below(60))
                                 : static_cast<uint32_t>(model.prng().below(9000)) + 61;
      REQUIRE(model.write(bytes));
      model.written();
      lines += lines_of(bytes);
      REQUIRE(model.read());
      REQUIRE_FALSE(model.read());
      model.release();
    }
  }
}

TEST_CASE("marks that no writer makes only stop the ring") {
  Prng prng(5);
  const auto ring = std::make_unique<Ring>();
  const auto* const from = reinterpret_cast<const std::byte*>(ring->lines);
  const std::byte* const end = from + sizeof ring->lines;
  const uint32_t telling[] = {
      1, 60, 61, most_message_bytes, UINT32_MAX, 0x80000000, 0xfffffffe, most_message_bytes + 1, 0};
  for (int round = 0; round < 2000; ++round) {
    RingReader reader(*ring);
    MarkedLines marked;
    RingWriter writer(*ring, marked);
    for (Line& line : ring->lines) {
      const uint64_t kind = prng.below(12);
      line.mark = kind < std::size(telling) ? telling[kind]
                  : kind == 9               ? static_cast<uint32_t>(prng.next())
                                            : static_cast<uint32_t>(prng.below(70'000));
    }
    if (round % 4 == 0) {
      for (Line& line : ring->lines) line.mark = goes_on_at_the_beginning;
    }
    for (int reads = 0; reads < 200; ++reads) {
      uint32_t bytes = 0;
      const std::byte* const at = reader.read(bytes);
      if (at == nullptr) continue;
      REQUIRE(at >= from);
      REQUIRE(bytes > 0);
      REQUIRE(bytes <= static_cast<size_t>(end - at));
      reader.release(reader.next());
    }
    // A reader that claims to have taken more than was written is not believed either.
    ring->control.receiver.taken = prng.next() >> prng.below(64);
    while (writer.reserve(1000)) {
    }
    CHECK(writer.taken() == 0);
    CHECK(writer.empty());
  }
}

}  // namespace
}  // namespace urma::test
