// SPDX-License-Identifier: Apache-2.0
#include "umdk/sender.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "umdk/calls.h"
#include "umdk/handle.h"
#include "umdk/jfr.h"
#include "umdk/log.h"
#include "umdk/segment.h"
#include "umdk/statuses.h"
#include "umdk/target.h"

namespace urma::umdk {
namespace {

// The documented time-outs are powers of two, from 4 us. UMDK's driver knows four, for 8 exponents
// each, and programs rely on them: UMQ and URPC ask for 2, which would be 16 us. Its shortest is
// 128 ms; but here the target is a process, which a busy machine runs late.
Duration timeout_of(uint8_t exponent) {
  using std::chrono::seconds;
  constexpr std::array<Duration, 4> known = {seconds(1), seconds(1), seconds(8), seconds(64)};
  if (exponent == 0) return {};
  return known[std::min<size_t>(exponent / 8, known.size() - 1)];
}

// Each retry waits as long as the receiver's JFR says. That is not known here, but programs choose
// the same for the JFR of both ends: 2 us * 2^min_rnr_timer.
Duration receiver_timeout_of(uint8_t retries, const Jfr* own) {
  constexpr uint8_t without_limit = 7;
  constexpr Duration least = std::chrono::milliseconds(100);  // a busy machine runs receivers late
  if (retries >= without_limit) return Duration::max();
  if (own == nullptr) return least * retries;
  const unsigned exponent = std::min<unsigned>(own->jfr_cfg.min_rnr_timer, 31);
  return std::max<Duration>(least, std::chrono::microseconds(uint64_t{2} << exponent)) * retries;
}

ServiceMode mode_of(const urma_jfs_cfg_t& jfs) {
  if (jfs.trans_mode == URMA_TM_UM) return ServiceMode::unreliable;
  return jfs.flag.bs.order_type == URMA_OI ? ServiceMode::initiator : ServiceMode::automatic;
}

// UMDK's driver takes the address of the first remote range, and writes or reads there as much as
// the local ranges have. So several make sense only if they are one.
bool is_one_range(const urma_sg_t& there) {
  for (uint32_t i = 1; i < there.num_sge; ++i) {
    const urma_sge_t& before = there.sge[i - 1];
    const urma_sge_t& range = there.sge[i];
    if (range.tseg == nullptr || range.tseg != before.tseg) return false;
    if (range.addr != before.addr + before.len) return false;
  }
  return true;
}

// The upper half of the 16 priorities is urgent.
constexpr uint32_t priorities_in_class = URMA_MAX_PRIORITY_CNT / 2;

// Returns whether a work of this kind takes a receive of its target.
bool makes_a_record_there(urma_opcode_t opcode) {
  return opcode == URMA_OPC_SEND || opcode == URMA_OPC_SEND_IMM || opcode == URMA_OPC_WRITE_IMM;
}

// ---- why a work is refused

[[gnu::noinline, gnu::cold]] urma_status_t refuse_order(const char* call, urma_jfs_wr_flag_t flag) {
  return refuse(URMA_EINVAL, often(call),
                "place_order is %u, comp_order %u and fence %u. Fix: choose a place_order of "
                "urma_place_order_t, and none of the three for URMA_TM_UM",
                uint32_t{flag.bs.place_order}, uint32_t{flag.bs.comp_order},
                uint32_t{flag.bs.fence});
}

[[gnu::noinline, gnu::cold]] urma_status_t refuse_count(const char* call, uint32_t count,
                                                        const char* which, const char* limit,
                                                        uint32_t most) {
  return refuse(URMA_EINVAL, often(call),
                "a work has %u %s ranges, and its queue allows %u. Fix: make the queue with a "
                "larger %s, or post several works",
                count, which, most, limit);
}

[[gnu::noinline, gnu::cold]] urma_status_t refuse_inline(const char* call, uint64_t bytes,
                                                         uint32_t most) {
  return refuse(URMA_EINVAL, often(call),
                "a work has %llu bytes of inline data, and its queue allows %u. Fix: make the "
                "queue with a larger max_inline_data, or clear inline_flag",
                static_cast<unsigned long long>(bytes), most);
}

[[gnu::noinline, gnu::cold]] urma_status_t refuse_memory(const char* call) {
  return refuse(URMA_EINVAL, often(call),
                "a work names local memory that is not in a segment of this context, or stores "
                "into memory that was read-only when it was registered. Fix: register the memory, "
                "and give its urma_target_seg");
}

[[gnu::noinline, gnu::cold]] urma_status_t refuse_target(const char* call) {
  return refuse(URMA_EINVAL, often(call),
                "a work names no target of this context. Fix: import one, and give it as tjetty");
}

[[gnu::noinline, gnu::cold]] urma_status_t refuse_peer(const char* call) {
  return refuse(URMA_EINVAL, often(call),
                "a work names a remote segment that is not of the process of its target. Fix: give "
                "a segment that was imported from there, or the target of the segment's process");
}

Atomic atomic_of(urma_opcode_t opcode) {
  switch (opcode) {
    case URMA_OPC_CAS:
      return Atomic::compare_swap;
    case URMA_OPC_SWAP:
      return Atomic::swap;
    case URMA_OPC_FADD:
      return Atomic::fetch_add;
    case URMA_OPC_FSUB:
      return Atomic::fetch_sub;
    case URMA_OPC_FAND:
      return Atomic::fetch_and;
    case URMA_OPC_FOR:
      return Atomic::fetch_or;
    default:
      return Atomic::fetch_xor;
  }
}

// Returns which member of a group receives the work.
uint8_t hint_of(const urma_jfs_wr_t& wr) {
  const bool send = wr.opcode == URMA_OPC_SEND || wr.opcode == URMA_OPC_SEND_IMM;
  if (send) return wr.send.target_hint;
  return wr.opcode == URMA_OPC_WRITE_IMM ? wr.rw.target_hint : uint8_t{0};
}

}  // namespace

// Works that are posted together, and the arrays that they refer to until then. Only what is used
// of it is initialised, as it is larger than what most posts need.
struct Sender::Batch {
  static constexpr size_t most_works = 8;
  static constexpr size_t most_ranges = 4 * max_buffers;

  explicit Batch(const char* of) : call(of) {}

  const char* const call;
  size_t count = 0;
  size_t range_count = 0;
  std::array<urma_jfs_wr_t*, most_works> from;
  union {
    std::array<Work, most_works> works;
  };
  union {
    std::array<Buffer, most_ranges> ranges;
  };

  bool has_room() const { return count < most_works && range_count + max_buffers <= most_ranges; }
};

Result<void> Sender::activate() {
  const urma_jfs_cfg_t& jfs = options_.jfs;
  Jfc& jfc = *find<Jfc>(jfs.jfc);
  limits_ = limits_of(jfs);
  const uint32_t berths = jfs.depth + spare_berths;
  JettyOptions options{.berths = berths,
                       .inline_bytes = limits_.inline_bytes,
                       .operation_timeout = timeout_of(jfs.err_timeout),
                       .receiver_timeout = receiver_timeout_of(jfs.rnr_retry, options_.receives),
                       .weight = jfs.priority % priorities_in_class + 1u,
                       .urgent = jfs.priority >= priorities_in_class,
                       .mode = mode_of(jfs),
                       .chain = jfs.trans_mode == URMA_TM_RC,
                       .in_order = jfs.flag.bs.outorder_comp == 0,
                       .suspend_on_error = jfs.flag.bs.error_suspend != 0};
  ordered_ = options.chain;
  datagrams_ = jfs.trans_mode == URMA_TM_UM;
  if (options_.receives != nullptr) {
    options.receives_from = &*options_.receives->queue;
    options.token = options_.receives->token();
  }
  const std::lock_guard held(context_.numbers());
  entries_ = {.count = berths};
  auto made = jfc.with_room(entries_, [&] {
    options.completions = entries_.queue;
    const bool tells = options_.receives != nullptr;
    return context_.with_number(options_.id, tells, [&](std::optional<JettyId> id) {
      options.id = id;
      return context_.device.jetty(options);
    });
  });
  if (!made) return made.error();
  jetty_.emplace(std::move(*made));
  id_ = jetty_->id();
  if (options_.receives != nullptr) options_.receives->hold();
  numbered_ = {.object = options_.object,
               .sender = this,
               .receives = options_.receives,
               .jetty = options_.receives != nullptr};
  context_.enter(id_, &numbered_);
  if (options_.receives != nullptr) context_.be_found(id_, *jetty_);
  state_ = URMA_JETTY_STATE_READY;
  return {};
}

void Sender::deactivate() {
  Jfc& jfc = *find<Jfc>(options_.jfs.jfc);
  Jfr* const receives = options_.receives;
  const std::lock_guard held(context_.numbers());
  jetty_.reset();
  jfc.forget(id_);
  if (receives != nullptr) find<Jfc>(receives->jfr_cfg.jfc)->forget(id_);
  context_.forget(numbered_);
  context_.enter(id_, nullptr);
  context_.let_go_of(id_);
  jfc.let_go(entries_);
  if (receives != nullptr) receives->let_go();
  state_ = URMA_JETTY_STATE_RESET;
}

// ---- states

urma_status_t Sender::change(const char* call, urma_jetty_state_t state) {
  // It is set first, so that what another thread polls meanwhile counts as flushed. A failure that
  // this thread polls may suspend the queue.
  urma_jetty_state_t before = state_.load();
  do {
    if (before == state) return URMA_SUCCESS;
    if (const auto status = check_change(call, before, state)) return status;
  } while (!state_.compare_exchange_weak(before, state));
  if (const auto applied = apply(state); !applied) {
    state_ = before;
    return refuse(call_status(applied.status()), call, "%s", applied.error().message.c_str());
  }
  // All records of works can be polled already, and come before these.
  Jfc& jfc = *find<Jfc>(options_.jfs.jfc);
  if (state == URMA_JETTY_STATE_SUSPENDED) jfc.append(ended(URMA_CR_WR_SUSPEND_DONE));
  if (state == URMA_JETTY_STATE_ERROR) {
    jfc.append(ended(URMA_CR_WR_FLUSH_ERR_DONE));
    flushes_unpolled_.fetch_add(1);  // last, as append may throw; it may be polled already
  }
  return URMA_SUCCESS;
}

Result<void> Sender::apply(urma_jetty_state_t state) {
  switch (state) {
    case URMA_JETTY_STATE_ERROR:
      return jetty_->flush();
    case URMA_JETTY_STATE_SUSPENDED:
      return jetty_->suspend();
    case URMA_JETTY_STATE_READY:
      return jetty_->reset();
    default:
      return {};  // ERROR has ended everything, and what is posted now is refused
  }
}

urma_cr_t Sender::ended(urma_cr_status_t how) const {
  urma_cr_t done{};
  done.status = how;
  done.local_id = number(id_);
  done.flag.bs.jetty = numbered_.jetty;
  done.user_data = options_.object;
  return done;
}

bool Sender::has_ended_works() const {
  return state() != URMA_JETTY_STATE_READY || flushes_unpolled_ != 0;
}

// The library has ended the other works of the queue with the one that failed.
bool Sender::suspends(const Completion& failed) {
  if (options_.jfs.flag.bs.error_suspend == 0 || failed.status == Status::flushed) return false;
  if (has_ended_works()) return false;
  urma_jetty_state_t ready = URMA_JETTY_STATE_READY;
  return state_.compare_exchange_strong(ready, URMA_JETTY_STATE_SUSPENDED);
}

// ---- posting

urma_status_t Sender::post(const char* call, urma_jfs_wr_t* list, urma_target_jetty_t* bound,
                           urma_jfs_wr_t** bad) {
  if (state() == URMA_JETTY_STATE_RESET) [[unlikely]] {
    *bad = list;
    return refuse_reset(call);
  }
  const SpinLock::Held held(lock_, options_.jfs.flag.bs.lock_free == 0);
  Batch batch(call);
  for (urma_jfs_wr_t* wr = list; wr != nullptr;) {
    batch.count = batch.range_count = 0;
    urma_status_t built = URMA_SUCCESS;
    for (; wr != nullptr && batch.has_room(); wr = wr->next) {
      built = add(batch, *wr, bound);
      if (built != URMA_SUCCESS) break;
      batch.from[batch.count++] = wr;
    }
    const size_t taken =
        batch.count > 0 ? jetty_->post(std::span(batch.works).first(batch.count)) : 0;
    if (taken < batch.count) {
      *bad = batch.from[taken];
      if (taken > 0) full_ = false;
      return refuse_full(call);
    }
    if (full_ && batch.count > 0) [[unlikely]]
      full_ = false;
    if (built != URMA_SUCCESS) {
      *bad = wr;
      return built;
    }
  }
  return URMA_SUCCESS;
}

// Programs post until a queue is full, so only the first post without room gives the reason.
[[gnu::noinline, gnu::cold]] urma_status_t Sender::refuse_full(const char* call) {
  if (std::exchange(full_, true)) return URMA_ENOMEM;
  return refuse(
      URMA_ENOMEM, often(call),
      "the queue is full: its depth is %u. Fix: poll its JFC and post again, or make it with a "
      "larger depth",
      options_.jfs.depth);
}

// Builds the next work of the batch.
urma_status_t Sender::add(Batch& batch, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound) {
  Work& work = *std::construct_at(&batch.works[batch.count]);
  if (const auto status = resolve(batch.call, wr, bound, work.target)) [[unlikely]]
    return status;
  work.tag_value = wr.user_ctx;
  work.group_hint = hint_of(wr);
  work.signalled = wr.flag.bs.complete_enable != 0;
  work.solicits = wr.flag.bs.solicited_enable != 0;
  work.copied = wr.flag.bs.inline_flag != 0;
  if (!has_valid_order(wr.flag, datagrams_)) [[unlikely]]
    return refuse_order(batch.call, wr.flag);
  work.order = static_cast<Order>(uint32_t{wr.flag.bs.place_order});
  if (ordered_ && work.order == Order::none) work.order = Order::relaxed;
  // The records of messages come in the order in which the target executes them.
  if (wr.flag.bs.comp_order != 0 && makes_a_record_there(wr.opcode)) work.order = Order::strong;
  if (wr.flag.bs.fence != 0) work.fence = Fence::reads;
  switch (wr.opcode) {
    case URMA_OPC_SEND_IMM:
      work.immediate(wr.send.imm_data);
      [[fallthrough]];
    case URMA_OPC_SEND:
      work.operation = Operation::send;
      return local(batch, wr.send.src, work.copied, work);
    case URMA_OPC_WRITE:
    case URMA_OPC_WRITE_IMM:
    case URMA_OPC_WRITE_NOTIFY:
    case URMA_OPC_READ:
      return to_memory(batch, wr, bound, work);
    case URMA_OPC_CAS:
    case URMA_OPC_SWAP:
    case URMA_OPC_FADD:
    case URMA_OPC_FSUB:
    case URMA_OPC_FAND:
    case URMA_OPC_FOR:
    case URMA_OPC_FXOR:
      return to_atomic(batch, wr, bound, work);
    default:
      return refuse(URMA_EINVAL, often(batch.call),
                    "the opcode 0x%x is not supported. Fix: use those that urma_opcode.h does not "
                    "exclude",
                    static_cast<unsigned>(wr.opcode));
  }
}

urma_status_t Sender::to_memory(Batch& batch, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
                                Work& work) {
  const bool reads = wr.opcode == URMA_OPC_READ;
  const urma_sg_t& there = reads ? wr.rw.src : wr.rw.dst;
  const urma_sg_t& here = reads ? wr.rw.dst : wr.rw.src;
  work.operation = reads ? Operation::read : Operation::write;
  // The last one of a write with notify is where that goes.
  const uint32_t notified = wr.opcode == URMA_OPC_WRITE_NOTIFY ? 1 : 0;
  if (there.num_sge > limits_.remote_ranges + notified) [[unlikely]] {
    return refuse_count(batch.call, there.num_sge - notified, "remote", "max_rsge",
                        limits_.remote_ranges);
  }
  if (there.sge == nullptr || there.num_sge <= notified ||
      !is_one_range({there.sge, there.num_sge - notified}) ||
      !remote(there.sge[0], work.target.peer, work.segment, work.offset)) {
    return refuse(
        URMA_EINVAL, often(batch.call),
        "a work needs one remote range in an imported segment of its target (several "
        "count as one if each begins where the earlier one ends), and a write with notify "
        "a further one. Fix: import the segment, and give it as tseg");
  }
  if (work.segment.peer != work.target.peer && !agree(batch.call, wr, bound, there.sge[0], work))
      [[unlikely]]
    return refuse_peer(batch.call);
  work.copied = work.copied && !reads;
  if (const auto status = local(batch, here, work.copied, work)) return status;
  if (wr.opcode == URMA_OPC_WRITE_IMM) {
    work.immediate(wr.rw.notify_data);
  } else if (wr.opcode == URMA_OPC_WRITE_NOTIFY) {
    RemoteSegment place;
    uint64_t at = 0;
    if (!remote(there.sge[there.num_sge - 1], work.target.peer, place, at)) {
      return refuse(URMA_EINVAL, often(batch.call),
                    "the last remote range of a write with notify is in no imported segment. "
                    "Fix: import one, and give it as tseg");
    }
    work.notify(place, at, wr.rw.notify_data);
  } else {
    work.target = {};
  }
  return URMA_SUCCESS;
}

urma_status_t Sender::to_atomic(Batch& batch, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
                                Work& work) {
  const bool compares = wr.opcode == URMA_OPC_CAS;
  const urma_sge_t* const there = compares ? wr.cas.dst : wr.faa.dst;
  const urma_sge_t* const here = compares ? wr.cas.src : wr.faa.src;
  const bool valid = there != nullptr && here != nullptr && is_own(*here, true, context_) &&
                     here->len >= there->len && there->len <= sizeof(uint64_t) &&
                     std::has_single_bit(there->len) &&
                     remote(*there, work.target.peer, work.segment, work.offset);
  if (!valid) {
    return refuse(URMA_EINVAL, often(batch.call),
                  "an atomic needs a remote word of 1, 2, 4 or 8 bytes in an imported segment, and "
                  "as many local bytes in a registered one. Fix: give both");
  }
  if (work.segment.peer != work.target.peer && !agree(batch.call, wr, bound, *there, work))
      [[unlikely]]
    return refuse_peer(batch.call);
  work.operation = Operation::atomic;
  work.atomic = atomic_of(wr.opcode);
  work.buffer = {reinterpret_cast<void*>(here->addr), there->len};
  work.target = {};
  work.copied = work.solicits = false;
  work.immediate_value = compares ? wr.cas.swap_data : wr.faa.operand;
  work.expected_value = compares ? wr.cas.cmp_data : 0;
  return URMA_SUCCESS;
}

Result<PeerId> Sender::peer(const Place& place) {
  const auto set = std::span(known_).subspan(place.uasid % known_sets * known_ways, known_ways);
  for (Known& known : set) {
    if (known.used && known.place == place) return known.peer.in(context_);
  }
  const uint32_t as_of = context_.losses();
  const auto found = context_.peer_again_at(place);
  if (!found) return found.error();
  Known& known = set[next_known_++ % known_ways];
  known.used = true;
  known.place = place;
  known.peer.set(place, *found, as_of);
  return *found;
}

// Finds out which Jetty a work is for. A program may write the target itself. A bound Jetty sends
// to its target, whatever a work names.
urma_status_t Sender::resolve(const char* call, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
                              RemoteJetty& out) {
  urma_target_jetty_t* const given = bound != nullptr ? bound : wr.tjetty;
  if (given == nullptr) return refuse_target(call);
  if (Target* const target = find<Target>(given)) {
    if (target->urma_ctx != &context_) return refuse_target(call);
    out = {.peer = target->peer.in(context_), .id = target->id, .token = target->token};
    return URMA_SUCCESS;
  }
  const auto found = peer(place_of(given->id));
  if (!found) return refuse(often(call), found.error());
  out = {.peer = *found, .id = id_of_target(*given), .token = {}};
  return URMA_SUCCESS;
}

bool Sender::remote(const urma_sge_t& range, PeerId peer, RemoteSegment& segment,
                    uint64_t& offset) {
  if (TargetSegment* const known = find<TargetSegment>(range.tseg)) {
    if (known->urma_ctx != &context_) return false;
    segment = known->remote;
    segment.peer = known->peer.in(context_);
    offset = range.addr - known->seg.ubva.va;
    return true;
  }
  if (range.tseg != nullptr || range.user_tseg == nullptr) return false;
  const urma_user_tseg_t& given = *range.user_tseg;
  segment = {.peer = peer,
             .address = range.addr,
             .bytes = range.len,
             .token_id = TokenId(given.token_id >> token_id_shift),
             .token = TokenValue(given.token_value.token),
             .rights = Rights::read | Rights::write | Rights::atomic,
             .atomics = AtomicDomain::processor};
  offset = 0;
  return true;
}

// A segment may have been imported when a restart was found, and the target before: both are looked
// up again.
[[gnu::noinline, gnu::cold]] bool Sender::agree(const char* call, const urma_jfs_wr_t& wr,
                                                urma_target_jetty_t* bound, const urma_sge_t& range,
                                                Work& work) {
  context_.note_loss();
  return resolve(call, wr, bound, work.target) == URMA_SUCCESS &&
         remote(range, work.target.peer, work.segment, work.offset) &&
         work.segment.peer == work.target.peer;
}

// The usual single range is written where it is read from: a copy of members that were just stored
// one by one waits until the processor has stored them.
urma_status_t Sender::local(Batch& batch, const urma_sg_t& list, bool is_inline, Work& work) {
  if (list.num_sge > limits_.ranges) [[unlikely]] {
    return refuse_count(batch.call, list.num_sge, "local", "max_sge", limits_.ranges);
  }
  if (list.num_sge > 0 && list.sge == nullptr) return refuse_memory(batch.call);
  Buffer* const first = list.num_sge == 1 ? &work.buffer : batch.ranges.data() + batch.range_count;
  const bool stores = work.operation == Operation::read;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < list.num_sge; ++i) {
    if (!is_inline && !is_own(list.sge[i], stores, context_)) return refuse_memory(batch.call);
    bytes += list.sge[i].len;
    first[i].data = reinterpret_cast<void*>(list.sge[i].addr);
    first[i].bytes = list.sge[i].len;
  }
  if (is_inline && bytes > limits_.inline_bytes) [[unlikely]] {
    return refuse_inline(batch.call, bytes, limits_.inline_bytes);
  }
  if (list.num_sge == 1) return URMA_SUCCESS;
  work.buffers = std::span(first, list.num_sge);
  batch.range_count += list.num_sge;
  return URMA_SUCCESS;
}

// ---- completions

void Sender::finish(const Completion& from, urma_cr_t& to) {
  const bool lost = from.status == Status::unknown || from.status == Status::peer_restarted ||
                    from.status == Status::peer_unreachable;
  if (lost) [[unlikely]]
    context_.note_loss();
  // The library says more of a work that was under way when its queue was flushed or suspended.
  const bool cut = from.status == Status::unknown || from.status == Status::receiver_not_ready;
  if (cut && has_ended_works()) to.status = URMA_CR_WR_FLUSH_ERR;
}

}  // namespace urma::umdk
