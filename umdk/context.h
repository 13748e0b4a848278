// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "umdk/descriptor.h"
#include "umdk/device_list.h"
#include "umdk/echo.h"
#include "umdk/handle.h"
#include "umdk/place.h"

namespace urma::umdk {

class Sender;
struct Jfr;

// An object that has a number on a device: a JFS, a JFR or a Jetty.
struct Numbered {
  uintptr_t object = 0;      // of the C API
  Sender* sender = nullptr;  // null for a JFR
  Jfr* receives = nullptr;   // null for a JFS
  bool jetty = false;
};

// Returns what the C API is told as the number of the channel to a peer: of a target, and of the
// records of its messages.
inline uint32_t channel_number(PeerId peer) { return peer.index + 1; }

// Returns the token of a group, or of a queue, that is configured so.
inline TokenValue token_of(uint32_t policy, const urma_token_t& token) {
  return TokenValue(policy == URMA_TOKEN_NONE ? 0 : token.token);
}

// An opened device. Programs may use it from any thread.
struct Context : urma_context_t {
  static constexpr uint64_t kind = 0x636f'6e74'6578;

  // Throws std::bad_alloc.
  Context(Device& from, uint32_t index, urma::Device opened);
  ~Context();

  // Returns whether the parent of this process made it, which is a child of fork(). The child has
  // none of the threads, and a lock of the context's objects may be held by one of them.
  bool is_inherited() const { return forks_before_ != forks.load(std::memory_order_relaxed); }

  // Returns the number of an object of this context.
  urma_jetty_id_t id_of(JettyId id) const { return {eid, uasid, number(id)}; }

  // Returns a number that no other JFC of this context has.
  uint32_t next_jfc_number() { return jfcs_.fetch_add(1) + 1; }

  // ---- What has which number. Readers take no lock.
  void enter(JettyId id, const Numbered* what) { by_id_[number(id)].store(what); }
  const Numbered* at(JettyId id) const { return by_id_[number(id)].load(); }
  // Held while an object gets its number, and while the number of a deleted one becomes free: a new
  // owner has no completions before the old one's are forgotten. A thread takes it before the lock
  // of a JFCE, that before the lock of a JFC, and that of the events last.
  std::mutex& numbers() { return numbers_mutex_; }

  // Returns the peer at a place. Errors: those of Device::import.
  Result<PeerId> peer_at(const Place& place);
  // Finds the process that answers pings at an EID. Blocks for up to 0.5 s. Errors: those of
  // Device::import.
  Result<RemoteJetty> ping_jetty_at(const urma_eid_t& at);

  // ---- References, which keep it open
  void hold() { ref.atomic_cnt.fetch_add(1); }
  void let_go() { ref.atomic_cnt.fetch_sub(1); }
  bool is_held() const { return ref.atomic_cnt.load() > 1; }

  // ---- Events that the C API makes itself
  // The event is lost, and an error logged, if the system has no memory.
  void raise(const urma_async_event_t& event) noexcept;
  // Takes the oldest event, of either source. Returns false if there is none.
  bool take(urma_async_event_t& event);
  // Drops the events of an object that is deleted, before its number becomes free. Throws
  // std::bad_alloc.
  void forget(const Numbered& what);

  // Keeps pages of the window that are behind memory of the program, and are not shared any more,
  // until the memory can have private pages.
  void keep(Segment&& pages);

  urma::Device device;
  std::unique_ptr<Echo> echo;  // null unless this process answers pings
  uint64_t handle = 0;

 private:
  void end_kept();
  bool take_from_device(urma_async_event_t& event);
  bool translate(const Event& event, urma_async_event_t& out) const;

  // The kernel provides the memory of those numbers that are used.
  struct FreeTable {
    void operator()(std::atomic<const Numbered*>* table) const;
  };
  std::unique_ptr<std::atomic<const Numbered*>[], FreeTable> by_id_;
  std::mutex numbers_mutex_;
  std::mutex kept_mutex_;
  std::vector<Segment> kept_;
  std::mutex events_mutex_;
  std::deque<urma_async_event_t> events_;
  OwnDescriptor raised_;  // an eventfd: readable while events_ is not empty
  OwnDescriptor both_;    // an epoll set of that and of the device's descriptor
  const uint32_t forks_before_;
  std::atomic<uint32_t> jfcs_{0};
};

}  // namespace urma::umdk
