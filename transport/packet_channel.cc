// SPDX-License-Identifier: Apache-2.0
#include "transport/packet_channel.h"

#include <algorithm>

#include "base/assert.h"

namespace urma::transport {

PacketChannel::PacketChannel(uint32_t index, const ChannelEnds& ends, Pools& pools,
                             Counters& counters, Time now)
    : index_(index),
      peer_(ends.peer),
      local_(ends.local),
      remote_(ends.remote),
      to_(ends.to),
      facts_(ends.facts),
      shared_(pools),
      counters_(counters),
      last_heard_(now) {}

PacketChannel::~PacketChannel() { offered_.clear(shared_.offered); }

bool PacketChannel::offer(SliceRef slice, Class traffic, uint32_t bytes) {
  if (!offered_.push(shared_.offered, traffic, {slice, bytes})) return false;
  shared_.active.add(index_);
  return true;
}

void PacketChannel::expect_answers(int32_t change, Time now) {
  // Silence counts from when the peer has something to answer.
  if (awaited_ == 0 && change > 0 && !outstanding()) last_heard_ = std::max(last_heard_, now);
  URMA_ASSERT(change >= 0 || awaited_ >= static_cast<uint32_t>(-change),
              "no more answers are given up than were expected");
  awaited_ += static_cast<uint32_t>(change);
}

std::optional<uint32_t> PacketChannel::offered_payload() const {
  const std::optional<Class> from = next_class(0);
  if (!from) return std::nullopt;
  return std::min(offered_.next_of(shared_.offered, *from).bytes, facts_.packet_bytes);
}

void PacketChannel::probe(Time now) {
  if (outstanding()) return;
  // Silence counts from the question.
  last_heard_ = std::max(last_heard_, now);
  keep_alive_due_ = true;
  shared_.active.add(index_);
}

}  // namespace urma::transport
