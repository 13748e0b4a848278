// SPDX-License-Identifier: Apache-2.0
#include "transport/packet_channel.h"

#include <algorithm>

#include "base/assert.h"

namespace urma::transport {
namespace {

// Packets of requests that may leave before waiting answers: a reply of the application should
// leave together with the answer to the request that caused it, and before it.
constexpr uint32_t requests_ahead = 8;

}  // namespace

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

PacketChannel::~PacketChannel() {
  for (OfferQueue& queue : offered_) queue.clear(shared_.offered);
}

bool PacketChannel::offer(SliceRef slice, Class traffic, uint32_t bytes) {
  if (!offered_[static_cast<unsigned>(traffic)].push(shared_.offered, {slice, bytes})) return false;
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

std::optional<Class> PacketChannel::next_class(uint32_t requests) const {
  const OfferQueue& answers = offered_[static_cast<unsigned>(Class::answer)];
  const OfferQueue& asked = offered_[static_cast<unsigned>(Class::request)];
  if (answers.empty()) return asked.empty() ? std::nullopt : std::optional(Class::request);
  if (asked.empty()) return Class::answer;
  const uint32_t packets = packets_of(asked.front(shared_.offered).bytes, facts_.packet_bytes);
  return requests + packets <= requests_ahead ? Class::request : Class::answer;
}

std::optional<uint32_t> PacketChannel::offered_payload() const {
  const std::optional<Class> from = next_class(0);
  if (!from) return std::nullopt;
  const OfferedSlice& next = offered_[static_cast<unsigned>(*from)].front(shared_.offered);
  return std::min(next.bytes, facts_.packet_bytes);
}

void PacketChannel::probe(Time now) {
  if (outstanding()) return;
  // Silence counts from the question.
  last_heard_ = std::max(last_heard_, now);
  keep_alive_due_ = true;
  shared_.active.add(index_);
}

}  // namespace urma::transport
