// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/raw_shm.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {
namespace {

constexpr uint64_t line = 64;
constexpr uint64_t page = 4096;
constexpr uint64_t ring_slots = 1024;
constexpr uint64_t credit_every = 64;
// The slot's data and its number are on one cache line, so the data has a fixed size and is copied
// by two vector stores.
constexpr uint64_t line_payload = line - sizeof(uint64_t);
constexpr uint64_t piece_bytes = 64 * 1024;
constexpr uint64_t large = 16 << 20;  // from this size on there is only one buffer
// An empty poll takes one or two nanoseconds, and reading the clock twenty-five.
constexpr unsigned looks_per_clock = 256;

constexpr uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

bool in_ring(Way way) {
  return way == Way::number || way == Way::in_slot || way == Way::placed || way == Way::stamped;
}

// The low half of a count: a futex is a word of 32 bits.
uint32_t* sleeping_word(std::atomic<uint64_t>& count) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<uint32_t*>(&count);
}

}  // namespace

// ---- the plan

uint64_t LanePlan::slots() const { return in_ring(way) ? ring_slots : 1; }

uint64_t LanePlan::slot_bytes() const {
  const bool carries = way == Way::in_slot || way == Way::stamped;
  return carries ? round_up(bytes + sizeof(uint64_t), line) : line;
}

uint64_t LanePlan::buffers() const {
  if (way == Way::placed) return ring_slots;
  return way == Way::piped || bytes <= large ? 4 : 1;
}

uint64_t LanePlan::buffer_bytes() const {
  if (way == Way::placed) return round_up(bytes, line);
  if (way == Way::piped) return round_up(std::min(bytes, piece_bytes), page);
  return way == Way::handed || way == Way::woken ? round_up(bytes, page) : 0;
}

uint64_t LanePlan::lane_bytes() const {
  return 2 * page + round_up(slots() * slot_bytes(), page) +
         round_up(buffers() * buffer_bytes(), page);
}

// ---- a lane

Lane::Lane(const LanePlan& plan, std::span<std::byte> memory)
    : plan_(plan),
      slots_(plan.slots()),
      slot_bytes_(plan.slot_bytes()),
      buffers_(plan.buffers()),
      buffer_bytes_(plan.buffer_bytes()),
      numbered_by_slot_(in_ring(plan.way)),
      tail_(memory.data()),
      head_(tail_ + page),
      ring_(head_ + page),
      area_(ring_ + round_up(slots_ * slot_bytes_, page)) {}

void Lane::put(uint64_t number, std::span<const std::byte> message) const {
  switch (plan_.way) {
    case Way::number:
      break;
    case Way::in_slot:
    case Way::stamped:
      // Whole lines are copied if the source has them: the bytes behind the message are not secret.
      if (plan_.bytes <= line_payload && message.size() >= line_payload) {
        std::memcpy(slot(number), message.data(), line_payload);
      } else {
        std::memcpy(slot(number), message.data(), plan_.bytes);
      }
      break;
    case Way::placed:
    case Way::handed:
    case Way::woken:
    case Way::piped:
      std::memcpy(buffer(number), message.data(), std::min(message.size(), plan_.bytes));
      break;
  }
  announced(number).store(number, std::memory_order_release);
  if (plan_.way == Way::woken) {
    syscall(SYS_futex, sleeping_word(tail()), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

bool Lane::await(uint64_t number, int64_t until) const {
  if (plan_.way == Way::woken) return sleep(number, until);
  for (unsigned looks = 1; !has(number); ++looks) {
    spin();
    if (looks % looks_per_clock == 0 && now() >= until) return false;
  }
  return true;
}

bool Lane::sleep(uint64_t number, int64_t until) const {
  while (!has(number)) {
    const int64_t left = until - now();
    if (left <= 0) return false;
    const timespec limit{.tv_sec = left / second, .tv_nsec = left % second};
    syscall(SYS_futex, sleeping_word(tail()), FUTEX_WAIT, static_cast<uint32_t>(number - 1), &limit,
            nullptr, 0);
  }
  return true;
}

void Lane::take(uint64_t number, std::span<std::byte> landing) const {
  const bool in_slot = plan_.way == Way::in_slot || plan_.way == Way::stamped;
  const std::span<const std::byte> there(in_slot ? slot(number) : buffer(number), plan_.bytes);
  if (plan_.use == Use::read) read_words(there);
  if (plan_.use == Use::copy) std::memcpy(landing.data(), there.data(), there.size());
}

// ---- ping-pong

void ShmPing::run(int64_t until, Histogram& round_trips) {
  for (int64_t time = now(); time < until;) {
    if (!waiting_) {
      sent_ = rest(rest_, time);
      waiting_ = true;
      out_.put(++number_, source_);
    }
    if (!in_.await(number_, until)) return;
    in_.take(number_, landing_);
    waiting_ = false;
    time = now();
    if (sent_ == 0) continue;
    const int64_t took = time - sent_ - rest_ - clock_cost();
    round_trips.record(static_cast<uint64_t>(std::max<int64_t>(took, 0)));
  }
}

void ShmPong::run(int64_t until) {
  for (unsigned turns = 1; in_.await(number_ + 1, until); ++turns) {
    in_.take(++number_, landing_);
    hold(rest_);
    out_.put(number_, source_);
    // If no poll is empty, the clock would never be read.
    if ((turns % looks_per_clock == 0 || rest_ > 0) && now() >= until) return;
  }
}

// ---- streams

bool ShmSender::room(uint64_t for_so_many, int64_t until) {
  const uint64_t all = lane_.plan().way == Way::stamped ? ring_slots : lane_.plan().buffers();
  for (unsigned looks = 1; put_ + for_so_many > taken_ + all; ++looks) {
    taken_ = lane_.head().load(std::memory_order_acquire);
    if (put_ + for_so_many <= taken_ + all) break;
    spin();
    if (looks % looks_per_clock == 0 && now() >= until) return false;
  }
  return true;
}

void ShmSender::run(int64_t until) {
  const bool stamped = lane_.plan().way == Way::stamped;
  // Reading the clock takes as long as copying some hundred bytes.
  const uint64_t per_clock = stamped ? 1 : std::clamp<uint64_t>(65536 / lane_.plan().bytes, 1, 64);
  for (uint64_t turns = 1;; ++turns) {
    if (!(stamped ? send_stamped(until) : send_piece(until))) return;
    if (turns % per_clock == 0 && now() >= until) return;
  }
}

bool ShmSender::send_stamped(int64_t until) {
  if (!room(credit_every, until)) return false;
  if (lane_.plan().bytes > line_payload || source_.size() < line_payload) {
    for (uint64_t i = 0; i < credit_every; ++i) lane_.put(++put_, source_);
    return true;
  }
  // Does the same as `put`, without decisions for each message.
  for (const uint64_t end = put_ + credit_every; put_ != end;) {
    ++put_;
    std::memcpy(lane_.slot(put_), source_.data(), line_payload);
    lane_.announced(put_).store(put_, std::memory_order_release);
  }
  return true;
}

// Sends a part of a message. It begins elsewhere in the source than the previous one.
bool ShmSender::send_piece(int64_t until) {
  if (!room(1, until)) return false;
  const uint64_t message = lane_.plan().bytes;
  if (at_ + message > source_.size()) at_ = 0;
  const uint64_t piece = std::min(piece_bytes, message - in_message_);
  lane_.put(++put_, source_.subspan(at_ + in_message_, piece));
  in_message_ += piece;
  if (in_message_ == message) {
    in_message_ = 0;
    at_ += line;
  }
  return true;
}

template <class Word>
void ShmCopier::operate_on(std::byte* at) {
  const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
  if (operates_ == Atomic::compare_swap) {
    // A compare-swap that succeeds, as those of the test do.
    Word expected = word.load(std::memory_order_relaxed);
    word.compare_exchange_strong(expected, static_cast<Word>(expected + 1));
  } else {
    word.fetch_add(1);
  }
}

void ShmCopier::operate_once() {
  if (to_ + bytes_ > landing_.size()) to_ = 0;
  std::byte* const at = landing_.data() + to_;
  switch (bytes_) {
    case 1:
      operate_on<uint8_t>(at);
      break;
    case 2:
      operate_on<uint16_t>(at);
      break;
    case 4:
      operate_on<uint32_t>(at);
      break;
    default:
      operate_on<uint64_t>(at);
  }
  to_ += step_;
}

// `fixed` is the number of bytes, if the compiler shall know it; else 0.
template <size_t fixed>
void ShmCopier::copy() {
  if (operates_) return operate_once();
  if (from_ + bytes_ > source_.size()) from_ = 0;
  if (to_ + bytes_ > landing_.size()) to_ = 0;
  std::memcpy(landing_.data() + to_, source_.data() + from_, fixed != 0 ? fixed : bytes_);
  // Otherwise the compiler may do only the last copy to a slot.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  from_ = spread_ ? draw_.of(source_.size() / line) * line : from_ + line;
  to_ += step_;
}

void ShmCopier::run(int64_t until) {
  const uint64_t per_clock =
      std::clamp<uint64_t>(65536 / std::max<uint64_t>(bytes_, 1), 1, looks_per_clock);
  int64_t time = now();
  if (tally.first == 0) tally.add(0, time);
  while (time < until) {
    for (uint64_t i = 0; i < per_clock; ++i) copy<0>();
    time = now();
    tally.add(per_clock * bytes_, time);
  }
}

// A lane copies 8 bytes by instructions, without a call of memcpy, so its limit does so, too.
void ShmCopier::copy_group() {
  if (bytes_ == sizeof(uint64_t)) {
    for (uint64_t i = 0; i < group_; ++i) copy<sizeof(uint64_t)>();
  } else {
    for (uint64_t i = 0; i < group_; ++i) copy<0>();
  }
}

void ShmCopier::run(int64_t until, Histogram& times) {
  for (int64_t begun = now(); begun < until; begun = now()) {
    group_ == 0 ? copy<0>() : copy_group();
    // If the copy took no longer than reading the clock, the smallest step is recorded: a limit of
    // 0 would mean that there is none.
    const auto took = static_cast<uint64_t>(std::max<int64_t>(now() - begun - clock_cost(), 1));
    if (group_ == 0) {
      times.record(took);
    } else {
      times.record(took * 1000 / group_, group_);
    }
  }
}

void ShmReceiver::run(int64_t until) {
  const bool stamped = lane_.plan().way == Way::stamped;
  const uint64_t per_clock = stamped ? ring_slots * lane_.plan().bytes : piece_bytes;
  uint64_t uncounted = 0;
  for (unsigned looks = 1;;) {
    const uint64_t got = stamped ? take_stamped() : take_piece();
    uncounted += got;
    const bool look = got == 0 ? looks++ % looks_per_clock == 0 : uncounted >= per_clock;
    if (got == 0) spin();
    if (!look) continue;
    const int64_t time = now();
    if (uncounted > 0) tally.add(std::exchange(uncounted, 0), time);
    if (time >= until) return;
  }
}

// Takes all messages that are there, up to the next credit.
uint64_t ShmReceiver::take_stamped() {
  uint64_t count = 0;
  while (lane_.has(taken_ + 1)) {
    lane_.take(++taken_, landing_);
    ++count;
    if (taken_ % credit_every != 0) continue;
    lane_.head().store(taken_, std::memory_order_release);
    break;
  }
  return count * lane_.plan().bytes;
}

uint64_t ShmReceiver::take_piece() {
  if (lane_.tail().load(std::memory_order_acquire) == taken_) return 0;
  const uint64_t message = lane_.plan().bytes;
  if (at_ + message > landing_.size()) at_ = 0;
  const uint64_t piece = std::min(piece_bytes, message - in_message_);
  std::memcpy(landing_.data() + at_ + in_message_, lane_.buffer(++taken_), piece);
  lane_.head().store(taken_, std::memory_order_release);
  in_message_ += piece;
  if (in_message_ == message) {
    in_message_ = 0;
    at_ += round_up(message, line);
  }
  return piece;
}

}  // namespace urma::apps::perf
