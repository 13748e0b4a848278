#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "urma/core/balance.h"
#include "urma/core/ids.h"
#include "urma/core/log.h"
#include "urma/core/order.h"
#include "urma/core/retransmission.h"
#include "urma/core/time.h"

namespace urma {

// Whose thread runs a device.
enum class Threads : uint8_t {
  // The application's threads while they poll or wait, which is the shortest way; a thread of the
  // device's own 0.2 to 3.2 ms after they stopped. That one sleeps while there is nothing to do.
  automatic,
  // Always the thread of the device's own.
  served,
  // Always the application's threads, when they poll or wait. Everything that this
  // library bounds in time is bounded only while somebody polls; peers are not answered meanwhile.
  inlined,
};
// Whether it is one of the values above: any number can be cast to an enumeration.
constexpr bool is_valid(Threads threads) { return threads <= Threads::inlined; }

// What wakes a thread that sleeps at a descriptor. Any other value is `any`.
enum class Wake : uint8_t {
  any,        // each completion
  solicited,  // arrivals whose poster asked for it (Work::solicited), and whatever failed
};

// How many of each a device holds at most. They bound its memory, which is address space until
// used.
struct Limits {
  uint32_t jetties = 1024;   // up to 1 000 000
  uint32_t peers = 1024;     // other processes; up to 65 536
  uint32_t segments = 4096;  // up to 2^20
};

struct DeviceOptions {
  Threads threads = Threads::automatic;
  // A work without progress for so long ends, as `unknown`; if nothing of it has left, as
  // `peer_unreachable` or `flushed`. 10 ms to 1 h, of the device's own time: where the device is
  // run later than it asked for (its process stands still, or the application does not poll),
  // 100 ms of each such gap count. If no gap is longer than L, a work ends at the latest after
  // max(1, L / 100 ms) times as long.
  Duration operation_timeout = std::chrono::seconds(2);
  // A channel over which nothing went for so long is closed, if the peer has nothing to say either;
  // the next work makes another one, which takes two round trips. Zero: no channel is; else 1 ms to
  // 24 h. In a window channels stay: they cost nothing there that another one could use.
  Duration idle_timeout = std::chrono::minutes(5);
  // Congestion control by name; empty: the default.
  std::string congestion{};
  // How lost packets are found and sent again, by this end. Nothing: what suits the medium, which
  // is sel_rack where packets can be lost.
  std::optional<Retransmission> retransmission{};
  // What is spread where a peer is reached over several paths. Nothing: as the device string says,
  // `paths(balance=packet):`, or else slices.
  std::optional<Balance> balance{};
  Limits limits{};
  // Whether other processes of this user can see what it counts (urma_stat, urma/observe.hpp): a
  // page in /dev/shm, until it is closed. A simulated device has none.
  bool observable = true;
  LogOptions log{};
};

struct ImportOptions {
  // How long to wait for a name that no process has published yet; zero: look once. Not negative.
  Duration limit = std::chrono::seconds(2);
  // Of what is sent to that process, by all of this device; nothing: as before, at first the
  // device's.
  std::optional<Retransmission> retransmission{};
};

class Jfc;
class Jfr;

struct JettyOptions {
  // Works that may be outstanding: 0 to 32 768. Each is one of them from post to poll.
  uint32_t berths = 128;
  // Messages that may wait for polling, or buffers for a message: 0 to 32 768. As many immediates
  // too. With 0, whoever sends here or writes with an immediate is told `remote_unsupported`,
  // unless they come from a Jfr.
  uint32_t receives = 0;
  // What each berth holds for works with inline data: 0 to max_inline_bytes.
  uint32_t inline_bytes = 64;
  // As DeviceOptions::operation_timeout, 10 ms to 1 h. Zero: the device's.
  Duration operation_timeout{};
  // How long a living target that has no receive slot free is asked again, from zero. Default: for
  // ever.
  Duration receiver_timeout = Duration::max();
  // Of what several Jetties of the device want to send to one peer, how large its share is, beside
  // theirs: 1 to 16.
  uint32_t weight = 1;
  // Who keeps strong works in order (docs/ordering.md).
  ServiceMode mode = ServiceMode::automatic;
  // Relaxed works wait for each other like strong ones: both form one chain, executed in the order
  // in which it was posted.
  bool chain = false;
  // Completions of works come in the order in which these were posted.
  bool in_order = false;
  // What happens when a work of it fails: nothing to the others, or else the Jetty is suspended,
  // which ends all its works and lets none begin until `Jetty::reset`; it goes on receiving.
  bool suspend_on_error = false;
  // Where completions go; null: to a queue of the Jetty's own.
  Jfc* completions = nullptr;
  // Whose buffers and permits arrivals take, together with those of other Jetties; `receives` must
  // be 0 then. Arrivals complete there, where the buffers come back; here only works do.
  const Jfr* receives_from = nullptr;
};

struct JfrOptions {
  // Messages that may wait for polling, or buffers for a message: 1 to 32 768, for all Jetties that
  // use it together. As many immediates too.
  uint32_t receives = 128;
  // Where arrivals go; null: to a queue of the Jfr's own.
  Jfc* completions = nullptr;
};

// Who may have a published name, besides this user on this host.
struct Audience {
  bool anyone = false;
  std::vector<Eid> eids{};

  bool admits(const Eid& eid) const {
    return anyone || std::find(eids.begin(), eids.end(), eid) != eids.end();
  }
};
inline Audience this_user() { return {}; }
inline Audience everyone() { return {.anyone = true, .eids = {}}; }

}  // namespace urma
