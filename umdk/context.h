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
#include "umdk/jetty_name.h"
#include "umdk/numbers.h"
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

  // Makes an object by `make(std::optional<JettyId>)`, and returns what that returns. `chosen`: the
  // number that the program has chosen, or 0. `tells`: whether peers send to it, so that an
  // automatic number should tell the process. Called with `numbers` held, as are the next two
  // functions. Errors: those of Numbers::take.
  template <class Make>
  auto with_number(uint32_t chosen, bool tells, Make&& make)
      -> decltype(make(std::optional<JettyId>())) {
    if (chosen != 0) return make(std::optional(JettyId(chosen)));
    if (draws_) return make(std::optional<JettyId>());
    const Result<JettyId> id = own_numbers_.take(tells);
    if (!id) return id.error();
    auto made = make(std::optional(*id));
    if (made) return made;
    own_numbers_.give_back(*id);
    if (made.status() != Status::unsupported) return made;
    draws_ = true;
    return make(std::optional<JettyId>());
  }
  // The object of this number has ended.
  void let_go_of(JettyId id);
  // Publishes a Jetty, JFR or group, if its number does not tell peers in the window where it is.
  template <class Object>
  void be_found(JettyId id, const Object& object) noexcept {
    if (!needs_name(id)) return;
    keep_or_log("the name of a number", [&] {
      const auto alone = publish_alone(device, JettyName(id), object);
      if (!alone) tell_unnamed(id, alone.error());
    });
  }

  // Returns the peer at a place. Errors: those of Device::import.
  Result<PeerId> peer_at(const Place& place);
  // The same, for the data path. Also errors: no_resources.
  Result<PeerId> peer_again_at(const Place& place) noexcept;
  // Counts the works that have shown that another process may be at a place now, as after a
  // restart.
  uint32_t losses() const { return losses_.load(std::memory_order_relaxed); }
  void note_loss() { losses_.fetch_add(1, std::memory_order_relaxed); }
  // Finds the process that answers pings at an EID. Blocks for up to 0.5 s. Errors: those of
  // Device::import.
  Result<PeerId> pinged_at(const urma_eid_t& at);

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
  bool needs_name(JettyId id) const;
  static void tell_unnamed(JettyId id, const Error& why);
  // Errors: invalid_argument (the EID is that of a window, but not of this one).
  Result<void> is_own_window(const urma_eid_t& at) const;
  Result<PeerId> named_at(const Place& place);
  bool take_from_device(urma_async_event_t& event);
  bool translate(const Event& event, urma_async_event_t& out) const;

  // The kernel provides the memory of those numbers that are used.
  struct FreeTable {
    void operator()(std::atomic<const Numbered*>* table) const;
  };
  std::unique_ptr<std::atomic<const Numbered*>[], FreeTable> by_id_;
  std::mutex numbers_mutex_;
  Numbers own_numbers_;
  bool draws_ = false;  // the device draws numbers, because it has several engines
  std::mutex kept_mutex_;
  std::vector<Segment> kept_;
  std::mutex events_mutex_;
  std::deque<urma_async_event_t> events_;
  OwnDescriptor raised_;  // an eventfd: readable while events_ is not empty
  OwnDescriptor both_;    // an epoll set of that and of the device's descriptor
  const uint32_t forks_before_;
  std::atomic<uint32_t> losses_{0};
  std::atomic<uint32_t> jfcs_{0};
};

}  // namespace urma::umdk
