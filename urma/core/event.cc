// SPDX-License-Identifier: Apache-2.0
#include "urma/core/event.h"

namespace urma {

const char* name(EventKind kind) {
  switch (kind) {
    case EventKind::peer_lost:
      return "peer_lost";
    case EventKind::peer_back:
      return "peer_back";
    case EventKind::path_lost:
      return "path_lost";
    case EventKind::path_back:
      return "path_back";
    case EventKind::peer_restarted:
      return "peer_restarted";
    case EventKind::peer_left:
      return "peer_left";
    case EventKind::jetty_error:
      return "jetty_error";
    case EventKind::bad_tokens:
      return "bad_tokens";
    case EventKind::guessing:
      return "guessing";
    case EventKind::memory_missing:
      return "memory_missing";
    case EventKind::missed:
      return "missed";
    case EventKind::closed:
      return "closed";
    case EventKind::path_added:
      return "path_added";
    case EventKind::path_removed:
      return "path_removed";
  }
  return "no such event";
}

}  // namespace urma
