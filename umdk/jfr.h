// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "umdk/context.h"
#include "umdk/jfc.h"
#include "umdk/spin_lock.h"

namespace urma::umdk {

// A JFR: a receive queue, with a number of its own, that Jetties share.
struct Jfr : urma_jfr_t {
  static constexpr uint64_t kind = 0x6a66'72;

  Jfr(Context& context, const urma_jfr_cfg_t& cfg);
  ~Jfr();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }
  bool active() const { return urma_jfr_opt.is_actived; }

  // Makes and ends the library's queue. Errors: those of Device::jfr.
  Result<void> activate();
  void deactivate();
  // The token that senders to it show.
  TokenValue token() const;

  // Posts a list of receives. On an error `*bad` is the first that was not posted.
  urma_status_t post(const char* call, urma_jfr_wr_t* list, urma_jfr_wr_t** bad);
  // ERROR ends all receives, and those that are posted later; READY lets them be taken again.
  // Errors: EINVAL (UMDK's driver does not have this change).
  urma_status_t change(const char* call, urma_jfr_state_t state);
  urma_jfr_state_t state() const { return state_.load(std::memory_order_relaxed); }

  // Raises one event when fewer receives than this are posted; 0: none.
  void warn_below(uint32_t receives) { threshold_ = receives; }
  uint32_t threshold() const { return threshold_; }
  // A receive has completed. Called by the thread that polls.
  void note_taken();

  void hold() { users_.fetch_add(1); }
  void let_go() { users_.fetch_sub(1); }
  bool is_used() const { return users_.load() > 0; }

  std::optional<urma::Jfr> queue;

 private:
  urma_status_t post(const char* call, const urma_jfr_wr_t& wr);
  urma_status_t refuse_full(const char* call);
  urma_status_t end(const char* call, const urma_jfr_wr_t& wr);

  SpinLock lock_;
  uint32_t most_ranges_ = 0;  // of a receive
  bool full_ = false;         // no receive was posted since the JFR was found to be full
  std::array<Buffer, max_buffers> buffers_{};  // of the receive that is posted now
  JettyId id_{};
  Jfc::Entries entries_;
  Numbered numbered_;
  std::atomic<urma_jfr_state_t> state_{URMA_JFR_STATE_RESET};
  std::atomic<uint32_t> users_{0};
  std::atomic<uint32_t> posted_{0};  // written by the thread that posts
  std::atomic<uint32_t> taken_{0};   // written by the thread that polls
  std::atomic<uint32_t> threshold_{0};
};

}  // namespace urma::umdk
