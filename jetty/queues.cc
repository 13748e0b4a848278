#include "jetty/queues.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/address_space.h"
#include "base/copy.h"
#include "jetty/atomics.h"
#include "memseg/segment_table.h"

namespace urma::jetty {
namespace {

constexpr uint64_t too_many = UINT64_MAX / 2;

bool same_peer(PeerId a, PeerId b) { return a == b; }

// Only a write tells, in one way, and the peer that it writes to.
Status examine_telling(const Work& work) {
  if (!work.with_immediate && !work.with_notify) return Status::ok;
  if (work.operation != Operation::write || (work.with_immediate && work.with_notify) ||
      !same_peer(work.target.peer, work.segment.peer)) {
    return Status::bad_work;
  }
  if (!work.with_notify) return Status::ok;
  // Work::notify sets these alone.
  const bool known =
      work.notify_verdict == Status::ok || work.notify_verdict == Status::remote_access;
  return known ? work.notify_verdict : Status::bad_work;
}

bool inside(const Work& work, uint64_t bytes) {
  return work.offset <= UINT64_MAX - work.segment.address &&
         memseg::within(work.segment.address, work.segment.bytes,
                        work.segment.address + work.offset, bytes);
}

Status examine_atomic(const Work& work, uint64_t bytes) {
  const bool more = work.with_immediate || work.with_notify || work.solicits || work.copied ||
                    !work.buffers.empty() || work.buffer.data != nullptr;
  if (more || !work.segment.peer || !is_atomic(work.atomic, work.update)) return Status::bad_work;
  if (!std::has_single_bit(bytes) || bytes > most_atomic_bytes_of_ub) return Status::bad_work;
  if ((work.segment.address + work.offset) % bytes != 0) return Status::bad_work;
  if (!is_valid(work.segment.atomics)) return Status::bad_work;
  if (bytes > most_atomic_bytes || work.segment.atomics == AtomicDomain::device) {
    return Status::unsupported;
  }
  const bool allowed = inside(work, bytes) && has(work.segment.rights, Rights::atomic);
  return allowed ? Status::ok : Status::remote_access;
}

// What can be seen to be wrong before anything is sent. The target checks all of it again.
Status examine(const Work& work, uint64_t bytes, size_t pieces) {
  if (pieces > max_buffers) return Status::bad_work;
  if (work.operation == Operation::send) {
    return !work.with_notify && work.target && bytes <= max_send_bytes ? Status::ok
                                                                       : Status::bad_work;
  }
  if (work.operation == Operation::atomic) return examine_atomic(work, bytes);
  if (work.operation > Operation::read || !work.segment.peer) return Status::bad_work;
  if (bytes > max_write_bytes) return Status::bad_work;
  const Status telling = examine_telling(work);
  if (telling != Status::ok) return telling;
  // Refused here, nothing has changed there: a longer work is more than one packet.
  const Rights wanted = work.operation == Operation::read ? Rights::read : Rights::write;
  const bool allowed = inside(work, bytes) && (bytes == 0 || has(work.segment.rights, wanted));
  return allowed ? Status::ok : Status::remote_access;
}

bool is_datagram(const Work& work, uint64_t bytes, uint32_t most_bytes) {
  return work.operation == Operation::send && bytes <= most_bytes && work.order == Order::none &&
         work.fence == Fence::none;
}

}  // namespace

Leases::Leases(uint16_t count, size_t behind)
    : LazyBlock(count == 0 && behind == 0
                    ? 0
                    : sizeof(Lines) + rings * std::bit_ceil<size_t>(count) * sizeof(uint16_t) +
                          behind),
      mask_(static_cast<uint16_t>(std::bit_ceil<uint32_t>(count) - 1)),
      count_(count) {
  static_assert(sizeof(Leases) == 16);
}

size_t Queues::behind_berths(size_t berths, size_t inline_bytes, size_t waited) {
  const size_t each = sizeof(Berth) + sizeof(WorkState) + sizeof(ordering::CompleteGate::Slot) +
                      sizeof(NotifyTarget) + max_pieces * sizeof(Piece) +
                      sizeof(ordering::SubmitGate::Slot) + inline_bytes;
  return berths * each + waited * sizeof(Completion) + sizeof(ordering::SubmitGate);
}

size_t Queues::behind_receives(size_t receives) {
  return receives * (sizeof(ReceiveSlot) + max_pieces * sizeof(Piece));
}

Queues::Queues(uint16_t berths, uint16_t receives, std::shared_ptr<Jfc> jfc, uint32_t inline_bytes)
    : berths_(berths,
              behind_berths(berths, inline_bytes,
                            most_waited(jfc.use_count() == 0, entries_of(berths, receives)))),
      receives_(receives, behind_receives(receives)),
      jfc_(std::move(jfc)),
      inline_bytes_(inline_bytes) {}

Queues::Queues(uint16_t berths, uint16_t receives, Jfc& jfc, uint32_t inline_bytes)
    : Queues(berths, receives, std::shared_ptr<Jfc>(std::shared_ptr<void>(), &jfc), inline_bytes) {}

struct Queues::WithJfc {
  WithJfc(uint16_t berths, uint16_t receives, uint32_t inline_bytes)
      : jfc(std::max(entries_of(berths, receives), 1u)),
        queues(berths, receives, jfc, inline_bytes) {}

  Jfc jfc;
  Queues queues;
};

std::shared_ptr<Queues> Queues::with_own_jfc(uint16_t berths, uint16_t receives,
                                             uint32_t inline_bytes) {
  auto both = std::make_shared<WithJfc>(berths, receives, inline_bytes);
  both->jfc.reserve(both->queues.entries());
  return {both, &both->queues};
}

// With the counts of who shares it.
size_t Queues::bytes_with_own_jfc() { return sizeof(WithJfc) + 2 * sizeof(void*); }

Queues::Retirement& Queues::retire() {
  static_assert(sizeof(Retirement) <= sizeof(Leases::Lines::rest));
  berths_.touch();
  return *new (berths_.lines().rest) Retirement;
}

Queues::Retirement& Queues::retirement() {
  return *std::launder(reinterpret_cast<Retirement*>(berths_.lines().rest));
}

std::shared_ptr<Queues> Queues::end_retirement() {
  Retirement& ending = retirement();
  std::shared_ptr<Queues> self = std::move(ending.self);
  ending.~Retirement();
  new (berths_.lines().rest) std::byte[sizeof(Retirement)]{};
  return self;
}

size_t Queues::post(std::span<const Work> works) {
  uint32_t vacant = berths_.vacant();
  size_t taken = 0;
  for (const Work& work : works) {
    if (vacant == 0 || (vacant == 1 && !work.signalled)) break;
    const uint16_t lease = berths_.take_vacant();
    fill(all_berths()[lease], work, lease);
    berths_.stage(lease);
    --vacant;
    ++taken;
  }
  if (taken > 0) berths_.publish();
  return taken;
}

// Names the user's memory. Returns its bytes; `too_many` if one buffer alone has too many, or is
// no memory of any process.
uint64_t Queues::name_pieces(Berth& berth, std::span<const Buffer> buffers, uint16_t lease) {
  uint64_t bytes = 0;
  berth.piece_count = 0;
  for (const Buffer& buffer : buffers.first(std::min(buffers.size(), max_buffers))) {
    if (buffer.bytes == 0) continue;
    if (buffer.bytes > max_write_bytes || !could_be_memory(buffer.data, buffer.bytes))
        [[unlikely]] {
      berth.piece_count = 0;
      return too_many;
    }
    bytes += buffer.bytes;
    const Piece piece{static_cast<const std::byte*>(buffer.data),
                      static_cast<uint32_t>(buffer.bytes)};
    if (berth.piece_count == 0) berth.piece = piece;
    if (buffers.size() > 1) pieces_of(lease)[berth.piece_count] = piece;
    ++berth.piece_count;
  }
  return bytes;
}

void Queues::fill(Berth& berth, const Work& work, uint16_t lease) {
  std::span<const Buffer> buffers = work.buffers;
  if (buffers.empty()) {
    buffers = std::span(&work.buffer, 1);
  } else if (buffers.data() == nullptr) {
    static constexpr Buffer nowhere{nullptr, 1};
    buffers = std::span(&nowhere, 1);
  }
  // An atomic's operands go along with it: it has no memory here.
  const bool atomic = work.operation == Operation::atomic;
  const uint64_t bytes = atomic ? work.buffer.bytes : name_pieces(berth, buffers, lease);
  berth.operation = work.operation;
  // The completion of what is refused must not be taken for that of a receive.
  if (!is_valid(work.operation) || work.operation == Operation::receive) [[unlikely]]
    berth.operation = Operation::write;
  if (atomic) {
    berth.piece_count = 0;
    berth.atomic = work.atomic;
    berth.update = work.update;
    berth.doubtful = false;
    atomic_values()[lease] = {.expected = work.expected_value, .fetched = 0};
  }
  berth.with_immediate = work.with_immediate;
  berth.with_notify = work.with_notify;
  if (work.with_notify) {
    notify_targets()[lease] = {work.notify_address, work.notify_token_id, work.notify_token};
  }
  berth.signalled = work.signalled;
  berth.solicited = work.solicits;
  berth.order = work.order;
  berth.fence = work.fence;
  berth.verdict = examine(work, bytes, buffers.size());
  if (asks_order(berth) && !(is_valid(work.order) && is_valid(work.fence))) [[unlikely]] {
    berth.verdict = Status::bad_work;
    // It waits for no other work, and none waits for it.
    berth.order = Order::none;
    berth.fence = Fence::none;
  }
  if (datagram_bytes_ > 0 && !is_datagram(work, bytes, datagram_bytes_)) [[unlikely]] {
    berth.verdict = Status::bad_work;
  }
  if (work.copied && berth.verdict == Status::ok) {
    if (bytes <= inline_bytes_ && work.operation != Operation::read) {
      copy_in(berth, buffers, lease);
    } else {
      berth.verdict = Status::bad_work;
    }
  }
  berth.bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
  berth.tag = work.tag_value;
  berth.immediate = work.immediate_value;
  berth.peer = work.operation == Operation::send ? work.target.peer : work.segment.peer;
  berth.address = work.segment.address + work.offset;
  berth.token_id = work.segment.token_id;
  berth.token = work.segment.token;
  berth.target = work.target.id;
  berth.target_token = work.target.token;
}

// The lease is on a copy of our own: the user's memory is free when `post` returns.
void Queues::copy_in(Berth& berth, std::span<const Buffer> buffers, uint16_t lease) {
  std::byte* const begin = berths_.behind() + inline_at() + size_t{lease} * inline_bytes_;
  std::byte* at = begin;
  for (const Buffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    copy_bytes(at, static_cast<const std::byte*>(buffer.data), buffer.bytes);
    at += buffer.bytes;
  }
  berth.piece = {begin, static_cast<uint32_t>(at - begin)};
  berth.piece_count = at == begin ? 0 : 1;
}

size_t Queues::receive(std::span<const Buffer> buffers, uint64_t tag) {
  if (buffers.size() > max_buffers || receives_.vacant() == 0) return 0;
  const uint16_t lease = receives_.take_vacant();
  ReceiveSlot& slot = slots()[lease];
  slot = {.tag = tag, .bytes = 0, .piece_count = 0, .piece = {}};
  for (const Buffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    // No message is longer: what lies beyond is not used.
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(buffer.bytes, max_send_bytes));
    const Piece piece{static_cast<const std::byte*>(buffer.data), bytes};
    if (slot.piece_count == 0) slot.piece = piece;
    if (buffers.size() > 1) pieces_of_slot(lease)[slot.piece_count] = piece;
    ++slot.piece_count;
    slot.bytes += bytes;
  }
  receives_.stage(lease);
  receives_.publish();
  return 1;
}

void Queues::polled(const Completion& completion, uint16_t lease) {
  if (completion.operation == Operation::receive) {
    if (lease != none) {
      receives_.give_back(lease);
    } else {
      std::atomic<uint32_t>& polled = receives_.lines().immediates_polled;
      receives_.touch();
      polled.store(polled.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    return;
  }
  while (lease != none) {
    const uint16_t next = chained()[lease];
    berths_.give_back(lease);
    lease = next;
  }
}

std::span<const Piece> Queues::pieces(uint16_t lease) const {
  const Berth& named = berth(lease);
  if (named.piece_count <= 1) return {&named.piece, named.piece_count};
  return {pieces_of(lease), named.piece_count};
}

std::span<const Piece> Queues::slot_pieces(uint16_t lease) const {
  const ReceiveSlot& named = slot(lease);
  if (named.piece_count <= 1) return {&named.piece, named.piece_count};
  return {pieces_of_slot(lease), named.piece_count};
}

}  // namespace urma::jetty
