// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "umdk/checks.h"
#include "umdk/context.h"
#include "umdk/found_peer.h"
#include "umdk/jfc.h"
#include "umdk/spin_lock.h"

namespace urma::umdk {

struct Jfr;

// Common to JFS and Jetty: a Jetty of the library, to which works are posted.
class Sender {
 public:
  struct Options {
    urma_jfs_cfg_t jfs;
    Jfr* receives = nullptr;  // null for a JFS
    uint32_t id = 0;          // 0: the device chooses
    uintptr_t object = 0;     // of the C API
  };

  Sender(Context& context, const Options& options) : context_(context), options_(options) {}

  // Makes and ends the library's Jetty. Errors: those of Device::jetty.
  Result<void> activate();
  void deactivate();
  JettyId id() const { return id_; }
  // The library's Jetty, of an active object.
  const urma::Jetty& queue() const { return *jetty_; }

  // Posts a list of works. `bound`: the target of works that name none, or null. On an error
  // `*bad` is the first work that was not posted.
  urma_status_t post(const char* call, urma_jfs_wr_t* list, urma_target_jetty_t* bound,
                     urma_jfs_wr_t** bad);
  // ERROR and SUSPENDED end all works, and then make a record that says so; READY lets works run
  // again. Errors: EINVAL (UMDK's driver does not have this change).
  urma_status_t change(const char* call, urma_jetty_state_t state);
  urma_jetty_state_t state() const { return state_.load(std::memory_order_relaxed); }

  // Returns the record that ends a flush or a suspension.
  urma_cr_t ended(urma_cr_status_t how) const;
  // Returns whether this failure suspends the Jetty, as its flag error_suspend asks. Called by the
  // thread that polls.
  bool suspends(const Completion& failed);
  // The record that ends a flush was polled. Called by the thread that polls.
  void note_flush_polled() { flushes_unpolled_.fetch_sub(1); }
  // Completes the record of a work of this Jetty. Called by the thread that polls.
  void finish(const Completion& from, urma_cr_t& to);

 private:
  struct Batch;
  // A peer to which the program sends by targets that it wrote itself. Looking it up allocates
  // memory.
  struct Known {
    bool used = false;
    Place place;
    FoundPeer peer;
  };
  static constexpr size_t known_sets = 16;
  static constexpr size_t known_ways = 4;

  urma_status_t refuse_full(const char* call);
  urma_status_t add(Batch& batch, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound);
  urma_status_t to_memory(Batch& batch, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
                          Work& work);
  urma_status_t to_atomic(Batch& batch, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
                          Work& work);
  // Returns whether the target and the segment of a work are of one process after all.
  bool agree(const char* call, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
             const urma_sge_t& range, Work& work);
  urma_status_t resolve(const char* call, const urma_jfs_wr_t& wr, urma_target_jetty_t* bound,
                        RemoteJetty& out);
  bool remote(const urma_sge_t& range, PeerId peer, RemoteSegment& segment, uint64_t& offset);
  urma_status_t local(Batch& batch, const urma_sg_t& list, bool is_inline, Work& work);
  Result<void> apply(urma_jetty_state_t state);
  // Returns whether works that are polled now were ended by a change of the state.
  bool has_ended_works() const;
  Result<PeerId> peer(const Place& place);

  Context& context_;
  const Options options_;
  SpinLock lock_;
  std::optional<urma::Jetty> jetty_;
  JettyId id_{};
  Jfc::Entries entries_;
  Numbered numbered_;
  std::atomic<urma_jetty_state_t> state_{URMA_JETTY_STATE_RESET};
  // How many records that end a flush were not polled yet. While there are any, the records that
  // are polled are of works that were posted before the flush, even if the queue is ready again.
  std::atomic<int32_t> flushes_unpolled_{0};
  WorkLimits limits_{};
  bool ordered_ = false;    // each work waits for the earlier ones
  bool datagrams_ = false;  // URMA_TM_UM
  bool full_ = false;       // no work was posted since the queue was found to be full
  std::array<Known, known_sets * known_ways> known_{};
  size_t next_known_ = 0;
};

}  // namespace urma::umdk
