// SPDX-License-Identifier: Apache-2.0
#include "urma/core/status.h"

#include <array>
#include <iterator>
#include <string>

#include "urma/core/error_code.h"
#include "urma/core/work.h"

namespace urma {
namespace {

static_assert(max_write_bytes == 1 << 30 && max_send_bytes == 64 << 10 && max_buffers == 16,
              "the catalogue names these limits");

// The texts fit both works and calls if both can end with the status.
constexpr StatusInfo catalogue[] = {
    {Status::ok, "ok", "The work was executed, or the call succeeded.", {}, "Nothing to do."},
    {Status::flushed,
     "flushed",
     "The work was cancelled before it could execute, so it was not executed.",
     {"Its Jetty or its device was closed or destroyed.",
      "The segment that it reads from or writes to here was unregistered.",
      "It timed out (operation_timeout) before any part of it was sent."},
     "Post it again if it is still needed."},
    {Status::unknown,
     "unknown",
     "A part of the work was sent, and no answer will come: it may or may not have executed.",
     {"The other process ended, was stopped or lost its network while the work ran.",
      "Its device was closed while the work ran.",
      "It timed out (operation_timeout) or this device closed after a part of it had been sent."},
     "Read the target's memory back, or ask the target, before repeating anything that must not "
     "happen twice."},
    {Status::bad_work,
     "bad_work",
     "The work itself is invalid, so it was not executed.",
     {"It is too long (writes and reads: at most 1 GiB, sends: 64 KiB), has more than 16 buffers, "
      "or more inline data than its Jetty's berths hold (JettyOptions::inline_bytes).",
      "Its target is a segment or Jetty that the import did not find (only the other one was "
      "published).",
      "It has an immediate but no target Jetty, is an atomic that is not aligned, has null memory, "
      "memory of a GPU that was freed, or a field with a value that its enumeration does not "
      "have."},
     "Keep to these limits, which are constants in urma/core/work.h, and use only what the import "
     "returned."},
    {Status::remote_access,
     "remote_access",
     "The target refused the access. Its memory is unchanged, except for data that had arrived "
     "before the segment was unregistered, or before its memory was unmapped.",
     {"The segment was unregistered, its token retired, or its owner restarted: the token is no "
      "longer valid.",
      "The range exceeds the segment, or the segment is guarded and its memory unmapped or "
      "read-only.",
      "The segment does not grant this kind of access (Rights)."},
     "Import the descriptor again, keep within the segment, and have its owner register it with "
     "the rights that are needed."},
    {Status::remote_unsupported,
     "remote_unsupported",
     "The target cannot execute this work, so it was not executed.",
     {"A message was longer than the receive buffer that waited for it.",
      "A message or an immediate went to a Jetty that was made without receive slots.",
      "The target's version does not know the operation, or it is an atomic on a guarded segment."},
     "Post larger receive buffers, or write with an immediate; make the target's Jetty with "
     "JettyOptions::receives; or upgrade the target."},
    {Status::receiver_not_ready,
     "receiver_not_ready",
     "The target answered, but had no receive slot for longer than receiver_timeout. The work was "
     "not executed.",
     {"Its application does not post receives, or does not poll its completions.",
      "Messages arrive faster than its application handles them."},
     "Have the target post receives and poll, give its Jetty more receives "
     "(JettyOptions::receives), or allow more time (receiver_timeout)."},
    {Status::receive_too_small,
     "receive_too_small",
     "A message arrived that was longer than the buffer posted for it. The content of the buffer "
     "is undefined; the sender's work failed as remote_unsupported.",
     {"Sender and receiver do not agree on the length of messages."},
     "Post larger receive buffers (a message is at most 64 KiB)."},
    {Status::peer_unreachable,
     "peer_unreachable",
     "No process answered at the target's address within the time allowed. The work was not "
     "executed.",
     {"No process has that address open, or it has ended.",
      "A firewall, a container's network or a missing route drops UDP on the way (port 4792).",
      "The process is stopped, or does not poll a device of Threads::inlined."},
     "Check that the other process runs and polls, that address and port are right, and that UDP "
     "passes between the hosts."},
    {Status::peer_restarted,
     "peer_restarted",
     "The process that the target belongs to has ended; another one may run at its address. The "
     "work was not executed.",
     {"It was started again, or closed its device and opened another one.",
      "A descriptor was kept from an earlier run."},
     "Import the name or descriptor again."},
    {Status::would_block,
     "would_block",
     "No berth is vacant at the moment.",
     {"All berths are in use: works were posted, and their completions have not been polled."},
     "Poll completions, which returns berths, and try again."},
    {Status::invalid_argument,
     "invalid_argument",
     "An argument of the call is invalid.",
     {"A device string, an address, a name or a descriptor is misspelt.",
      "An option is out of range, or two options exclude each other."},
     "Correct the argument that the message names."},
    {Status::not_found,
     "not_found",
     "The name is not published, or is published out of reach of this device.",
     {"Its publisher does not run yet, or has ended.",
      "It is published by another user, and not for other users (Audience).",
      "It is published on another kind of device (a window, another address) than this one."},
     "Check the spelling, and that the publisher runs; each address and each user has names of its "
     "own."},
    {Status::address_in_use,
     "address_in_use",
     "The address, the port or the name is in use.",
     {"Another process has the address and port open.",
      "This or another process publishes the name at the same address already."},
     "Choose another address (udp:127.0.0.N) or name, or leave the port out."},
    {Status::permission_denied,
     "permission_denied",
     "The system or the publisher denies access.",
     {"A file (a window, a device in /dev) belongs to another user.",
      "A directory for names does not belong to this user.",
      "A container or a limit forbids the call."},
     "Give this user access to the object that the message names, or choose another path."},
    {Status::version_mismatch,
     "version_mismatch",
     "The peer uses another version of the protocol. A work with this status was not executed.",
     {"Two versions of liburma run side by side, or share a window."},
     "Use one version on both sides: upgrade the older one."},
    {Status::no_resources,
     "no_resources",
     "A limit given at open, or a limit of the system, is reached. A work with this status was not "
     "executed: this device or the target had no room for another peer or queue.",
     {"More Jetties, segments or peers are needed than the device was opened for (Limits).",
      "A completion queue has too few entries for the Jetties that share it.",
      "The system has no memory, descriptors or threads left for this process, or no room in the "
      "file system of a window."},
     "Raise the limit that the message names (`Limits`, ulimit, a container's), or release some of "
     "the objects that it counts; \"urma_info --doctor\" shows whether /dev/shm has room."},
    {Status::unsupported,
     "unsupported",
     "This device or this version cannot do that. A work with this status was not executed.",
     {"The medium lacks the feature: a simulated device has no file descriptor to wait for.",
      "A window was made by another kernel, or lies in a file system without locks.",
      "An atomic has 16 to 64 bytes, or its segment has AtomicDomain::device."},
     "Choose another device: urma_info shows what each one can do."},
    {Status::closed,
     "closed",
     "The object has been closed.",
     {"Its device was closed or destroyed before.", "The object was moved from."},
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
     "Allow more time, or check that the other side runs and polls."},
    {Status::io_error,
     "io_error",
     "A call of the operating system failed.",
     {"The message quotes the reason that the system gave.",
      "A container forbids the call, or has another file system; see urma_info --doctor."},
     "Remove the cause that the message quotes (urma_info --doctor checks for the usual causes), "
     "and try again."},
    {Status::not_fenced,
     "not_fenced",
     "The segment is unregistered, but a late write by another process could not be ruled out.",
     {"A process that maps the window was stopped, or had no processor, in the middle of a copy."},
     "Let that process continue, or end it; until then do not rely on the content of the memory. "
     "The library does not allocate the memory again before that."},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(catalogue); ++i) {
    if (catalogue[i].status != static_cast<Status>(i)) return false;
  }
  return std::size(catalogue) == static_cast<size_t>(Status::not_fenced) + 1;
}
static_assert(in_order(), "each status has its row, in the order of the enumeration");

class StatusCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "urma"; }
  std::string message(int value) const override {
    return std::string(describe(static_cast<Status>(value)).meaning);
  }
};

constexpr StatusInfo no_status = {
    Status::io_error,
    "no such status",
    "The number is not a status of this version.",
    {"The header and the library, or the two sides, have different versions."},
    "Compare the versions of the header and the library."};

}  // namespace

const StatusInfo& describe(Status status) {
  const auto index = static_cast<size_t>(status);
  return index < std::size(catalogue) ? catalogue[index] : no_status;
}

const std::error_category& status_category() noexcept {
  static const StatusCategory category;
  return category;
}

StatusRange all_statuses() { return {std::begin(catalogue), std::end(catalogue)}; }

}  // namespace urma
