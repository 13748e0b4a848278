#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "urma/core/export.h"

namespace urma {

// How a work ended, or why a call refused. Each is explained once, in status.cc; `describe` gives
// its name, what it means, what may have caused it and what to do about it.
enum class Status : uint8_t {
  ok,

  // How works end: a completion carries exactly one of these, or
  // version_mismatch, no_resources, or unsupported.
  flushed,             // cancelled before anything left; not executed
  unknown,             // it left and no answer will come; may or may not have executed
  bad_work,            // the work itself cannot be executed; not executed
  remote_access,       // refused by the target: token, bounds or rights; not executed
  remote_unsupported,  // the target cannot do this; not executed
  receiver_not_ready,  // the target had no receive slot for longer than allowed; not executed
  receive_too_small,   // receive side: the message was longer than the buffer posted for it
  peer_unreachable,    // no channel could be made in time; not executed
  peer_restarted,      // the process that the target names is gone; not executed

  // Why calls refuse.
  would_block,        // nothing vacant now
  invalid_argument,   // the call cannot be meant
  not_found,          // nobody has published that
  address_in_use,     // somebody else has it
  permission_denied,  // the system, or a publisher, does not let us
  version_mismatch,   // the other side speaks another version; of a work: not executed
  no_resources,       // a limit given at open, or the system's, is reached; of a work: not executed
  unsupported,        // not on this device, or not yet; of a work: not executed
  closed,             // the object has been closed
  forked,             // called in a child of the process that opened the device
  timed_out,          // no answer in the time given
  io_error,           // the system failed us
  not_fenced,         // done, but that no late write can arrive could not be ensured
};

struct StatusInfo {
  Status status;
  std::string_view name;
  std::string_view meaning;                     // what it says, and whether anything was executed
  std::array<std::string_view, 3> may_be = {};  // why, likeliest first; then empty ones
  std::string_view cure;

  std::span<const std::string_view> causes() const {
    size_t count = 0;
    while (count < may_be.size() && !may_be[count].empty()) ++count;
    return std::span(may_be).first(count);
  }
};

// For any value, also one that is no Status. To print one: urma::name(completion.status).
URMA_API const StatusInfo& describe(Status status);
inline std::string_view name(Status status) { return describe(status).name; }

// All of them, in order.
struct StatusRange {
  const StatusInfo* first;
  const StatusInfo* last;
  const StatusInfo* begin() const { return first; }
  const StatusInfo* end() const { return last; }
};
URMA_API StatusRange all_statuses();

}  // namespace urma
