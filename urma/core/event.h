#pragma once

#include "urma/core/endpoint.h"
#include "urma/core/export.h"
#include "urma/core/ids.h"
#include "urma/core/status.h"

namespace urma {

// What happens to a device that is no work's end. Nobody is asked for a sign of life for nothing: a
// peer that dies without a word is found out when something is posted to it, or when it owes an
// answer; that it has been replaced, when the new life speaks. Who only receives, and must know,
// sends an empty message now and then.
enum class EventKind : uint8_t {
  // A peer answers nobody, or no channel to it can be made; `status` says why. It may be back.
  peer_lost,
  // A peer that was lost is there again, the same life of it.
  peer_back,
  // One of several paths to a peer (`paths():`, Event::path) carries nothing any more: all goes
  // over the others. Or it carries again.
  path_lost,
  path_back,
  // Another life runs at its address: what was imported of the old one is void.
  peer_restarted,
  // It closed its device, or its process ended.
  peer_left,
  // What comes to this Jetty is refused: it was flushed, or its Jfr is gone.
  jetty_error,
  // Requests that named no segment or Jetty of ours, or a wrong token. Of no peer: to be handed
  // memory (cxl:?share=segment), or in datagrams.
  bad_tokens,
  // They came faster than by mistake: its requests are dropped for a while, 100 ms to 10 s, and it
  // is not told why.
  guessing,
  // Memory of a guarded segment (Event::segment) was not there, or not to be written, when it was
  // used: the access was refused.
  memory_missing,
  // So many others found no room, because `Device::events` was not called.
  missed,
  // The device has been closed: the last one.
  closed,
  // Another path to a peer carries, since one of the two devices has a place more; or one was taken
  // away (Device::add_path, remove_path).
  path_added,
  path_removed,
};

// One event, or `count` of the same kind, peer and Jetty that came soon after one another.
struct Event {
  EventKind kind = EventKind::missed;
  Status status = Status::ok;  // why, where there is more to say
  uint32_t count = 1;
  uint32_t path = 0;  // path_...: Path::number
  JettyId jetty{};    // jetty_error
  TokenId segment{};  // memory_missing
  PeerId peer{};      // the others: as Completion::from and RemoteSegment::peer name it
  Endpoint from{};    // and where it is or was
};

// "peer_lost", and so on. Any thread.
URMA_API const char* name(EventKind kind);

}  // namespace urma
