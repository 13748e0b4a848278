// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of memory and of Jetties, which works need.

#include "python/arguments.h"
#include "urma/urma.hpp"

namespace urma::python {

// A segment or a Jetty as the works of one device name it.
template <class Value>
struct Remote {
  py::object device;  // its names mean nothing to other devices
  Value value;
};
using RemoteSegmentObject = Remote<RemoteSegment>;
using RemoteJettyObject = Remote<RemoteJetty>;

// Returns a peer as a number that can be compared and hashed; None if there is no peer.
inline py::object peer_number(PeerId peer) {
  if (!peer) return py::none();
  return py::int_(uint64_t{peer.index} << 32 | peer.generation);
}

// Returns the memory that an argument names: a RemoteSegment, or a Segment of the device itself.
RemoteSegment segment_of(py::handle object, const py::object& device, const char* name);
// Returns the Jetty that an argument names: a RemoteJetty, or a Jetty of the device itself.
RemoteJetty jetty_of(py::handle object, const py::object& device, const char* name);

}  // namespace urma::python
