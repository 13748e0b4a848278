#include "urma/core/status.h"

#include <array>
#include <iterator>

namespace urma {
namespace {

constexpr StatusInfo catalogue[] = {
    {Status::ok, "ok", "Done.", "Nothing to do."},
    {Status::flushed, "flushed",
     "The work was cancelled (flush, close, deadline) before it could execute: not "
     "executed.",
     "Post it again if it is still wanted."},
    {Status::unknown, "unknown",
     "Packets of the work left, and no answer will come: it may or may not have executed.",
     "Look at the target (read it back, or ask it) before repeating anything that must not happen "
     "twice."},
    {Status::bad_work, "bad_work",
     "The work cannot be executed as it stands: too long, too many pieces, an immediate without a "
     "target Jetty, a target of another device.",
     "Compare it with the limits in urma/core/work.h."},
    {Status::remote_access, "remote_access",
     "The target refused: the token is not valid, the range leaves the segment, or the segment "
     "does not grant this kind of access. Nothing changed, unless the segment was unregistered "
     "while "
     "the work ran: then what had arrived before did.",
     "Import the descriptor again; if the segment was unregistered or its token rotated, ask its "
     "owner for a new one."},
    {Status::remote_unsupported, "remote_unsupported",
     "The target cannot do this: it does not know the operation, a send was longer than the buffer "
     "that waited for it, or a message or an immediate went to a Jetty without receive slots.",
     "Post larger receive buffers, or use write with immediate; make the target's Jetty with "
     "JettyOptions::receives; else upgrade the target."},
    {Status::receiver_not_ready, "receiver_not_ready",
     "The target had no receive slot for longer than `receiver_timeout` allows: not executed.",
     "Let the target post receives and poll its completions, or allow more time."},
    {Status::receive_too_small, "receive_too_small",
     "A message arrived that was longer than the buffer posted for it. What the buffer holds means "
     "nothing; its sender was told remote_unsupported.",
     "Post larger receive buffers (a send is at most 64 KiB)."},
    {Status::peer_unreachable, "peer_unreachable",
     "Nobody answered at the target's address within the time allowed: not executed.",
     "Check that the process runs, that the address and port are right, and that UDP passes."},
    {Status::peer_restarted, "peer_restarted",
     "The process that this target belongs to is gone; another one may run at its address. Not "
     "executed.",
     "Import the name or descriptor again."},
    {Status::would_block, "would_block", "Nothing is vacant at the moment.",
     "Poll completions, which returns berths, and try again."},
    {Status::invalid_argument, "invalid_argument", "The call cannot be meant as it was made.",
     "The message says which argument and what it may be."},
    {Status::not_found, "not_found", "Nobody has published that name.",
     "Check the spelling and that the publisher runs; names are per address and per user."},
    {Status::address_in_use, "address_in_use", "Another process holds that address and port.",
     "Choose another address (udp:127.0.0.N) or leave the port out."},
    {Status::permission_denied, "permission_denied",
     "The system or the publisher does not allow it.",
     "The message names the file, the limit or the publisher's rule."},
    {Status::version_mismatch, "version_mismatch",
     "The other side speaks another version. Of a work: not executed.",
     "Upgrade the older side; the message names the other one."},
    {Status::no_resources, "no_resources",
     "A limit given at open, or the system's, is reached. Of a work: this device's or the "
     "target's, "
     "which had no room for another peer or queue; not executed.",
     "Raise the limit that the message names (`Limits::peers`), or release something."},
    {Status::unsupported, "unsupported", "This device cannot do that, or not yet.",
     "Choose another device; the message says which can."},
    {Status::closed, "closed", "The object has been closed.",
     "Keep the device open while using it."},
    {Status::forked, "forked", "This device was opened by the parent of this process.",
     "Open a device of its own in the child."},
    {Status::timed_out, "timed_out", "There was no answer in the time given.",
     "Give more time, or see whether the other side runs and polls."},
    {Status::io_error, "io_error", "The operating system failed the call.",
     "The message carries the system's reason."},
    {Status::not_fenced, "not_fenced",
     "The segment is gone from the tables, but a late write by another process could not be ruled "
     "out.",
     "Let that process go on, or end it; until then do not rely on what the memory holds. The "
     "library gives it to nobody else."},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(catalogue); ++i) {
    if (catalogue[i].status != static_cast<Status>(i)) return false;
  }
  return std::size(catalogue) == static_cast<size_t>(Status::not_fenced) + 1;
}
static_assert(in_order(), "each status has its row, in the order of the enumeration");

constexpr StatusInfo no_status = {Status::io_error, "no such status",
                                  "This number is not a status of this version.",
                                  "Compare the versions of header and library."};

}  // namespace

const StatusInfo& describe(Status status) {
  const auto index = static_cast<size_t>(status);
  return index < std::size(catalogue) ? catalogue[index] : no_status;
}

StatusRange all_statuses() { return {std::begin(catalogue), std::end(catalogue)}; }

}  // namespace urma
