// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "jetty/jfc.h"
#include "jetty/jfr.h"
#include "jetty/jfs.h"
#include "urma/core/work.h"

namespace urma::jetty {

// The part of one Jetty that the application and the engine share: its send queue, its receive
// queue, and the completion queue that it reports to. It does not know peers or packets. Owned
// jointly by the application's handle and by the engine's half of the Jetty (`JettyParts`); when
// the Jetty is destroyed, the completion queue owns it until its last completion has been polled.
class Queues {
 public:
  static constexpr uint16_t none = Leases::none;

  // The constructors and `with_own_jfc` throw std::bad_alloc.
  Queues(uint16_t berths, uint16_t receives, std::shared_ptr<Jfc> jfc, uint32_t inline_bytes = 0);
  // `jfc` outlives this object.
  Queues(uint16_t berths, uint16_t receives, Jfc& jfc, uint32_t inline_bytes = 0);
  // Makes queues with a completion queue of their own, in the same allocation, whose entries are
  // all reserved for them.
  static std::shared_ptr<Queues> with_own_jfc(uint16_t berths, uint16_t receives,
                                              uint32_t inline_bytes);
  static size_t bytes_with_own_jfc();

  // The sections of each class say which of its functions belong to which thread.
  Jfs& jfs() { return jfs_; }
  const Jfs& jfs() const { return jfs_; }
  Jfr& jfr() { return jfr_; }
  const Jfr& jfr() const { return jfr_; }
  Jfc& jfc() { return *jfc_; }

  // Returns false if nothing was ever posted. The engine asks this before it touches any other
  // memory of a Jetty.
  bool used() const { return jfs_.used() || jfr_.used(); }

  // ---- posting thread
  size_t post(std::span<const Work> works) { return jfs_.post(works); }
  size_t receive(std::span<const Buffer> buffers, uint64_t tag) { return jfr_.post(buffers, tag); }
  uint32_t vacant_berths() const { return jfs_.vacant(); }
  uint32_t vacant_receives() const { return jfr_.vacant(); }

  // ---- polling thread (through Jfc::poll)
  void polled(bool arrival, uint16_t lease) { arrival ? jfr_.polled(lease) : jfs_.polled(lease); }

  // ---- the completion queue, any thread
  static std::shared_ptr<Jfc> jfc_of(const std::shared_ptr<Queues>& queues) {
    if (!queues->has_own_jfc()) return queues->jfc_;
    return {queues, queues->jfc_.get()};
  }
  bool has_own_jfc() const { return jfc_.use_count() == 0; }
  // Called when the Jetty is destroyed: moves the reference to a shared completion queue to the
  // caller.
  std::shared_ptr<Jfc> let_go_of_jfc() { return std::move(jfc_); }
  // Returns how many entries of the JFC this Jetty may occupy at a time.
  uint32_t entries() const { return entries_of(jfs_.count(), jfr_.count()); }
  static uint32_t entries_of(uint32_t berths, uint32_t receives) { return berths + 2 * receives; }

  // ---- Jfc::retire

  // The Jetty is destroyed, but some of its completions have not been polled: until they have, the
  // queues own themselves.
  struct Retirement {
    Queues* next = nullptr;
    uint64_t until = 0;  // entries of the JFC before this one may belong to the queues
    std::shared_ptr<Queues> self;
  };
  // Begins the retirement, in memory that the send queue does not use any more; `end_retirement`
  // ends it.
  Retirement& retire();
  Retirement& retirement();
  std::shared_ptr<Queues> end_retirement();

 private:
  struct WithJfc;

  Jfs jfs_;
  Jfr jfr_;
  std::shared_ptr<Jfc> jfc_;
};

}  // namespace urma::jetty
