// SPDX-License-Identifier: Apache-2.0
#include "engine/path_changes.h"

namespace urma::engine {
namespace {

// Running peers confirm a new list much sooner, unless the list or its confirmation is lost.
constexpr Duration longest_wait = std::chrono::milliseconds(50);
constexpr Duration between_looks = std::chrono::microseconds(250);

}  // namespace

bool PathChanges::add(drivers::PathPorts::Joining& joining, Time now) {
  PathList paths = announced_.paths();
  uint8_t number = 0;
  while (number < most_paths && (paths.there(number) || leaving_[number])) ++number;
  if (number == most_paths) return false;
  paths.set(number, joining.self());
  ports_->join(number, joining);
  announced_.announce_paths(paths, now);
  return true;
}

bool PathChanges::find(Removal& what) const {
  const PathList paths = announced_.paths();
  unsigned there = 0;
  what.number = most_paths;
  for (uint8_t i = 0; i < most_paths; ++i) {
    there += paths.there(i);
    if (paths.there(i) && paths.endpoints[i] == what.endpoint) what.number = i;
  }
  if (what.number == most_paths) {
    what.found = Removal::Found::nowhere;
  } else if (there == 1) {
    what.found = Removal::Found::last;
  }
  return what.found == Removal::Found::there;
}

// From now on this device sends nothing from the address.
void PathChanges::begin(Removal& what, Time now) {
  what.begun = true;
  what.since = now;
  leaving_[what.number] = true;
  PathList paths = announced_.paths();
  paths.set(what.number, {});
  announced_.announce_paths(paths, now);
}

void PathChanges::close(Removal& what) {
  what.closed = true;
  ports_->stop(what.number);
  announced_.close_path(what.number);
  what.fill = fills_.latest();
}

// First this device stops sending from the address and informs its peers, so that they stop sending
// to it; packets on their way are still received. When all peers have noted that, the address is
// closed. The removal is done when the frames that were filled for it have settled.
bool PathChanges::remove(Removal& what, Time now) {
  if (!what.begun) {
    if (!find(what)) return true;
    begin(what, now);
  }
  if (!what.closed) {
    if (now < what.look_at) return false;
    what.look_at = now + between_looks;
    if (!announced_.paths_confirmed() && now - what.since < longest_wait) return false;
    close(what);
  }
  if (!fills_.has_settled(what.fill)) return false;
  what.port = ports_->part(what.number);
  leaving_[what.number] = false;
  return true;
}

}  // namespace urma::engine
