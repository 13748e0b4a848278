// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/reliable_ends.h"

#include <algorithm>

namespace urma::drivers::verbs {
namespace {

constexpr int burst = 64;

}  // namespace

std::unique_ptr<ReliableEnds> ReliableEnds::make(const Adapter& adapter,
                                                 RegisteredSegments& segments,
                                                 ibv_comp_channel& signals,
                                                 const Settings& settings) {
  // Completions of an end that was destroyed may still lie there.
  CompletionQueue completions(
      ibv_create_cq(adapter.context(), 2 * most_transfers, nullptr, &signals, 0));
  if (!completions) return nullptr;
  std::unique_ptr<ReliableEnds> ends(
      new ReliableEnds(adapter, segments, std::move(completions), settings));
  return ends->descriptor() >= 0 ? std::move(ends) : nullptr;
}

ReliableEnds::ReliableEnds(const Adapter& adapter, RegisteredSegments& segments,
                           CompletionQueue completions, const Settings& settings)
    : settings_(settings),
      most_parts_(std::min(max_pieces, adapter.facts().most_pieces)),
      segments_(segments),
      completions_(std::move(completions)),
      maker_(std::make_unique<EndMaker>(adapter, *completions_)) {
  for (uint32_t i = most_transfers; i-- > 0;) free_transfers_.push_back(i);
  ended_.reserve(most_transfers);
  news_.reserve(2 * size_t{EndMaker::most});
  results_.reserve(2 * size_t{EndMaker::most});
}

// ---- ends

ReliableEnds::End* ReliableEnds::find(Handle end) {
  const bool known = end.index < ends_.size() && ends_[end.index].generation == end.generation &&
                     ends_[end.index].state != State::none;
  return known ? &ends_[end.index] : nullptr;
}

Handle ReliableEnds::make(bool opens) {
  const auto free = std::ranges::find(ends_, State::none, &End::state);
  if (free == ends_.end() || broken_) return {};
  const auto index = static_cast<uint32_t>(free - ends_.begin());
  *free = {.generation = free->generation + 1, .state = State::new_};
  maker_->make(index, opens);
  return handle_of(index);
}

void ReliableEnds::connect(Handle end, const Description& other, const Eid& address) {
  if (find(end) == nullptr) return;
  if (!ReliableQueue::is_end_at(other, address)) return fail(end.index);
  maker_->connect(end.index, other);
}

// An end that is destroyed is not read or written any longer, whatever was in it.
void ReliableEnds::stop(Handle handle) {
  End* const end = find(handle);
  if (end == nullptr || end->state == State::stopping) return;
  end->state = State::stopping;
  maker_->destroy(handle.index);
}

void ReliableEnds::fail(uint32_t end) {
  if (ends_[end].state != State::new_ && ends_[end].state != State::connected) return;
  ends_[end].state = State::failed;
  news_.push_back({.end = handle_of(end), .what = News::What::failed});
}

void ReliableEnds::fail_all() {
  for (uint32_t i = 0; i < ends_.size(); ++i) fail(i);
}

void ReliableEnds::take_results() {
  maker_->take(results_);
  for (const EndMaker::Result& one : results_) {
    using What = EndMaker::Result::What;
    End& end = ends_[one.end];
    if (one.what == What::destroyed) {
      destroyed(one.end);
    } else if (end.state != State::new_) {
      continue;  // it was stopped meanwhile
    } else if (one.what == What::failed) {
      fail(one.end);
    } else {
      const bool made = one.what == What::made;
      if (!made) end.state = State::connected;
      news_.push_back({.end = handle_of(one.end),
                       .what = made ? News::What::made : News::What::connected,
                       .own = one.own});
    }
  }
  results_.clear();
}

void ReliableEnds::destroyed(uint32_t end) {
  if (ends_[end].transfers > 0) {
    // Its completions leave the queue, which otherwise might have no room for those of others.
    while (take_completions()) continue;
    for (Transfer& one : transfers_) {
      if (one.end == end) finish(one, false);
    }
  }
  news_.push_back({.end = handle_of(end), .what = News::What::stopped});
  ends_[end].state = State::none;
}

// Transfers that were in an end that has stopped are reported before.
size_t ReliableEnds::news(std::span<News> out) {
  if (!ended_.empty()) return 0;
  const size_t count = std::min(out.size(), news_.size());
  const auto end = news_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(news_.begin(), end, out.begin());
  news_.erase(news_.begin(), end);
  return count;
}

// ---- transfers

// Writes the parts of the transfer's memory, and returns how many; 0 if the adapter may not access
// all of it, or there are too many.
unsigned ReliableEnds::gather(const Task& task, std::span<ibv_sge> parts) const {
  uint32_t skip = task.from;
  uint32_t left = task.bytes;
  unsigned count = 0;
  for (const Piece& piece : task.pieces) {
    if (skip >= piece.bytes) {
      skip -= piece.bytes;
      continue;
    }
    if (left == 0) break;
    const std::byte* const data = piece.data + skip;
    const uint32_t bytes = std::min(piece.bytes - skip, left);
    const auto key = segments_.key_of(data, bytes, task.read);
    if (!key || count == parts.size()) return 0;
    parts[count++] = {reinterpret_cast<uintptr_t>(data), bytes, *key};
    left -= bytes;
    skip = 0;
  }
  return left == 0 ? count : 0;
}

RemoteAccess::Begun ReliableEnds::begin(Handle handle, const Task& task) {
  End* const end = find(handle);
  if (end == nullptr || end->state != State::connected) return Begun::refused;
  if (end->transfers == ReliableQueue::depth) return Begun::full;
  if (free_transfers_.empty()) return Begun::refused;
  std::array<ibv_sge, max_pieces> parts;
  const unsigned count = gather(task, std::span(parts).first(most_parts_));
  if (count == 0) return Begun::refused;
  const uint32_t index = free_transfers_.back();
  Transfer& transfer = transfers_[index];
  ibv_send_wr work{};
  work.wr_id = uint64_t{++transfer.generation} << 32 | index;
  work.sg_list = parts.data();
  work.num_sge = static_cast<int>(count);
  work.opcode = task.read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma = {.remote_addr = task.there.address, .rkey = task.there.key};
  if (maker_->at(handle.index).post(work) != 0) {
    fail(handle.index);
    return Begun::refused;
  }
  free_transfers_.pop_back();
  transfer.end = handle.index;
  transfer.number = task.number;
  ++end->transfers;
  return Begun::begun;
}

void ReliableEnds::finish(Transfer& transfer, bool done) {
  ended_.push_back({.number = transfer.number, .done = done});
  --ends_[transfer.end].transfers;
  transfer.end = UINT32_MAX;
  free_transfers_.push_back(static_cast<uint32_t>(&transfer - transfers_.data()));
}

// Returns whether there may be more completions. A transfer with an error ends when its end has
// been destroyed: until then the adapter may still access the memory of others of that end.
bool ReliableEnds::take_completions() {
  std::array<ibv_wc, burst> completions;
  const int count = ibv_poll_cq(completions_.get(), burst, completions.data());
  if (count < 0) {
    broken_ = true;
    fail_all();
  }
  for (int i = 0; i < count; ++i) {
    const ibv_wc& one = completions[static_cast<size_t>(i)];
    Transfer& transfer = transfers_[static_cast<uint32_t>(one.wr_id) % most_transfers];
    if (transfer.end == UINT32_MAX || transfer.generation != one.wr_id >> 32) continue;
    if (one.status == IBV_WC_SUCCESS) {
      finish(transfer, true);
    } else {
      fail(transfer.end);
    }
  }
  return count == burst;
}

size_t ReliableEnds::ended(std::span<Ended> out) {
  if (ended_.empty()) {
    // Completions of ends that were destroyed may be before those of others.
    while (ended_.empty() && free_transfers_.size() < most_transfers && take_completions())
      continue;
    take_results();
  }
  const size_t count = std::min(out.size(), ended_.size());
  const auto end = ended_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(ended_.begin(), end, out.begin());
  ended_.erase(ended_.begin(), end);
  return count;
}

}  // namespace urma::drivers::verbs
