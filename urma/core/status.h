// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/export.h"

namespace urma {

// How a work ended, or why a call failed. Each comment says what the status means, and then what
// to do about it; `describe` returns both at greater length, with the likely causes.
enum class Status : uint8_t {
  // The work was executed, or the call succeeded.
  ok,

  // How works end. A completion has `ok`, one of these, or version_mismatch, no_resources or
  // unsupported.

  // The work was cancelled before any part of it was sent; it was not executed. Post it again if
  // it is still needed.
  flushed,
  // A part of the work was sent and no answer will come: it may or may not have executed. Read the
  // target, or ask its owner, before repeating it.
  unknown,
  // The work itself is invalid; it was not executed. Keep to the limits of urma/core/work.h.
  bad_work,
  // The target refused the token, the range or the access. The work was not executed, except for
  // data that had arrived before the segment was unregistered or its memory unmapped. Import the
  // descriptor again; check offset, size and Rights.
  remote_access,
  // The target cannot execute the work, so it was not executed. Post larger receive buffers; make
  // the target's Jetty with JettyOptions::receives; upgrade the target.
  remote_unsupported,
  // The target had no receive slot for longer than JettyOptions::receiver_timeout; the work was not
  // executed. Post receives and poll at the target.
  receiver_not_ready,
  // Receiving side: the message was longer than the buffer posted for it. Post larger buffers.
  receive_too_small,
  // No channel to the peer could be made in time; the work was not executed. Check that the other
  // process runs and polls, its address, and that UDP passes between the hosts.
  peer_unreachable,
  // The target's process has exited; the work was not executed. Import the descriptor again.
  peer_restarted,

  // Why calls fail.

  // No berth is vacant. Poll completions and try again. No call of this version returns it:
  // Jetty::post returns a smaller number instead.
  would_block,
  // An argument is invalid. Correct the one that the message names.
  invalid_argument,
  // The name is not published, or this device cannot reach it. Check its spelling and that its
  // publisher runs.
  not_found,
  // Another process has the address, the port or the name. Choose another one.
  address_in_use,
  // The system, or a publisher, denies access. Grant it, or choose another path.
  permission_denied,
  // The peer uses another version of the protocol; a work was not executed. Upgrade the older side.
  version_mismatch,
  // A limit given at open, or a limit of the system, is reached; a work was not executed. Raise the
  // limit.
  no_resources,
  // This device, or this version of the library, does not support the request; a work was not
  // executed. Use another device.
  unsupported,
  // The object or its device is closed. Keep the device open while using it.
  closed,
  // The call was made in a child of the process that opened the device. Open a device in the child.
  forked,
  // There was no answer in the time given. Allow more time; check that the other process runs.
  timed_out,
  // A system call failed. Correct what the message quotes; see urma_info --doctor.
  io_error,
  // The segment is unregistered (or, after Segment::retire, its old token is invalid), but a late
  // write by another process could not be ruled out. Let that process continue, or end it, and call
  // again; do not rely on the memory's content until then.
  not_fenced,
};

// The explanation of one status, for programs to print. The texts live as long as the library.
struct StatusInfo {
  Status status;                                // the one that is explained
  std::string_view name;                        // as in the enumeration: "flushed"
  std::string_view meaning;                     // what happened, and whether the work was executed
  std::array<std::string_view, 3> may_be = {};  // likely causes, the likeliest first; then empty
  std::string_view cure;                        // what to do

  // Returns the causes that are not empty.
  std::span<const std::string_view> causes() const {
    size_t count = 0;
    while (count < may_be.size() && !may_be[count].empty()) ++count;
    return std::span(may_be).first(count);
  }
};

// Returns the explanation of a status, and one also for a number that is not a Status. Any thread
// may call it; it never fails.
URMA_API const StatusInfo& describe(Status status);
// Returns the name of a status, for printing: urma::name(completion.status).
inline std::string_view name(Status status) { return describe(status).name; }

// A range over the explanations of all statuses, in the order of the enumeration.
struct StatusRange {
  const StatusInfo* first;  // the first explanation
  const StatusInfo* last;   // the end behind the last one
  // These let `for (const auto& info : all_statuses())` compile.
  const StatusInfo* begin() const { return first; }
  const StatusInfo* end() const { return last; }
};
// Returns the explanations of all statuses. Any thread may call it; it never fails.
URMA_API StatusRange all_statuses();

}  // namespace urma
