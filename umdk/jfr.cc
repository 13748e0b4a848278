// SPDX-License-Identifier: Apache-2.0
#include "umdk/jfr.h"

#include <utility>

#include "umdk/calls.h"
#include "umdk/checks.h"
#include "umdk/handle.h"
#include "umdk/log.h"
#include "umdk/segment.h"

namespace urma::umdk {
namespace {

// For a counter that one thread at a time writes: without a locked instruction.
void increment(std::atomic<uint32_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

Jfr::Jfr(Context& context, const urma_jfr_cfg_t& cfg) : urma_jfr_t{} {
  urma_ctx = &context;
  jfr_cfg = cfg;
  pthread_mutex_init(&event_mutex, nullptr);
  pthread_cond_init(&event_cond, nullptr);
  context.hold();
}

Jfr::~Jfr() {
  if (active()) deactivate();
  context().let_go();
  pthread_cond_destroy(&event_cond);
  pthread_mutex_destroy(&event_mutex);
}

TokenValue Jfr::token() const {
  return token_of(jfr_cfg.flag.bs.token_policy, jfr_cfg.token_value);
}

Result<void> Jfr::activate() {
  Jfc& jfc = *find<Jfc>(jfr_cfg.jfc);
  most_ranges_ = most_ranges_of(jfr_cfg);
  JfrOptions options{.receives = jfr_cfg.depth, .immediates_take_buffers = true, .token = token()};
  const std::lock_guard held(context().numbers());
  entries_ = {.count = 2 * jfr_cfg.depth};
  auto made = jfc.with_room(entries_, [&] {
    options.completions = entries_.queue;
    return context().with_number(jfr_cfg.id, true, [&](std::optional<JettyId> id) {
      options.id = id;
      return context().device.jfr(options);
    });
  });
  if (!made) return made.error();
  queue.emplace(std::move(*made));
  id_ = queue->id();
  jfr_id = context().id_of(id_);
  numbered_ = {.object = reinterpret_cast<uintptr_t>(static_cast<urma_jfr_t*>(this)),
               .receives = this};
  context().enter(id_, &numbered_);
  context().be_found(id_, *queue);
  urma_jfr_opt.is_actived = true;
  state_ = URMA_JFR_STATE_READY;
  return {};
}

void Jfr::deactivate() {
  Jfc& jfc = *find<Jfc>(jfr_cfg.jfc);
  const std::lock_guard held(context().numbers());
  queue.reset();
  jfc.forget(id_);
  context().forget(numbered_);
  context().enter(id_, nullptr);
  context().let_go_of(id_);
  jfc.let_go(entries_);
  urma_jfr_opt.is_actived = false;
  state_ = URMA_JFR_STATE_RESET;
}

urma_status_t Jfr::post(const char* call, urma_jfr_wr_t* list, urma_jfr_wr_t** bad) {
  const SpinLock::Held held(lock_, jfr_cfg.flag.bs.lock_free == 0);
  for (urma_jfr_wr_t* wr = list; wr != nullptr; wr = wr->next) {
    if (const auto status = post(call, *wr)) {
      *bad = wr;
      return status;
    }
  }
  return URMA_SUCCESS;
}

urma_status_t Jfr::post(const char* call, const urma_jfr_wr_t& wr) {
  const urma_sg_t& into = wr.src;
  if (into.num_sge > most_ranges_ || (into.sge == nullptr && into.num_sge > 0)) {
    return refuse(URMA_EINVAL, often(call),
                  "a receive has %u ranges, and its queue allows %u. Fix: make the queue with a "
                  "larger max_sge, and give the ranges",
                  into.num_sge, most_ranges_);
  }
  for (uint32_t i = 0; i < into.num_sge; ++i) {
    if (!is_own(into.sge[i], true, context())) {
      return refuse(URMA_EINVAL, often(call),
                    "a receive names memory that is not in a segment of this context, or was "
                    "read-only when it was registered. Fix: register it, and give its "
                    "urma_target_seg");
    }
    buffers_[i] = {reinterpret_cast<void*>(into.sge[i].addr), into.sge[i].len};
  }
  if (state() != URMA_JFR_STATE_READY) [[unlikely]]
    return end(call, wr);
  if (!queue->receive(std::span(buffers_).first(into.num_sge), wr.user_ctx)) {
    return refuse_full(call);
  }
  full_ = false;
  increment(posted_);
  return URMA_SUCCESS;
}

// As Sender::refuse_full.
[[gnu::noinline, gnu::cold]] urma_status_t Jfr::refuse_full(const char* call) {
  if (std::exchange(full_, true)) return URMA_ENOMEM;
  return refuse(
      URMA_ENOMEM, often(call),
      "the JFR is full: its depth is %u. Fix: poll its JFC and post again, or make it with a "
      "larger depth",
      jfr_cfg.depth);
}

// Ends a receive that is posted in the error state. It does not go to the library's queue, where
// messages to the Jetties that share the JFR would take it.
[[gnu::noinline, gnu::cold]] urma_status_t Jfr::end(const char* call, const urma_jfr_wr_t& wr) {
  if (state() == URMA_JFR_STATE_RESET) return refuse_reset(call);
  if (posted_.load() - taken_.load() >= jfr_cfg.depth) return refuse_full(call);
  urma_cr_t ended{};
  ended.status = URMA_CR_WR_FLUSH_ERR;
  ended.user_ctx = wr.user_ctx;
  ended.flag.bs.s_r = 1;
  ended.local_id = number(id_);
  ended.user_data = numbered_.object;
  return run(call, [&] {
    find<Jfc>(jfr_cfg.jfc)->append(ended);
    increment(posted_);
    return URMA_SUCCESS;
  });
}

void Jfr::note_taken() {
  increment(taken_);
  const uint32_t left =
      posted_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_relaxed);
  const uint32_t least = threshold_.load(std::memory_order_relaxed);
  if (least == 0 || left >= least || threshold_.exchange(0) == 0) return;
  urma_async_event_t low{};
  low.element.jfr = this;
  low.event_type = URMA_EVENT_JFR_LIMIT;
  context().raise(low);
}

urma_status_t Jfr::change(const char* call, urma_jfr_state_t state) {
  const urma_jfr_state_t before = this->state();
  if (before == state) return URMA_SUCCESS;
  if (const auto status = check_change(call, before, state)) return status;
  {
    // So a receive is posted before the flush, or ends because of the state.
    const SpinLock::Held held(lock_, true);
    state_ = state;
  }
  Result<void> applied;
  if (state == URMA_JFR_STATE_ERROR) applied = queue->flush();
  if (state == URMA_JFR_STATE_READY) applied = queue->reset();
  if (applied) return URMA_SUCCESS;
  state_ = before;
  return refuse(call, applied.error());
}

}  // namespace urma::umdk
