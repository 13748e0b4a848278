// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bell.h"
#include "drivers/device_reads.h"
#include "drivers/path_ports.h"
#include "drivers/port_facts.h"
#include "drivers/remote_access.h"
#include "drivers/segment_memory.h"
#include "drivers/virtual_clock.h"
#include "urma/core/result.h"
#include "urma/core/time.h"
#include "wire/frame.h"
#include "wire/ways.h"

namespace urma::drivers {

// The counters of a port since open. Written by the thread that runs the port.
struct PortCounters {
  uint64_t frames_sent = 0;
  uint64_t frames_received = 0;
  uint64_t calls_sent = 0;      // system calls to send, or their equivalent
  uint64_t calls_received = 0;  // system calls to receive, or their equivalent
  uint64_t send_failures = 0;   // frames that the medium refused
  uint64_t unreachable = 0;     // reports of the network that a destination cannot be reached
  uint64_t malformed = 0;       // received data that was not a frame
  uint64_t refused = 0;         // requests for memory with a wrong token
  uint64_t ignored = 0;    // requests dropped because the process had sent too many wrong tokens
  uint64_t injected = 0;   // faults that a wrapper has made
  int latest_failure = 0;  // errno of the last of send_failures, if the system gave one
  // Why, and the fix, for people, if the port knows it better than the system. Constant memory.
  std::string_view failure_text = {};
  uint64_t uncaptured = 0;  // packets that a wrapper could not write to its file
  // Why the last attempt to make a way failed; `none` if it succeeded.
  Ways::Shortage shortage = Ways::Shortage::none;
};

// A port that carries packets, in bursts. Each frame is in one of these states: free, lent to the
// engine, in the device, received. Used by one thread at a time; no function blocks, and none
// allocates after open.
class PacketPort {
 public:
  virtual ~PacketPort() = default;

  // Opens another port of this device, at an address of its own, for another engine of the process
  // (docs/architecture.md#several-engines). It has this EID, unless the addresses of the medium are
  // EIDs. Not on the data path. Errors: as Driver::open; unsupported, if this medium has no such
  // ports.
  virtual Result<std::unique_ptr<PacketPort>> beside(const Eid& /*eid*/) {
    return Error{Status::unsupported,
                 "this device string names a medium or a wrapper with one engine. Fix: leave out "
                 "engines, or use udp: or cxl:, of which only fault() may be a wrapper"};
  }

  virtual const PortFacts& facts() const = 0;
  virtual PortCounters counters() const = 0;
  // Writes the values of `facts().metrics`, in their order, to the front of `out`, and returns how
  // many. They may be those of a moment ago. Called a few times in a second.
  static constexpr size_t most_metrics = 64;
  virtual size_t metrics(std::span<uint64_t> /*out*/) { return 0; }

  // Lends empty frames: writes them to the front of `frames`, and returns how many.
  virtual size_t lend(std::span<TxFrame*> frames) = 0;
  // Takes filled frames, in order, and returns how many of them it took; the others stay lent. The
  // port may read the memory that a frame's pieces name until `settled` has counted the frame, and
  // never after that. A frame that was taken may be lost in the medium.
  virtual size_t send(std::span<TxFrame* const> frames, Time now) = 0;
  // Gives lent frames back unsent.
  virtual void unlend(std::span<TxFrame* const> frames) = 0;
  // Returns the number of frames, of those that `send` has taken since open, that the port will not
  // read again, counted in the order in which `send` took them. It never decreases, and reaches all
  // frames even if nothing more is sent. It may lag behind the packets that were sent, and even
  // behind those that peers have answered. A port may advance it only in `send` and `receive`, and
  // does not wake a thread for it: callers that wait for it poll it. A port that is destroyed reads
  // nothing any longer, whether or not frames had settled.
  virtual uint64_t settled() = 0;

  // Writes received frames to `frames`, and returns how many. Each must be released.
  virtual size_t receive(std::span<RxFrame> frames, Time now) = 0;
  virtual void release(std::span<const RxFrame> frames) = 0;

  // Returns descriptors, of which at least one becomes readable when frames may have arrived; the
  // next call of `receive` may nevertheless return none. They are constant after open, and at most
  // `most_descriptors`. The span is empty if the medium has none.
  static constexpr size_t most_descriptors = 4 * most_paths;
  virtual std::span<const int> descriptors() const = 0;
  // For a port with `facts().arms`; other ports do nothing. From `arm` to `disarm`, a descriptor
  // becomes readable when a frame arrives. Frames that arrived before `arm` may give no signal. So
  // a thread arms the port, then calls `receive`, and then sleeps at the descriptors if nothing was
  // received and `next_arrival` is not due; when it wakes, it disarms the port. Either call may be
  // repeated.
  virtual void arm() {}
  virtual void disarm() {}
  // Returns the bell at which the thread that runs this port sleeps, and which senders ring; null
  // if it sleeps at the descriptors.
  virtual Bell* bell() { return nullptr; }
  // Returns the ways to the peers of a lossless medium, on which frames are sent only if there is
  // room for them; null if the medium is not lossless.
  virtual Ways* ways() { return nullptr; }
  // Returns the memory of the medium for segments, or null if it has none.
  virtual SegmentMemory* memory() { return nullptr; }
  // Returns the interface that lets the device read memory, or null if it reads only memory of its
  // own, or any.
  virtual DeviceReads* device_reads() { return nullptr; }
  // Returns the interface by which the device accesses the memory of other devices, or null if it
  // does not. A wrapper whose faults, captures or paths are for packets has none.
  virtual RemoteAccess* remote_access() { return nullptr; }
  // Returns whether everything has to go in packets: of a wrapper whose faults, captures or paths
  // are for packets, and of a simulation.
  virtual bool only_packets() const { return false; }
  // Returns the interface that adds and removes ports, or null if this port does not consist of
  // several.
  virtual PathPorts* path_ports() { return nullptr; }
  // Returns the time at which `receive` must be called even if nothing arrives, because a delayed
  // frame or the gathered data of a wrapper is due then. Returns `never` if there is none.
  virtual Time next_arrival() const { return never; }
  // Returns the clock of a simulated medium, or null for other media.
  virtual VirtualClock* clock() { return nullptr; }
  // Ends as if its process had been killed: notifies no peer, leaves what the system would leave,
  // and does not release received frames. Only destruction may follow. For simulations; a port that
  // has no state outside of its process does nothing.
  virtual void abandon() {}
};

}  // namespace urma::drivers
