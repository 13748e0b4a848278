// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "urma/core/balance.h"
#include "urma/core/event.h"
#include "urma/core/ids.h"
#include "urma/core/log.h"
#include "urma/core/order.h"
#include "urma/core/retransmission.h"
#include "urma/core/time.h"

namespace urma {

// The threads that run a device: these send and receive its packets, and execute works of peers.
enum class Threads : uint8_t {
  // The application's threads run the device while they poll or wait, which has the lowest latency.
  // A service thread of the device takes over 0.2 to 3.2 ms after the last poll, and sleeps while
  // there is nothing to do.
  automatic,
  // The service thread of the device always runs it.
  served,
  // Only the application's threads run the device, while they poll or wait. While no thread polls
  // or waits, peers get no answers, and time-outs of this library do not expire.
  inlined,
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(Threads threads) { return threads <= Threads::inlined; }

// The completions that make the descriptor of an armed queue readable (Jetty::arm). Other values
// count as `any`.
enum class Wake : uint8_t {
  any,        // each completion
  solicited,  // arrivals that their poster marked (Work::solicited), and all failures
};

// How many objects of each kind a device can have. The limits bound its memory: open reserves
// address space for them, which takes no memory until it is used.
struct Limits {
  uint32_t jetties = 1024;   // Jetties and Jfrs: 1 to 1 000 000
  uint32_t peers = 1024;     // other devices, and each of their engines: 1 to 65 536
  uint32_t segments = 4096;  // 1 to 2^20
};

// Options of urma::open.
struct DeviceOptions {
  // The threads that run the device.
  Threads threads = Threads::automatic;
  // A work without progress for this long ends: as `unknown` if a part of it was sent, otherwise as
  // `peer_unreachable` or `flushed`. 10 ms to 1 h. Measured in the device's own time: if the device
  // is run later than it asked for (the process was stopped, or the application of an inlined
  // device does not poll), 100 ms of each such gap count. If no gap is longer than L, a work ends
  // at the latest after max(1, L / 100 ms) times this duration.
  Duration operation_timeout = std::chrono::seconds(2);
  // A channel without traffic for this long is closed, if the peer does not need it either; the
  // next work makes a new channel, which takes two round trips. 1 ms to 24 h, or zero, which never
  // closes a channel. Channels of a window are not closed, since they take no resources there.
  Duration idle_timeout = std::chrono::minutes(5);
  // The name of the congestion control. If empty, the device uses the one that the user chose
  // (URMA_CONGESTION), or the default, which urma_info shows.
  std::string congestion{};
  // How this end detects and retransmits lost packets. If empty, the device uses the mode that the
  // device string names (`retransmit=`) or, without that option, the mode that suits the medium:
  // sel_rack if packets can be lost.
  std::optional<Retransmission> retransmission{};
  // How traffic is spread if a peer is reached over several paths. If empty, the device string
  // decides (`paths(balance=packet):`); without that option, it is Balance::slice. Whether switches
  // may spread the packets of a channel over paths of theirs is decided by the device string alone
  // (`link(SWITCH,balance=packet):`).
  std::optional<Balance> balance{};
  // How many objects the device can have.
  Limits limits{};
  // Whether other processes of this user can read the device's counters (urma_stat,
  // urma/observe.hpp), from a file in /dev/shm that exists until close. Simulated devices have no
  // such file.
  bool observable = true;
  // Whether the device times the stages of its work, for Device::profile. A post or a poll then
  // takes about 20 ns more, and a pass 20 to 100 ns.
  bool profile = false;
  // The kinds of events that the device has: all by default, otherwise EventKind::closed and those
  // that are listed here. Device::events does not return others, and they do not make
  // Device::events_fd readable. If EventKind::missed is not listed, events for which there is no
  // room are dropped without a notice.
  EventKinds events{};
  // The log of the device: its callback and limits. By default the device does not log.
  LogOptions log{};
};

// Options of Device::import.
struct ImportOptions {
  // How long the import waits for a name that no process has published yet; it must not be
  // negative. With zero, the import looks for the name once.
  Duration limit = std::chrono::seconds(2);
  // How this device retransmits what any of its Jetties sends to that process. If empty, the mode
  // stays as it is; initially it is that of the device (DeviceOptions::retransmission).
  std::optional<Retransmission> retransmission{};
};

class Jfc;
class Jfr;

// Options of Device::jetty.
struct JettyOptions {
  // How many works may be outstanding, from post until the completion is polled: 0 to 32 768. Not 0
  // if `receives` is 0 and `receives_from` is null.
  uint32_t berths = 128;
  // How many messages may be expected or waiting (posted buffers, and arrivals that are not polled
  // yet), and in addition how many immediates may be waiting: 0 to 32 768. With 0, and without
  // receives_from, sends and writes with an immediate to this Jetty fail as `remote_unsupported`.
  uint32_t receives = 0;
  // Whether a write with an immediate takes a buffer that was posted (UB 7.3): it completes
  // with the tag of that buffer, in which it stores nothing, and waits while none is posted. If
  // false, it takes no buffer, and its completion has the tag 0.
  bool immediates_take_buffers = false;
  // The room in each berth for works with inline data (Work::inline_data): 0 to max_inline_bytes.
  uint32_t inline_bytes = 64;
  // As DeviceOptions::operation_timeout, for works of this Jetty: 10 ms to 1 h, or zero to use the
  // value of the device.
  Duration operation_timeout{};
  // For how long a work is retried while its target answers that no receive slot is vacant; then
  // the work ends as `receiver_not_ready`. Zero or more; by default without limit.
  Duration receiver_timeout = Duration::max();
  // The share of this Jetty when several Jetties of the device send to one peer: 1 to 16, in
  // proportion to the weights of the others.
  uint32_t weight = 1;
  // Whether packets of this Jetty leave before those of usual Jetties of the device to the same
  // peer. Urgent Jetties share with one another by weight. While urgent Jetties send without a
  // break, usual ones keep a part of the channel, which grows with the number of their waiting
  // works, up to a half. Urgency has no effect on works that need no packets (on mapped memory, or
  // carried by an RDMA adapter), on datagrams, and on the data that a peer sends in answer to
  // reads.
  bool urgent = false;
  // The side that keeps strong works in order (UB: service mode; docs/reliability.md).
  ServiceMode mode = ServiceMode::automatic;
  // Whether relaxed works also wait for one another. Relaxed and strong works then form one chain,
  // which is executed in the order in which it was posted. Not with ServiceMode::unreliable.
  bool chain = false;
  // Whether works complete in the order in which they were posted.
  bool in_order = false;
  // Whether a work that fails suspends the Jetty: then all works of the Jetty end, and no work
  // begins until `Jetty::reset`, while messages are still received. If false, a failed work does
  // not affect other works.
  bool suspend_on_error = false;
  // The queue in which works and arrivals complete. If null, the Jetty has a completion queue of
  // its own.
  Jfc* completions = nullptr;
  // The receive queue whose buffers arriving messages take, shared with other Jetties; then
  // `receives` must be 0. Arrivals complete in the queue of that Jfr; only works complete in the
  // Jetty's own queue.
  const Jfr* receives_from = nullptr;
  // The number of the Jetty: 2 to 1048575, in use by no other Jetty of the device. If empty, the
  // device draws one from 1024 on, so only a smaller one is certain to be free. A peer that knows
  // the number and the token can write the descriptor itself, before the Jetty exists. Not with
  // engines=.
  std::optional<JettyId> id{};
  // The token of the Jetty. If empty, the device draws one at random.
  std::optional<TokenValue> token{};
};

// Options of Device::jfr.
struct JfrOptions {
  // As JettyOptions::receives, for all Jetties that use this queue together: 1 to 32 768.
  uint32_t receives = 128;
  // The queue in which arrivals complete. If null, the Jfr has a completion queue of its own.
  Jfc* completions = nullptr;
  // These are as in JettyOptions.
  bool immediates_take_buffers = false;
  std::optional<JettyId> id{};        // the number of the Jfr
  std::optional<TokenValue> token{};  // and its token
};

// How a Jetty group chooses the member that receives a message (UB 6.1). Members that were
// destroyed, or are in the error state, are passed over.
enum class GroupPolicy : uint8_t {
  round_robin,    // each in turn, of those that can receive at once
  hint,           // member number `hint` modulo the number of members (Work::hint)
  most_receives,  // the one that can receive most messages now
};
// Returns whether the enumeration has this value, since any number can be cast to an enumeration.
constexpr bool is_valid(GroupPolicy policy) { return policy <= GroupPolicy::most_receives; }

inline constexpr uint32_t max_group_members = 32;  // the most members of a Jetty group

// Options of Device::jetty_group.
struct JettyGroupOptions {
  // How the group chooses the member that receives a message.
  GroupPolicy policy = GroupPolicy::round_robin;
  // These are as in JettyOptions. Messages to the group have the group's token, not that of a
  // member.
  std::optional<JettyId> id{};        // the number of the group
  std::optional<TokenValue> token{};  // and its token
};

// The processes that may import a published name, in addition to those of this user on this host.
struct Audience {
  bool anyone = false;      // every process that can reach the device
  std::vector<Eid> eids{};  // devices with these EIDs

  // Returns whether a device with this EID may import the name.
  bool admits(const Eid& eid) const {
    return anyone || std::find(eids.begin(), eids.end(), eid) != eids.end();
  }
};
// Returns an Audience of the processes of this user on this host alone.
inline Audience this_user() { return {}; }
// Returns an Audience of every process that can reach the device.
inline Audience everyone() { return {.anyone = true, .eids = {}}; }

}  // namespace urma
