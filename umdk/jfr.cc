// SPDX-License-Identifier: Apache-2.0
#include "umdk/jfr.h"

#include <utility>

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
  if (jfr_cfg.id != 0) options.id = JettyId(jfr_cfg.id);
  const std::lock_guard held(context().numbers());
  entries_ = {.count = 2 * jfr_cfg.depth};
  auto made = jfc.with_room(entries_, [&] {
    options.completions = entries_.queue;
    return context().device.jfr(options);
  });
  if (!made) return made.error();
  queue.emplace(std::move(*made));
  id_ = queue->id();
  jfr_id = context().id_of(id_);
  numbered_ = {.object = reinterpret_cast<uintptr_t>(static_cast<urma_jfr_t*>(this)),
               .receives = this};
  context().enter(id_, &numbered_);
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
    if (!is_own(into.sge[i], context())) {
      return refuse(URMA_EINVAL, often(call),
                    "a receive names memory that is not in a segment of this "
                    "context. Fix: register it, and give its urma_target_seg");
    }
    buffers_[i] = {reinterpret_cast<void*>(into.sge[i].addr), into.sge[i].len};
  }
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

Result<void> Jfr::fail() {
  auto flushed = queue->flush();
  if (flushed) state_ = URMA_JFR_STATE_ERROR;
  return flushed;
}

Result<void> Jfr::restart() {
  auto restarted = queue->reset();
  if (restarted) state_ = URMA_JFR_STATE_READY;
  return restarted;
}

}  // namespace urma::umdk
