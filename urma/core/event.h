// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "urma/core/endpoint.h"
#include "urma/core/export.h"
#include "urma/core/ids.h"
#include "urma/core/status.h"

namespace urma {

// The kinds of events: what happens to a device, beside the completions of its works.
//
// Devices send no keep-alive packets to idle peers. So the end of a peer that dies without notice
// is detected only when a work is posted to it, or when it owes an answer; its restart is detected
// when the new process sends something. An application that only receives, and must detect the end
// of a peer, should send an empty message to that peer from time to time.
enum class EventKind : uint8_t {
  // A peer does not answer, or no channel to it can be made; Event::status says why. The peer may
  // return.
  peer_lost,
  // A peer that was lost answers again, in the same incarnation: its process was not restarted.
  peer_back,
  // path_lost: one of several paths to a peer (`paths():`, Event::path) no longer carries packets;
  // all traffic uses the other paths. path_back: the path carries packets again.
  path_lost,
  path_back,
  // Another process runs at the peer's address: everything imported from the old process is
  // invalid.
  peer_restarted,
  // The peer closed its device, or its process ended.
  peer_left,
  // Messages and immediates to this Jetty are refused, because it was flushed or its Jfr was
  // destroyed.
  jetty_error,
  // The peer's requests named a segment or Jetty that does not exist, or had a wrong token.
  // Event::peer and Event::from are not set if the requests were datagrams, or asked the owner to
  // hand over the segment's memory (cxl:?share=segment).
  bad_tokens,
  // The peer has sent more wrong tokens than a mistake explains. Its requests are dropped without
  // an answer, for 100 ms to 10 s.
  guessing,
  // A peer used memory of a guarded segment (Event::segment) that is not mapped, or not writable,
  // or memory of a GPU that cannot be copied: the access was refused.
  memory_missing,
  // `count` events were dropped because the buffer was full. Call Device::events more often.
  missed,
  // The device has been closed. This is its last event.
  closed,
  // path_added: a path to a peer that either device has added (Device::add_path) now carries
  // packets. path_removed: either device has removed a path (Device::remove_path).
  path_added,
  path_removed,
};

// One event, or `count` events of the same kind, peer and Jetty within a short time.
struct Event {
  EventKind kind = EventKind::missed;  // what happened
  Status status = Status::ok;          // the reason, for kinds that have one; otherwise ok
  uint32_t count = 1;                  // how many events this one stands for
  uint32_t path = 0;                   // kinds path_...: Path::number
  JettyId jetty{};                     // jetty_error
  TokenId segment{};                   // memory_missing
  PeerId peer{};    // the peer, as Completion::from and RemoteSegment::peer name it
  Endpoint from{};  // the address of that peer
};

// A set of kinds of events.
class EventKinds {
 public:
  // All kinds.
  constexpr EventKinds() = default;
  // These kinds, and EventKind::closed, which every set has.
  constexpr EventKinds(std::initializer_list<EventKind> kinds) : bits_(bit(EventKind::closed)) {
    for (const EventKind kind : kinds) bits_ |= bit(kind);
  }

  // Returns whether the set has this kind.
  constexpr bool has(EventKind kind) const { return (bits_ & bit(kind)) != 0; }

 private:
  // An invalid kind has no bit.
  static constexpr uint32_t bit(EventKind kind) {
    const auto number = static_cast<uint32_t>(kind);
    return number < 32 ? uint32_t{1} << number : 0;
  }

  uint32_t bits_ = ~uint32_t{0};
};

// Returns the name of the kind, as in the enumeration, for example "peer_lost". Any thread may call
// it; it never fails.
URMA_API const char* name(EventKind kind);

}  // namespace urma
