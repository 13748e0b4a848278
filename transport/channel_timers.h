// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "base/timer_wheel.h"
#include "transport/packet_channel.h"
#include "transport/peers.h"

namespace urma::transport {

// Decides when each channel is to be checked next: at its own deadline, or when it has been idle
// for so long that it is to be closed. It does not know what the check does. Only the thread that
// runs the engine calls it.
class ChannelTimers {
 public:
  // `idle_timeout`: zero if idle channels are never closed.
  ChannelTimers(const Settings& settings, Peers& peers, Duration idle_timeout)
      : self_(settings.eid), peers_(peers), idle_timeout_(idle_timeout), timers_(settings.peers) {}

  // Checks the channel at its next deadline, but not before `earliest`.
  void arm(const PacketChannel& channel, Time earliest = {}) {
    timers_.arm(channel.index(), std::max(deadline_of(channel), earliest));
  }
  // Checks the channel at its next deadline at the latest.
  template <class Kind>
  void arm_no_later(const Kind& channel) {
    timers_.arm_no_later(channel.index(), deadline_of(channel));
  }
  // Checks the channel at this time at the latest.
  void arm_no_later(const PacketChannel& channel, Time at) {
    timers_.arm_no_later(channel.index(), at);
  }
  void disarm(const PacketChannel& channel) { timers_.disarm(channel.index()); }

  // Writes the indices of channels whose deadline has passed to `due`. Returns how many.
  size_t take_due(Time now, std::span<uint32_t> due) { return timers_.poll(now, due); }
  Time next_deadline() const { return timers_.next_deadline(); }

  // Returns when the channel is to be closed because it is idle; `never` while anything needs it.
  Time closes_at(const PacketChannel& channel) const {
    if (idle_timeout_ == Duration{} || !channel.idle()) return never;
    const Peer& peer = *peers_.find(channel.peer());
    const bool busy = peer.opening || peer.closes > 0 || peer.answered_open;
    return busy || peer.eid == self_ ? never : channel.last_heard() + idle_timeout_;
  }
  // The device closes: from now on no channel is closed because it is idle.
  void keep_idle() { idle_timeout_ = {}; }

 private:
  // `Kind`: the class of the channel, if the caller knows it, so that the call is direct.
  template <class Kind>
  Time deadline_of(const Kind& channel) const {
    const Time next = channel.next_deadline();
    return idle_timeout_ == Duration{} ? next : std::min(next, closes_at(channel));
  }

  const Eid self_;
  Peers& peers_;
  Duration idle_timeout_;
  TimerWheel timers_;
};

}  // namespace urma::transport
