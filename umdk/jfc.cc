// SPDX-License-Identifier: Apache-2.0
#include "umdk/jfc.h"

#include <algorithm>
#include <bit>

#include "umdk/handle.h"
#include "umdk/jfce.h"
#include "umdk/jfr.h"
#include "umdk/log.h"
#include "umdk/sender.h"
#include "umdk/statuses.h"

namespace urma::umdk {
namespace {

// Bounds the entries that a queue has from the start: it becomes a queue of its own when a Jetty
// needs more.
constexpr uint32_t most_entries = 1 << 22;

}  // namespace

Jfc::Jfc(Context& context, const urma_jfc_cfg_t& cfg) : urma_jfc_t{} {
  urma_ctx = &context;
  jfc_cfg = cfg;
  jfc_id = {context.eid, context.uasid, context.next_jfc_number()};
  pthread_mutex_init(&event_mutex, nullptr);
  pthread_cond_init(&event_cond, nullptr);
  context.hold();
}

Jfc::~Jfc() {
  if (active()) deactivate();
  context().let_go();
  pthread_cond_destroy(&event_cond);
  pthread_mutex_destroy(&event_mutex);
}

Result<void> Jfc::activate() {
  events_ = find<Jfce>(jfc_cfg.jfce);
  if (auto first = add_queue(jfc_cfg.depth + spare_berths); !first) return first.error();
  if (events_ != nullptr) events_->attach(*this);  // last, as nothing undoes it
  urma_jfc_opt.is_actived = true;
  return {};
}

void Jfc::deactivate() {
  if (events_ != nullptr) events_->detach(*this);
  const SpinLock::Held held(lock_, true);
  queues_.clear();
  next_ = 0;
  set_aside_.clear();
  armed_ = false;
  urma_jfc_opt.is_actived = false;
}

// ---- queues

Result<void> Jfc::add_queue(uint32_t least) {
  const uint32_t depth = std::bit_ceil(std::min(least, most_entries));
  auto made = context().device.jfc(depth);
  if (!made) return made.error();
  if (events_ != nullptr) {
    if (auto added = events_->add(*made, *this); !added) return added.error();
  }
  auto queue = std::make_unique<Queue>(Queue{std::move(*made), depth});
  const SpinLock::Held held(lock_, true);
  queues_.push_back(std::move(queue));
  if (armed_) (void)queues_.back()->entries.arm(wake_);
  return {};
}

Result<void> Jfc::take_room(Entries& entries) {
  const auto fits = [&](const auto& queue) { return queue->depth - queue->used >= entries.count; };
  auto found = std::ranges::find_if(queues_, fits);
  if (found == queues_.end()) {
    // As deep as the others together, so that a poll of many Jetties visits few queues.
    uint32_t together = 0;
    for (const auto& queue : queues_) together = std::min(together + queue->depth, most_entries);
    if (auto added = add_queue(std::max(entries.count, together)); !added) return added;
    found = std::prev(queues_.end());
  }
  entries.queue = &(*found)->entries;
  (*found)->used += entries.count;
  users_.fetch_add(1);
  end_unused();
  return {};
}

void Jfc::let_go(const Entries& entries) {
  for (const auto& queue : queues_) {
    if (&queue->entries == entries.queue) queue->used -= entries.count;
  }
  end_unused();
  users_.fetch_sub(1);
}

// Ends the queues in which no object has entries, as each costs a look in every poll. One stays.
void Jfc::end_unused() {
  for (;;) {
    std::unique_ptr<Queue> ended;  // is destroyed without the lock
    const SpinLock::Held held(lock_, true);
    const auto found =
        std::ranges::find_if(queues_, [](const auto& queue) { return queue->used == 0; });
    if (found == queues_.end() || queues_.size() == 1) return;
    ended = std::move(*found);
    queues_.erase(found);
    next_ = 0;
  }
}

// ---- records

void Jfc::append(const urma_cr_t& record) {
  {
    const SpinLock::Held held(lock_, true);
    add_last(record);
  }
  if (armed_) events_->raise(*this);
}

// Names the sender of a message as the C API does. A queue knows a few peers, so that it asks the
// device once for each of them.
void Jfc::name_sender(const Completion& arrival, urma_jetty_id_t& to) {
  Known& known = known_[arrival.from.index % known_peers];
  if (!(known.peer == arrival.from)) {
    const auto place = context().device.endpoint(arrival.from);
    known = {arrival.from, place ? place_of(*place) : Place{}};
  }
  to.eid = known.place.eid;
  to.uasid = known.place.uasid;
  to.id = number(arrival.from_jetty);
}

bool Jfc::record(const Completion& from, urma_cr_t& to) {
  to = {};
  to.status = record_status(from);
  to.user_ctx = from.tag;
  to.completion_len = from.bytes;
  to.local_id = number(from.jetty);
  const Numbered* const what = context().at(from.jetty);
  if (what != nullptr) {
    to.flag.bs.jetty = what->jetty;
    to.user_data = what->object;
  }
  if (from.operation != Operation::receive) {
    if (what == nullptr || what->sender == nullptr) return false;
    what->sender->finish(from, to);  // first, as it looks at the state
    if (!from.ok() && what->sender->suspends(from)) {
      keep_or_log("the record of a suspension",
                  [&] { add_last(what->sender->ended(URMA_CR_WR_SUSPEND_DONE)); });
    }
    return true;
  }
  if (what != nullptr && what->receives != nullptr) what->receives->note_taken();
  to.flag.bs.s_r = 1;
  to.opcode = from.written          ? URMA_CR_OPC_WRITE_WITH_IMM
              : from.with_immediate ? URMA_CR_OPC_SEND_WITH_IMM
                                    : URMA_CR_OPC_SEND;
  to.imm_data = from.immediate;
  if (from.ok()) {
    name_sender(from, to.remote_id);
    to.tpn = channel_number(from.from);
  }
  return true;
}

// Takes what a queue holds, before it is polled.
void Jfc::set_aside(Queue& queue) {
  for (uint32_t count = 0; count < queue.depth; ++count) {
    auto& next = std::get<Completion>(set_aside_.emplace_back());
    const bool found = queue.entries.poll(std::span(&next, 1)) == 1;
    if (found && next.status != Status::closed && next.status != Status::forked) continue;
    set_aside_.pop_back();
    return;
  }
}

// Adds a record behind all completions, also if the program polls less than is completed.
void Jfc::add_last(const urma_cr_t& record) {
  for (const auto& queue : queues_) set_aside(*queue);
  set_aside_.emplace_back(record);
}

// The library's queues keep what was completed before, so all of it is taken.
void Jfc::forget(JettyId id) {
  const SpinLock::Held held(lock_, true);
  for (const auto& queue : queues_) set_aside(*queue);
  const Numbered* const what = context().at(id);
  std::erase_if(set_aside_, [&](const auto& one) {
    if (const auto* const added = std::get_if<urma_cr_t>(&one)) {
      return added->local_id == number(id);
    }
    const auto& completion = std::get<Completion>(one);
    if (completion.jetty != id) return false;
    if (completion.operation == Operation::receive && what != nullptr && what->jetty) {
      what->receives->note_taken();
    }
    return true;
  });
}

// Tells the object of a record that belongs to no completion that this record was polled.
void Jfc::note_polled(const urma_cr_t& added) const {
  const Numbered* const what = context().at(JettyId(added.local_id));
  if (what == nullptr) return;
  if (added.flag.bs.s_r != 0) {
    if (what->receives != nullptr) what->receives->note_taken();
  } else if (what->sender != nullptr && added.status == URMA_CR_WR_FLUSH_ERR_DONE) {
    what->sender->note_flush_polled();
  }
}

size_t Jfc::take_set_aside(std::span<urma_cr_t> out) {
  size_t count = 0;
  while (count < out.size() && !set_aside_.empty()) {
    const auto next = set_aside_.front();
    set_aside_.pop_front();
    if (const auto* const added = std::get_if<urma_cr_t>(&next)) {
      note_polled(*added);
      out[count++] = *added;
    } else if (record(std::get<Completion>(next), out[count])) {
      ++count;
    }
  }
  return count;
}

size_t Jfc::take(std::span<urma_cr_t> out) {
  size_t count = take_set_aside(out);
  for (size_t left = queues_.size(); left > 0 && count < out.size(); --left) {
    urma::Jfc& queue = queues_[next_]->entries;
    // The next poll begins with another queue, so that a program which polls single records does
    // not see those of one queue alone.
    if (++next_ == queues_.size()) next_ = 0;
    for (;;) {
      const size_t wanted = std::min(at_a_time, out.size() - count);
      const size_t taken = queue.poll(std::span(taken_).first(wanted));
      for (const Completion& one : std::span(taken_).first(taken)) {
        if (one.status == Status::closed || one.status == Status::forked) return count;
        if (record(one, out[count])) ++count;
      }
      // A failure that suspends a Jetty has set aside what the queues held.
      if (!set_aside_.empty()) [[unlikely]]
        count += take_set_aside(out.subspan(count));
      if (taken < wanted || count == out.size()) break;
    }
  }
  return count;
}

// The flag lock_free says that one thread polls, and others may still end queues meanwhile.
int Jfc::poll(std::span<urma_cr_t> out) {
  const SpinLock::Held held(lock_, true);
  const size_t count = take(out);
  polled_ = polled_ || count > 0;
  return static_cast<int>(count);
}

// Returns false if there are records.
bool Jfc::arm_queues() {
  bool empty = set_aside_.empty();
  for (const auto& queue : queues_) empty = queue->entries.arm(wake_) && empty;
  return empty;
}

// A queue may have raised the event for records that were polled before the last arm: the works
// that a flush ended and the record of its end raise one each, so do several queues, and a queue
// rings late if its engine was interrupted. Such an event is not taken, and the queues are armed
// again.
bool Jfc::take_armed() {
  if (!armed_) return false;
  const SpinLock::Held held(lock_, true);
  if (!polled_ && arm_queues()) return false;
  return armed_.exchange(false);
}

Result<void> Jfc::arm(bool solicited) {
  if (events_ == nullptr) {
    return Error{Status::invalid_argument,
                 "the JFC has no event channel. Fix: name a JFCE in its configuration"};
  }
  bool ready = false;
  {
    const SpinLock::Held held(lock_, true);
    armed_ = true;
    wake_ = solicited ? Wake::solicited : Wake::any;
    polled_ = false;
    ready = !arm_queues();
  }
  if (ready) events_->raise(*this);
  return {};
}

}  // namespace urma::umdk
