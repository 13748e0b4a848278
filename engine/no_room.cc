// SPDX-License-Identifier: Apache-2.0
#include "engine/no_room.h"

#include <cerrno>

#include "base/file_system.h"

namespace urma::engine {

Error explain_no_room(const std::string& peer, const NoRoom& why) {
  if (why.backing == nullptr || why.shortage == Ways::Shortage::none) {
    return {
        Status::no_resources,
        peer + " has no room for another peer. Fix: open its device with a larger Limits::peers"};
  }
  const drivers::PortFacts::Backing& backing = *why.backing;
  const std::string failed = peer + " cannot be reached over " + backing.path;
  if (why.shortage == Ways::Shortage::ways) {
    return {Status::no_resources,
            failed + ": all the connections for which that window has room are in use. Fix: " +
                backing.cure};
  }
  const Shortage shortage =
      explain_shortage(file_system_of(backing.path), backing.bytes_for_each_peer, ENOSPC);
  return {Status::no_resources, failed + ", which has no memory for another peer: " + shortage.why +
                                    ". Fix: " + shortage.cure};
}

}  // namespace urma::engine
