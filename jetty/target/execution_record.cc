// SPDX-License-Identifier: Apache-2.0
#include "jetty/target/execution_record.h"

#include <algorithm>

namespace urma::jetty {

bool ExecutionRecord::see(Tassn tassn) {
  if (tassn > newest_) {
    const auto ahead = static_cast<uint64_t>(tassn - newest_);
    for (uint64_t i = 1; i <= std::min<uint64_t>(ahead, window); ++i) set(newest_ + i, Mark::none);
    newest_ = tassn;
  }
  return newest_ - tassn < static_cast<int64_t>(window);
}

ExecutionRecord::Mark ExecutionRecord::mark(Tassn tassn) const {
  const uint64_t at = tassn.value % window;
  return static_cast<Mark>(marks_[at / per_word] >> at % per_word * 2 & 3);
}

void ExecutionRecord::set(Tassn tassn, Mark mark) {
  const uint64_t at = tassn.value % window;
  const unsigned shift = at % per_word * 2;
  uint64_t& word = marks_[at / per_word];
  word = (word & ~(uint64_t{3} << shift)) | static_cast<uint64_t>(mark) << shift;
}

ExecutionRecord* ExecutionRecords::find(PeerId peer, uint32_t rc_id) {
  PeerState& state = peers_.at(peer);
  if (state.latest_record != PeerState::none && slab_.at(state.latest_record).rc_id == rc_id) {
    return &slab_.at(state.latest_record).record;
  }
  const uint32_t index = by_queue_.find(key(peer.index, rc_id));
  if (index == by_queue_.none) return nullptr;
  state.latest_record = index;
  return &slab_.at(index).record;
}

// Records are kept as long as their peer is known. With this limit, a peer that uses ever more
// queues exhausts only its own room.
bool ExecutionRecords::may_have_another(const PeerState& peer) const {
  return peer.records < share_ || peer.records - share_ < common_;
}

ExecutionRecord* ExecutionRecords::find_or_create(PeerId peer, uint32_t rc_id, uint32_t tassn) {
  if (ExecutionRecord* record = find(peer, rc_id)) return record;
  PeerState& state = peers_.at(peer);
  if (!may_have_another(state)) return nullptr;
  if (state.records++ >= share_) --common_;
  Entry* entry = slab_.create(ExecutionRecord(tassn), peer.index, rc_id, state.first_record);
  state.first_record = slab_.index_of(entry);
  by_queue_.insert(key(peer.index, rc_id), state.first_record);
  return &entry->record;
}

}  // namespace urma::jetty
