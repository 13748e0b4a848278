#include "urma/core/status.h"

#include <array>
#include <iterator>

#include "urma/core/work.h"

namespace urma {
namespace {

static_assert(max_write_bytes == 1 << 30 && max_send_bytes == 64 << 10 && max_buffers == 16,
              "the catalogue names these limits");

// What is said of a work is said of calls too where both can end so.
constexpr StatusInfo catalogue[] = {
    {Status::ok,
     "ok",
     "Done: the work was executed, the call did what it says.",
     {},
     "Nothing to do."},
    {Status::flushed,
     "flushed",
     "The work was cancelled before it could execute: not executed.",
     {"Its Jetty or its device was closed or destroyed.",
      "The segment that it reads from or writes to here was unregistered.",
      "Its time was up (operation_timeout) before anything of it had left."},
     "Post it again if it is still wanted."},
    {Status::unknown,
     "unknown",
     "Part of the work left, and no answer will come: it may or may not have executed.",
     {"The other process ended, was stopped or lost its network while the work ran.",
      "Its device was closed while the work ran.",
      "This side gave up (operation_timeout, close) after something had left."},
     "Look at the target (read it back, or ask it) before repeating anything that must not happen "
     "twice."},
    {Status::bad_work,
     "bad_work",
     "The work cannot be executed as it stands: not executed.",
     {"It is too long (writes and reads: at most 1 GiB, sends: 64 KiB), has more than 16 buffers, "
      "or "
      "more inline data than its Jetty's berths hold (JettyOptions::inline_bytes).",
      "It goes to a segment or Jetty that the import did not find (only the other was published).",
      "It has an immediate and no target Jetty, is an atomic that is not aligned, its memory lies "
      "at null, or one of its fields has a value that its enumeration does not have."},
     "Keep to these limits, which urma/core/work.h has as constants, and to what the import "
     "returned."},
    {Status::remote_access,
     "remote_access",
     "The target refused. Nothing changed there, unless the segment was unregistered, or its "
     "memory taken away, while the work ran: then what had arrived before did.",
     {"The segment was unregistered, or its owner restarted: the token is no longer valid.",
      "The range leaves the segment, or the segment is guarded and its memory gone or read-only.",
      "The segment does not grant this kind of access (Rights)."},
     "Import the descriptor again, keep to the segment's bytes, and have its owner register it "
     "with the rights that are needed."},
    {Status::remote_unsupported,
     "remote_unsupported",
     "The target cannot do this: not executed.",
     {"A message was longer than the receive buffer that waited for it.",
      "A message or an immediate went to a Jetty that was made without receive slots.",
      "The target's version does not know the operation, or it is an atomic on a guarded segment."},
     "Post larger receive buffers, or write with an immediate; make the target's Jetty with "
     "JettyOptions::receives; else upgrade the target."},
    {Status::receiver_not_ready,
     "receiver_not_ready",
     "The target lives, and had no receive slot for longer than receiver_timeout: not executed.",
     {"Its application does not post receives, or does not poll its completions.",
      "More is sent than it takes in."},
     "Let the target post receives and poll, give its Jetty more of them "
     "(JettyOptions::receives), or allow more time (receiver_timeout)."},
    {Status::receive_too_small,
     "receive_too_small",
     "A message arrived that was longer than the buffer posted for it. What the buffer holds means "
     "nothing; its sender was told remote_unsupported.",
     {"Sender and receiver do not agree how long a message may be."},
     "Post larger receive buffers (a message is at most 64 KiB)."},
    {Status::peer_unreachable,
     "peer_unreachable",
     "Nobody answered at the target's address within the time allowed: not executed.",
     {"No process has that address open, or it ended.",
      "A firewall, a container's network or a missing route drops UDP on the way (port 4792).",
      "The process is stopped, or nobody runs its device (Threads::inlined and no polling)."},
     "See whether the other process runs and polls, whether address and port are right, and "
     "whether UDP passes between the hosts."},
    {Status::peer_restarted,
     "peer_restarted",
     "The process that this target belongs to is gone; another one may run at its address. Not "
     "executed.",
     {"It was started again, or closed its device and opened another one.",
      "A descriptor was kept from an earlier run."},
     "Import the name or descriptor again."},
    {Status::would_block,
     "would_block",
     "Nothing is vacant at the moment.",
     {"All berths are in use: works were posted and their completions not polled."},
     "Poll completions, which returns berths, and try again."},
    {Status::invalid_argument,
     "invalid_argument",
     "The call cannot be meant as it was made.",
     {"A device string, an address, a name or a descriptor is misspelt.",
      "An option is out of range, or two of them exclude each other."},
     "Correct the argument that the message names."},
    {Status::not_found,
     "not_found",
     "Nobody has published that name, or it is out of reach.",
     {"Its publisher does not run yet, or has ended.",
      "It is published by another user and not for others (Audience).",
      "It is published on another kind of device (a window, another address) than this one."},
     "Check the spelling and that the publisher runs; names are per address and per user."},
    {Status::address_in_use,
     "address_in_use",
     "Somebody else has that address, port or name.",
     {"Another process has the address and port open.",
      "Another process publishes that name at the same address."},
     "Choose another address (udp:127.0.0.N) or leave the port out."},
    {Status::permission_denied,
     "permission_denied",
     "The system or the publisher does not allow it.",
     {"A file (a window, a device in /dev) belongs to another user.",
      "A directory for names is not this user's own.", "A container or a limit forbids the call."},
     "Allow this user what the message names, or choose another path."},
    {Status::version_mismatch,
     "version_mismatch",
     "The other side speaks another version. Of a work: not executed.",
     {"Two versions of liburma run side by side, or share a window."},
     "Use one version on both sides: upgrade the older one."},
    {Status::no_resources,
     "no_resources",
     "A limit given at open, or one of the system's, is reached. Of a work: this device's or the "
     "target's, which had no room for another peer or queue; not executed.",
     {"More Jetties, segments or peers are wanted than the device was opened for (Limits).",
      "A completion queue is shared by more than it has entries for.",
      "The system has no memory, descriptors or threads left for this process, or no room in the "
      "file system that a window lies in."},
     "Raise the limit that the message names (`Limits`, ulimit, a container's), or release "
     "something; \"urma_info --doctor\" shows whether /dev/shm has room."},
    {Status::unsupported,
     "unsupported",
     "This device cannot do that, or not yet. Of a work: not executed.",
     {"The medium has no such thing (a simulated device has no descriptor to sleep at).",
      "A window was made by another kernel, or lies where there are no locks.",
      "An atomic of 16 to 64 bytes, or on a segment whose owner's device executes them."},
     "Choose another device: urma_info tells what each one can do."},
    {Status::closed,
     "closed",
     "The object has been closed.",
     {"Its device was closed or destroyed before it.", "The object was moved from."},
     "Keep the device open while using it, and call the object that it was moved to."},
    {Status::forked,
     "forked",
     "This device was opened by the parent of this process.",
     {"The process called fork() after open(): a child cannot use its parent's devices."},
     "Open a device of its own in the child."},
    {Status::timed_out,
     "timed_out",
     "There was no answer in the time given.",
     {"The other side does not run or poll.", "The time is shorter than the work takes."},
     "Give more time, or see whether the other side runs and polls."},
    {Status::io_error,
     "io_error",
     "The operating system failed the call.",
     {"What the message quotes from the system.",
      "A limit or a file system of a container; see urma_info --doctor."},
     "Mend what the system's words point at (urma_info --doctor looks for the usual ones), and try "
     "again."},
    {Status::not_fenced,
     "not_fenced",
     "The segment is gone from the tables, but a late write by another process could not be ruled "
     "out.",
     {"A process that maps the window was stopped, or had no processor, in the middle of a copy."},
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

constexpr StatusInfo no_status = {Status::io_error,
                                  "no such status",
                                  "This number is not a status of this version.",
                                  {"Header and library, or the two sides, are not of one version."},
                                  "Compare the versions of header and library."};

}  // namespace

const StatusInfo& describe(Status status) {
  const auto index = static_cast<size_t>(status);
  return index < std::size(catalogue) ? catalogue[index] : no_status;
}

StatusRange all_statuses() { return {std::begin(catalogue), std::end(catalogue)}; }

}  // namespace urma
