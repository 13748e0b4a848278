// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "umdk/context.h"
#include "umdk/spin_lock.h"

namespace urma::umdk {

struct Jfce;

// A JFC. UMDK accepts any number of Jetties for one, and lets it overflow; the library's queues
// cannot overflow, as each Jetty reserves its entries. So a JFC consists of as many queues as its
// Jetties need, which `poll` takes in turn.
struct Jfc : urma_jfc_t {
  static constexpr uint64_t kind = 0x6a66'63;

  // The entries that an object has in one of the queues.
  struct Entries {
    uint32_t count = 0;
    urma::Jfc* queue = nullptr;
  };

  Jfc(Context& context, const urma_jfc_cfg_t& cfg);
  ~Jfc();
  Context& context() const { return *static_cast<Context*>(urma_ctx); }

  // Makes and ends the queues (the two steps of active and deactive).
  Result<void> activate();
  void deactivate();
  bool active() const { return urma_jfc_opt.is_actived; }

  // Makes an object that completes here, by `make`, and returns what that returns. Before, sets the
  // queue of `entries`, in which that many are free; if no queue has them, there is a further one.
  // Both functions are called with Context::numbers held.
  template <class Make>
  auto with_room(Entries& entries, Make&& make) {
    const auto found = take_room(entries);
    auto made = found ? make() : decltype(make())(found.error());
    if (found && !made) let_go(entries);
    return made;
  }
  // An object has ended, and `forget` has dropped its records. Its queue ends if it was the last.
  void let_go(const Entries& entries);
  bool is_used() const { return users_.load() > 0; }

  // Writes completion records, and returns how many. Never blocks.
  int poll(std::span<urma_cr_t> out);
  // Drops the records of an object whose queue has ended. After this no poll uses the object, and
  // another one may get its number. Called with Context::numbers held. Throws std::bad_alloc, and
  // may then be called again.
  void forget(JettyId id);
  // Appends a record that belongs to no completion, behind those that are there now. Throws
  // std::bad_alloc.
  void append(const urma_cr_t& record);
  // Asks for one event. Errors: invalid_argument (this JFC was made without an event channel).
  Result<void> arm(bool solicited);
  // Returns whether an event was asked for that was not taken yet and has a cause, and takes it.
  // Several queues may each raise it; any thread calls this.
  bool take_armed();

 private:
  struct Queue {
    urma::Jfc entries;
    uint32_t depth;
    uint32_t used = 0;  // entries that objects have; changed with Context::numbers held
  };

  size_t take(std::span<urma_cr_t> out);
  size_t take_set_aside(std::span<urma_cr_t> out);
  void set_aside(Queue& queue);
  void add_last(const urma_cr_t& record);
  void note_polled(const urma_cr_t& added) const;
  bool arm_queues();
  bool record(const Completion& from, urma_cr_t& to);
  void name_sender(const Completion& arrival, urma_jetty_id_t& to);
  Result<void> take_room(Entries& entries);
  Result<void> add_queue(uint32_t least);
  void end_unused();

  struct Known {
    PeerId peer;
    Place place;
  };
  static constexpr size_t known_peers = 64;
  static constexpr size_t at_a_time = 16;

  SpinLock lock_;
  Jfce* events_ = nullptr;
  // One or more. Changed with Context::numbers and lock_ held.
  std::vector<std::unique_ptr<Queue>> queues_;
  size_t next_ = 0;  // the queue with which the next poll begins
  // Older than those in the queues: completions, and records that belong to no work.
  std::deque<std::variant<Completion, urma_cr_t>> set_aside_;
  std::array<Known, known_peers> known_{};
  std::array<Completion, at_a_time> taken_{};  // here, because initialising it takes long
  std::atomic<bool> armed_{false};
  Wake wake_ = Wake::any;
  bool polled_ = false;  // whether records were polled since the last arm
  std::atomic<uint32_t> users_{0};
};

}  // namespace urma::umdk
