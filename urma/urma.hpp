// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Unified Bus (UB) programming model in user space. A process opens a device, makes memory
// segments and Jetties, posts works to the memory or the Jetty of any peer, and polls completions.
// An application never connects: the library makes a channel (a connection) to a peer when a work
// first needs one.
//
//   the process that owns memory
//     auto here = urma::open().value();
//     auto inbox = here.allocate(1 << 20).value();
//     auto jetty = here.jetty({.receives = 64}).value();
//     here.publish("inbox", inbox, jetty).value();
//     for (auto& arrival : jetty.wait(1s)) ...
//   the process that writes into it
//     auto here = urma::open().value();
//     auto inbox = here.import("urma://localhost/inbox").value();
//     auto jetty = here.jetty().value();
//     if (jetty.post(urma::write(bytes, inbox.segment).to(inbox.jetty).immediate(42)) != 1) ...
//     for (auto& done : jetty.wait(1s)) ...
//
// Errors: calls that can fail return a Result with a Status and a message. No call throws, with two
// exceptions: Result::value on an error throws std::runtime_error, and functions that return a
// std::string or a std::vector without a Result may throw std::bad_alloc. urma/core/status.h lists
// each Status with its cure; the comments below list the errors that each call can return.
//
// Which thread runs a device: while the application polls or waits, its own threads run the device.
// 0.2 to 3.2 ms after the last poll, a service thread of the device takes over, so that peers can
// reach the memory of a process that does not call the library. This is Threads::automatic, the
// default; DeviceOptions::threads selects another mode.
//
// Thread safety:
// - Device: any number of threads may call it at the same time, except that one thread at a time
//   calls `events`, and that none may call it during or after its destruction or move.
// - Segment: any number of threads may call its const functions at the same time; one thread at a
//   time calls the others.
// - Jetty, Jfr: one thread at a time posts works, one posts receives, and one polls, waits or arms.
//   These may be three different threads. One of these three tasks may pass to another thread if
//   the two threads synchronize (a mutex, a join).
// - Completion queues: one thread at a time polls a queue, also if several Jetties share it.
//   Meanwhile other threads may post to these Jetties, make further Jetties for the queue and
//   destroy them.
// - Jfce, JettyGroup, Import: one thread at a time.
// - Lane: the thread that made it; any thread may destroy it.
//
// Lifetimes: objects may be destroyed in any order. Closing or destroying a device ends everything
// that was made from it: its works complete, its segments are unregistered, and later calls return
// `closed`. In a child process made by fork(), calls return `forked`. The child neither affects the
// parent's device nor keeps it open: the address and the names of the device are released when the
// parent closes it.
//
// An object that was moved from may be destroyed, assigned to and called; calls of it never block.
// Control calls and Import::poll return `closed`; `poll` and `wait` of a queue return one
// completion with Status::closed; `events` returns one event of EventKind::closed; `post` and
// `take` return 0; `receive` and `arm` return false; calls of a Lane return `closed`; Jfce::fd
// returns -1; other calls return 0 or an empty value. A call with such an object as an argument
// (publish, attach, the options of a Jetty or a segment) fails as invalid_argument.
//
// Arguments: a call fails as invalid_argument if an option has a value that its enumeration does
// not have, a duration is negative, or a number is out of range. A span with a null pointer counts
// as empty, whatever its size; null memory in a work makes it complete as bad_work (see Buffer). A
// negative limit of `wait` counts as zero.
//
// Effects on the rest of the process: the library prints nothing unless the environment asks for a
// log (urma/core/configuration.h), and changes no process-wide state,
// with two exceptions, both of windows (cxl:). While a window of shared memory that lies in a file
// is open, the library handles SIGBUS, because any process that has the file may truncate it. It
// passes faults outside of its windows on to the previous handler, and restores that handler when
// the last window is closed. And once it has opened a window, other processes can have the kernel
// interrupt the threads of this one for a moment (membarrier), because an owner that revokes memory
// does so. The library's file descriptors are above 2, even if the process has closed its standard
// descriptors; descriptors that the C library opens while it resolves a host name or lists
// addresses may be lower.

#include "urma/core/cxx20.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/atomic_works.h"
#include "urma/core/budget.h"
#include "urma/core/configuration.h"
#include "urma/core/congestion_choice.h"
#include "urma/core/descriptor.h"
#include "urma/core/driver_info.h"
#include "urma/core/event.h"
#include "urma/core/export.h"
#include "urma/core/options.h"
#include "urma/core/path.h"
#include "urma/core/poll_and_arm.h"
#include "urma/core/profile.h"
#include "urma/core/result.h"
#include "urma/core/segment_options.h"
#include "urma/core/setting.h"
#include "urma/core/statistics.h"
#include "urma/core/work.h"

namespace urma {

// A segment: registered memory of this process that peers may read, write or change by atomics as
// far as its rights allow (UB 9). Made by Device::allocate and Device::register_memory. Move only;
// the destructor unregisters the segment.
class URMA_API Segment {
 public:
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  // Returns the memory of the segment, or an empty span if this object was moved from.
  std::span<std::byte> bytes() const;
  // Returns the rights with which the segment was registered.
  Rights rights() const;
  // Returns how atomics on the segment are executed: the AtomicDomain with which it was registered.
  AtomicDomain atomics() const;
  // Returns whether the segment lies in memory that the other devices on this device's medium map,
  // so that they access the segment by plain copies (RemoteSegment::mapped). This can be true only
  // for memory from Device::allocate.
  bool mapped() const;

  // Returns the segment as one line of text, for Device::import by any process. The line contains
  // the token, so every process that has the line has access to the segment. See
  // urma/core/descriptor.h.
  std::string descriptor() const;
  // Returns the segment as a RemoteSegment, for works of this device on its own memory.
  RemoteSegment local() const;

  // Draws a second token for this segment and all segments that share its TokenID, and returns it.
  // Both tokens are valid until `retire`, so peers that hold the old token keep access. From now on
  // descriptor() and local() contain the new token; a published name contains the old one until it
  // is unpublished and published again.
  // Errors: invalid_argument (two tokens are valid already; TokenPolicy::none; the segment is
  // unregistered or revoked), closed, forked.
  Result<TokenValue> rotate();
  // Ends the old token after `rotate`. When it returns ok, accesses with the old token are rejected
  // and none is in progress; accesses with the new token are never interrupted. Returns ok if there
  // is no old token. A peer that was handed the memory as a file (cxl:?share=segment) can use the
  // memory until `unregister`. Blocks for up to 20 ms; for memory of a GPU, for up to 1 s.
  // Errors: closed, forked; not_fenced if a peer was still copying then: a peer that began its copy
  // with the old token may finish it. Call `retire` again to wait for it.
  Result<void> retire();

  // Withdraws the segment. When it returns ok, no peer reads or writes the memory any longer: later
  // requests are refused, data that was being sent from it has left, works of this device that use
  // it have ended, and receives with buffers in it have completed as `flushed`. Both go on where
  // another segment has the memory, too, unless it is from `allocate` or of a GPU, or the device
  // reads segments by itself (`dpdk:`, `verbs:`). Usually takes microseconds, and at most one
  // operation timeout. Memory from `allocate` stays readable for the owner until the Segment is
  // destroyed.
  //
  // If a peer is still copying to or from mapped memory after 0.5 ms (because it was stopped, or
  // has no processor), the segment's pages are replaced by private copies with the same content, so
  // its remaining stores have no effect. bytes() keeps its address. This takes 0.5 ms for each MiB;
  // do not write to the memory during the call.
  //
  // Errors: closed, if Device::close has already unregistered the memory (the state is as after
  // ok); forked; not_fenced, also after close, if the pages cannot be replaced (huge pages, device
  // memory, or not enough memory). The call then returns after 0.5 to 0.8 ms; one late write of up
  // to 64 KiB is possible, and a peer that was handed the memory (cxl:?share=segment) may write
  // without limit. For memory of a GPU the call returns not_fenced after 1 s, if a copy of a peer
  // has not ended: its process was stopped between counting and beginning the copy, or its GPU
  // hangs. One late write of up to 64 MiB is possible. Call `unregister` again to try again. Until
  // it succeeds, the device does not allocate the memory to anything else (Device::quarantined).
  Result<void> unregister();
  // Unregisters all segments that share this segment's TokenID (SegmentOptions::with) in one step.
  // Errors: as `unregister`. Call `unregister` of each of these segments afterwards to learn
  // whether that segment is fenced.
  Result<void> revoke();

 private:
  friend class Device;
  struct State;
  URMA_LOCAL explicit Segment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A completion queue (UB: JFC) that several Jetties and Jfrs of one device share, made by
// Device::jfc and named in JettyOptions::completions or JfrOptions::completions. Polling a Jetty or
// Jfr that completes here polls this queue. Move only. A Jfc may be destroyed before its Jetties:
// these keep the queue, and the application then polls the Jetties.
//
// The completions of a destroyed Jetty stay in the queue; the entries that the Jetty had reserved
// are released once its completions have been polled. Until then a new Jetty may already have the
// same id, so Completion::jetty alone does not tell the two apart.
class URMA_API Jfc {
 public:
  Jfc(Jfc&&) noexcept;
  Jfc& operator=(Jfc&&) noexcept;
  ~Jfc();

  // These work as the functions of the same names of Jetty, for all Jetties and Jfrs that complete
  // here.
  [[nodiscard]] size_t poll(std::span<Completion> out);
  [[nodiscard]] std::span<const Completion> wait(Duration limit);
  Result<int> fd();
  [[nodiscard]] bool arm(Wake wake = Wake::any);

 private:
  friend class Device;
  friend class Jfce;
  struct State;
  URMA_LOCAL explicit Jfc(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A lane: one thread writes and reads a peer's mapped segment (RemoteSegment::mapped) at the speed
// of memory. Made by Jetty::lane. A call copies and returns how that ended: it posts no work, takes
// no berth and makes no completion. Rights and revocation are those of works: once the owner's
// `unregister` has returned, no call touches the memory. Move only.
//
// Use works instead where a lane cannot help:
// - a lane has no immediates, so the owner's application does not notice its calls; and it raises
//   no event when the owner ends;
// - calls and works have no order: a work that was posted before a call may execute after the call
//   has returned. Others see what one lane stores in the order of its calls;
// - the statistics do not count calls, and a device that captures (pcap) has no lanes;
// - a lane does not leave the host, and memory that is handed over as a file (cxl:,
//   share=segment) has none.
//
// Threads: the thread that made the lane calls it; other threads get invalid_argument. Any thread
// may destroy it, but not during a call. A lane works until its device is closed, and may outlive
// its Jetty. Until it is destroyed it is one of the max_lanes lanes of its device. While a device
// has lanes, its service thread wakes every 10 ms to look whether their owners are alive.
//
// Statuses, beside ok:
//   remote_access       outside of the segment; a right that it does not have; or it is revoked.
//                       Also while its owner ends an old token (Segment::retire), for up to 20 ms.
//                       Nothing was written; what was read is not valid.
//   unknown             the owner revoked the segment meanwhile: `write` may have changed some of
//                       it, an atomic all or nothing
//   peer_restarted      the owner's process has ended; a device that is run notices it in 10 ms
//   peer_unreachable    as for works, if the segment was revoked and no channel could be made
//   bad_work            an atomic on a word that is not aligned
//   unsupported         an atomic on a segment whose AtomicDomain is not `processor`; a buffer in
//                       memory of a GPU
//   invalid_argument    called by another thread than the one that made it
//   closed, forked      as for all objects
class URMA_API Lane {
 public:
  Lane(Lane&&) noexcept;
  Lane& operator=(Lane&&) noexcept;
  ~Lane();

  // Copies `data` to `offset` bytes from the beginning of the segment. Others see aligned words of
  // 4 and 8 bytes whole, if `data` is one such word.
  [[nodiscard]] Status write(std::span<const std::byte> data, uint64_t offset);
  // Copies from there to `data`.
  [[nodiscard]] Status read(std::span<std::byte> data, uint64_t offset);

  // Atomics on the word at `offset`, as those of urma/core/atomic_works.h; `previous` becomes the
  // value that the word had before. It is not set unless the status is ok or unknown.
  template <AtomicWord Word = uint64_t>
  [[nodiscard]] Status fetch_add(uint64_t offset, std::type_identity_t<Word> operand,
                                 std::type_identity_t<Word>& previous);
  template <AtomicWord Word = uint64_t>
  [[nodiscard]] Status swap(uint64_t offset, std::type_identity_t<Word> desired,
                            std::type_identity_t<Word>& previous);
  // The word was changed if `previous` equals `expected`.
  template <AtomicWord Word = uint64_t>
  [[nodiscard]] Status compare_swap(uint64_t offset, std::type_identity_t<Word> expected,
                                    std::type_identity_t<Word> desired,
                                    std::type_identity_t<Word>& previous);

 private:
  friend class Jetty;
  struct State;
  URMA_LOCAL explicit Lane(std::unique_ptr<State> state);
  template <class Word>
  Status change(Atomic what, uint64_t offset, Word operand, Word expected, Word& previous);
  Status operate(Atomic what, uint32_t bytes, uint64_t offset, uint64_t operand, uint64_t expected,
                 uint64_t& previous);
  std::unique_ptr<State> state_;
};

template <class Word>
Status Lane::change(Atomic what, uint64_t offset, Word operand, Word expected, Word& previous) {
  using Bits = std::make_unsigned_t<Word>;
  uint64_t before = 0;
  const Status status = operate(what, sizeof(Word), offset, static_cast<Bits>(operand),
                                static_cast<Bits>(expected), before);
  if (status == Status::ok || status == Status::unknown) previous = static_cast<Word>(before);
  return status;
}

template <AtomicWord Word>
Status Lane::fetch_add(uint64_t offset, std::type_identity_t<Word> operand,
                       std::type_identity_t<Word>& previous) {
  return change(Atomic::fetch_add, offset, operand, Word{}, previous);
}

template <AtomicWord Word>
Status Lane::swap(uint64_t offset, std::type_identity_t<Word> desired,
                  std::type_identity_t<Word>& previous) {
  return change(Atomic::swap, offset, desired, Word{}, previous);
}

template <AtomicWord Word>
Status Lane::compare_swap(uint64_t offset, std::type_identity_t<Word> expected,
                          std::type_identity_t<Word> desired,
                          std::type_identity_t<Word>& previous) {
  return change(Atomic::compare_swap, offset, desired, expected, previous);
}

// A Jetty: the queue to which works are posted and at which messages arrive (UB: a JFS and a JFR
// in one). Made by Device::jetty. Move only. The destructor ends its works as `flush` does; their
// completions are lost with the Jetty's own queue, while those in a shared Jfc can still be polled.
class URMA_API Jetty {
 public:
  Jetty(Jetty&&) noexcept;
  Jetty& operator=(Jetty&&) noexcept;
  ~Jetty();

  // Posts works in the order given and returns how many were accepted. It accepts fewer than given
  // when no berth (JettyOptions::berths) is vacant any longer: poll, then post the rest. The last
  // vacant berth takes only a signalled work. Each accepted work completes exactly once. The
  // library borrows the buffers of a work until its completion is polled; those of inline data only
  // until this call returns. Works are sent when the device is next run (see Threads), but
  // this call sends small replies over shared memory, and executes small works on mapped memory, if
  // no earlier work of the Jetty is outstanding. Never blocks, except as `open` says of engines=.
  // Returns 0 after close and in a forked child.
  [[nodiscard]] size_t post(std::span<const Work> works);
  [[nodiscard]] size_t post(const Work& work) { return post(std::span(&work, 1)); }
  [[nodiscard]] size_t post(std::initializer_list<Work> works) {
    return post(std::span(works.begin(), works.size()));
  }

  // Posts a buffer for one message (a `send` of a peer). When a message has arrived in the buffer,
  // the receive completes with Operation::receive and this tag. Writes with an immediate take a
  // receive slot, but no buffer. Never blocks.
  // Returns false if no receive slot is vacant (a Jetty has JettyOptions::receives of them, and
  // none with receives_from; polling an arrival makes its slot vacant again), if the buffer is not
  // valid memory (see Buffer), after close, and in a forked child.
  [[nodiscard]] bool receive(std::span<std::byte> buffer, uint64_t tag = 0);
  // Posts several buffers for one message, which fills them one after the other. Returns false if
  // there are more than max_buffers.
  [[nodiscard]] bool receive(std::span<const Buffer> buffers, uint64_t tag = 0);

  // Writes completions to `out` and returns how many. Never blocks. If there is no completion yet,
  // and the device is not Threads::served, `poll` first runs a pass of the engine.
  // Works complete in any order, whatever the order of their execution: use tags to tell them
  // apart. With JettyOptions::in_order they complete in the order in which they were posted.
  // In a forked child, each call returns one completion with Status::forked. After close, once all
  // completions have been taken, each call returns one with Status::closed.
  [[nodiscard]] size_t poll(std::span<Completion> out);
  // As `poll`, but waits up to `limit` for the first completion, and returns up to 64 completions.
  // The span is valid until the next call of `wait` on this object, and empty on a time-out. A
  // close by another thread ends the wait.
  [[nodiscard]] std::span<const Completion> wait(Duration limit);

  // Returns a file descriptor for poll, select or epoll, for threads that also wait for other
  // things. urma::poll_and_arm is the step to make before each sleep:
  //   while (poll_and_arm(jetty, handle) == urma::Armed::yes) epoll_wait(...);
  // The descriptor becomes readable once after each `arm` that returned true, when there is a
  // completion to poll, and when the device closes. It may become readable spuriously. `arm` makes
  // it unreadable again. Do not read, write or close it: the library owns it and closes it with the
  // queue. All Jetties that complete into one queue share one descriptor. After close, a descriptor
  // that was made before is still returned, so that it can be removed from an epoll set.
  // Errors: unsupported (inlined and simulated devices), invalid_argument (the queue is attached to
  // a Jfce), no_resources, closed, forked.
  Result<int> fd();
  // Arms the queue: when it has a completion to poll, its `fd`, or the Jfce to which it is
  // attached, becomes readable. Called by the thread that polls. Returns false, and arms nothing,
  // if there is a completion to poll already, if there is neither a descriptor nor a Jfce, after
  // close, and in a forked child: poll instead of sleeping. `wait` disarms the queue.
  // After this call the service thread runs a Threads::automatic device, until a thread of the
  // application calls `wait` or keeps polling without finding anything.
  // With Wake::solicited, only completions that are solicited (Work::solicited) or failed make the
  // descriptor readable; the others can be polled later.
  [[nodiscard]] bool arm(Wake wake = Wake::any);

  // These return how many works, or receives, can be posted now. The thread that posts works calls
  // vacant_berths, the thread that posts receives calls vacant_receives; another thread may poll
  // meanwhile. With JettyOptions::receives_from, vacant_receives returns 0.
  uint32_t vacant_berths() const;
  uint32_t vacant_receives() const;

  // Ends all works and receives of this Jetty. Works of which nothing was sent complete as
  // `flushed`. Works that may have executed complete as `unknown`, or with the target's answer if
  // it comes within some milliseconds. When this returns, all these completions can be polled. From
  // then on posted works complete as `flushed` and arrivals are refused, until `reset`. Receives
  // that were posted to a Jfr stay posted. Errors: closed, forked.
  Result<void> flush();
  // Ends all works of this Jetty, and lets none begin until `reset`, as `flush` does; but messages
  // still arrive, and posted receives stay. After `flush` it has no effect. Errors: closed, forked.
  Result<void> suspend();
  // Lets works run and messages arrive again, after `flush`, after `suspend`, or after a failed
  // work has suspended the Jetty (JettyOptions::suspend_on_error). Errors: closed, forked.
  Result<void> reset();

  // Opens a lane to a mapped segment, for the calling thread. Makes a channel to its owner if there
  // is none, which may take an operation timeout.
  // Errors: invalid_argument (the segment is empty), unsupported (it is not mapped, or its memory
  // is handed over as a file), remote_access (its token is not valid, or it is revoked),
  // no_resources (the device has max_lanes lanes), peer_restarted, peer_unreachable, closed,
  // forked.
  Result<Lane> lane(const RemoteSegment& segment);

  // Returns the number of the Jetty on its device, as in Completion::jetty and Event::jetty.
  JettyId id() const;
  // Returns the Jetty as one line of text, for Device::import by any process. The line contains the
  // token, so every process that has the line can send to this Jetty.
  std::string descriptor() const;
  // Returns the Jetty as a RemoteJetty, for works of this device to itself.
  RemoteJetty local() const;

 private:
  friend class Device;
  friend class Jfce;
  friend class JettyGroup;
  struct State;
  URMA_LOCAL explicit Jetty(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A receive queue (UB: JFR) that several Jetties share, made by Device::jfr and named in
// JettyOptions::receives_from. A message to any of these Jetties takes one of the Jfr's buffers; an
// immediate takes one of its receive slots. Their completions are polled from the Jfr, or from
// JfrOptions::completions if that is given; Completion::jetty is the Jetty that was the target. The
// Jfr has an id of its own, and peers can send to it directly. Move only.
//
// Flushing or destroying one of the Jetties does not affect the Jfr: messages that were arriving
// for that Jetty are refused, and their buffers become free for the others. When the Jfr is
// destroyed, its buffers are the application's again, messages that are arriving for its Jetties
// are refused, and later messages to them fail at their senders with `remote_unsupported`, as for
// Jetties without receives. The works of these Jetties go on.
class URMA_API Jfr {
 public:
  // These work as the functions of the same names of Jetty. One thread at a time posts buffers and
  // one polls; these need not be the threads that use the Jetties.
  [[nodiscard]] bool receive(std::span<std::byte> buffer, uint64_t tag = 0) {
    return jetty_.receive(buffer, tag);
  }
  [[nodiscard]] bool receive(std::span<const Buffer> buffers, uint64_t tag = 0) {
    return jetty_.receive(buffers, tag);
  }
  [[nodiscard]] size_t poll(std::span<Completion> out) { return jetty_.poll(out); }
  [[nodiscard]] std::span<const Completion> wait(Duration limit) { return jetty_.wait(limit); }
  Result<int> fd() { return jetty_.fd(); }
  [[nodiscard]] bool arm(Wake wake = Wake::any) { return jetty_.arm(wake); }
  uint32_t vacant_receives() const { return jetty_.vacant_receives(); }

  // Ends all posted receives, which complete as `flushed`. Messages that arrive meanwhile, and
  // those that arrive before buffers are posted again, wait at their senders. Errors: closed,
  // forked.
  Result<void> flush() { return jetty_.flush(); }
  // Lets messages to the Jfr itself arrive again after `flush`. Errors: closed, forked.
  Result<void> reset() { return jetty_.reset(); }

  // These work as the functions of the same names of Jetty: a peer sends to the Jfr as to a Jetty.
  JettyId id() const { return jetty_.id(); }
  std::string descriptor() const { return jetty_.descriptor(); }
  RemoteJetty local() const { return jetty_.local(); }

 private:
  friend class Device;
  friend class Jfce;
  explicit Jfr(Jetty jetty) : jetty_(std::move(jetty)) {}
  Jetty jetty_;
};

// A Jetty group (UB 6.1): Jetties of one device that peers address as one. Each send, and each
// write with an immediate, is received by one member, which the group chooses when the work's first
// data arrives (GroupPolicy); Completion::jetty says which. If no member can receive, the work
// waits, as for a Jetty; if no member accepts messages, it fails as `remote_unsupported`. A group
// adds no order: strong works are executed one after the other, also if different members receive
// them.
//
// Made by Device::jetty_group. A group counts as one of Limits::jetties. Members stay Jetties of
// their own; one may be in several groups, and may be destroyed before its groups. When the group
// is destroyed, messages to it are refused, except those whose data is arriving for a member. Move
// only. One thread at a time calls it.
class URMA_API JettyGroup {
 public:
  // Makes the Jetty a member, the last one in the group's order. The place of destroyed members is
  // taken by those behind them.
  // Errors: invalid_argument (a Jetty of another device, a member already), no_resources
  // (max_group_members), closed, forked.
  Result<void> add(const Jetty& jetty);
  // Ends the membership. Messages whose data is arriving for the Jetty still reach it.
  // Errors: invalid_argument (a Jetty of another device), not_found (no member), closed, forked.
  Result<void> remove(const Jetty& jetty);

  // These work as the functions of the same names of Jetty. The id has `group_bit`.
  JettyId id() const { return jetty_.id(); }
  std::string descriptor() const { return jetty_.descriptor(); }
  RemoteJetty local() const { return jetty_.local(); }

 private:
  friend class Device;
  explicit JettyGroup(Jetty jetty) : jetty_(std::move(jetty)) {}
  Jetty jetty_;  // without berths and receives
};

// An event channel (UB: JFCE): one file descriptor that becomes readable when any of the attached
// completion queues has entries. The queues may belong to one device or to several devices of this
// process.
//
//   auto events = device.jfce().value();
//   events.attach(jetty, 7).value();                    // before its fd() or arm()
//   Armed armed = poll_and_arm(jetty, handle);          // once for each queue
//   while (armed == Armed::yes) {
//     epoll_wait(...);                                  // events.fd() is readable
//     for (uint64_t tag : events.wait(0s)) armed = poll_and_arm(the queue `tag`, handle);
//   }
//
// The descriptor becomes readable once for any number of queues. Move only; used by one thread at a
// time. Queues may be destroyed before or after the Jfce; arming a queue that outlives its Jfce
// wakes no thread.
class URMA_API Jfce {
 public:
  Jfce(Jfce&&) noexcept;
  Jfce& operator=(Jfce&&) noexcept;
  ~Jfce();

  // Attaches a completion queue, which `take` and `wait` will report as `tag`. From now on `arm` of
  // the queue arms this event channel. Called by the thread that polls the queue. A queue can be
  // attached only once, stays attached, and then cannot have an `fd` of its own. For Jetties and
  // Jfrs that complete into a shared Jfc, attach that Jfc, or one of the Jetties and Jfrs.
  // Errors: invalid_argument (the queue has a descriptor, or is attached), unsupported (inlined and
  // simulated devices), no_resources, closed, forked.
  Result<void> attach(Jetty& jetty, uint64_t tag);
  Result<void> attach(Jfr& jfr, uint64_t tag) { return attach(jfr.jetty_, tag); }
  Result<void> attach(Jfc& jfc, uint64_t tag);

  // Returns the descriptor. It is readable while armed queues have entries that `take` has not
  // reported, and when the device of a queue closes. It may become readable spuriously. Do not
  // read, write or close it: it stays open until this object and the attached queues are destroyed.
  // Returns -1 if this object was moved from.
  int fd() const;
  // Finds the queues that have become ready since they were armed, writes their tags to `tags`, and
  // returns how many. Poll each of these queues until it is empty, and arm it again. If `take`
  // returns fewer tags than `tags` has room for, fd() is no longer readable. Never blocks. Returns
  // 0 in a forked child.
  [[nodiscard]] size_t take(std::span<uint64_t> tags);
  // As `take` for up to 64 tags, but waits up to `limit` for the first one. The span is valid until
  // the next call, and empty on a time-out.
  [[nodiscard]] std::span<const uint64_t> wait(Duration limit);

 private:
  friend class Device;
  struct State;
  explicit Jfce(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The result of an import: a segment, a Jetty, or both. The one that was not published is empty (0
// bytes, no peer), and works on it complete as bad_work.
struct Imported {
  RemoteSegment segment;  // the segment, or one of 0 bytes
  RemoteJetty jetty;      // the Jetty, or one without a peer
  // A sentence for people about a disadvantage that ImportOptions::retransmission has on this
  // medium. Empty if there is no disadvantage worth reporting, or if no mode was given.
  std::string warning{};
};

// An import that does not block, for threads that also wait for other things. Made by
// Device::start_import. Move only; the destructor ends the import.
//
//   auto import = device.start_import("urma://10.0.0.5/inbox", {.limit = 10s}).value();
//   for (;;) {
//     if (auto result = import.poll()) return *result;  // a Result<Imported>
//     epoll_wait(...);                                  // import.fd() is readable
//   }
//
// urma::asio::async_import does this for Boost.Asio.
class URMA_API Import {
 public:
  Import(Import&&) noexcept;
  Import& operator=(Import&&) noexcept;
  ~Import();

  // Makes the next step: looks whether the name is published here by now, and takes the answer of
  // the process that was asked. Returns nothing while the import goes on; then this call, and every
  // later one, returns the result. It waits for no peer and takes microseconds, with one exception:
  // the first import of a mapped segment of 4 MiB or more in a process takes about 20 ms, in which
  // it measures how this machine copies.
  // Errors: those of Device::import. After a close of the device, `closed`.
  [[nodiscard]] std::optional<Result<Imported>> poll();
  // Returns a file descriptor for poll, select or epoll. It is readable when `poll` has something
  // to do: an answer has arrived, the name has to be looked for again (every 10 ms if it may be
  // published on this host), or the limit has passed. It may become readable spuriously. A call of
  // `poll` makes it unreadable again; after the result it stays unreadable. Once the device has
  // been closed, it becomes readable within 100 ms, and within 10 ms if the name may be published
  // on this host. Do not read, write or close it: it is closed with this object.
  // Errors: unsupported (simulated devices, whose time advances with each call of `poll`), closed
  // (this object was moved from), forked.
  Result<int> fd() const;

 private:
  friend class Device;
  struct State;
  URMA_LOCAL explicit Import(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A device reaches peers over one medium; segments, Jetties and queues are made from it. It is made
// by urma::open. A process may open several devices. Move only; the destructor calls `close`.
class URMA_API Device {
 public:
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  // Allocates and registers zeroed memory, placed by the device. The memory is released when the
  // Segment is destroyed. A cxl: device allocates from its window while that has room: the other
  // devices in the window then read and write the memory by plain copies (Segment::mapped). If the
  // window has no room, or its lock is held for longer than 1 s (by a process that was stopped),
  // the memory is private. A child made by fork() shares the window's memory until the child exits,
  // and must not write to that memory after this process has unregistered it.
  // Errors: invalid_argument (0 bytes; SegmentOptions::with, guarded), no_resources, unsupported
  // (SegmentOptions::policy, atomics), closed, forked.
  Result<Segment> allocate(size_t bytes, const SegmentOptions& options = {});
  Result<Segment> allocate(size_t bytes, Rights rights,
                           AtomicDomain atomics = AtomicDomain::processor) {
    return allocate(bytes, SegmentOptions{.rights = rights, .atomics = atomics});
  }
  // Registers memory of the caller. The memory must stay mapped until the Segment is unregistered:
  // if a peer accesses an address that is not mapped, this process receives SIGSEGV, unless the
  // segment is guarded (SegmentOptions::guarded). The drivers of this version pin no memory, and
  // the time of the call does not depend on the size. If the rights include write or atomic, the
  // call asks the system whether this process may write to the first and the last page, and these
  // two pages are faulted in; the pages between them are not examined.
  // The memory may be that of a GPU (a pointer of CUDA, docs/gpu.md): works then copy it by CUDA's
  // driver. To be a buffer of works it must be registered with their device, perhaps as
  // Rights::local_only. Peers see no difference, except that it takes no notifications
  // (Work::notify) and no atomics, and is never Segment::mapped. Processors cannot access what
  // Segment::bytes then returns. Unregister the memory before you free it: works here that use
  // freed memory end as `bad_work` or `unknown`, and those of peers as `remote_access`, but those
  // of a peer whose GPU copies directly complete as if the memory were still there.
  // Errors: invalid_argument (0 bytes; null; a range that no process can have; memory that this
  // process may not write; memory of which one GPU has only a part; SegmentOptions::with),
  // no_resources, unsupported (SegmentOptions::policy, atomics; Rights::atomic for memory of a
  // GPU), closed, forked.
  Result<Segment> register_memory(std::span<std::byte> memory, const SegmentOptions& options = {});
  Result<Segment> register_memory(std::span<std::byte> memory, Rights rights,
                                  AtomicDomain atomics = AtomicDomain::processor) {
    return register_memory(memory, SegmentOptions{.rights = rights, .atomics = atomics});
  }
  // Returns the paths to a peer (RemoteSegment::peer, Completion::from) to which there is a channel
  // (UB 6.5). The vector is empty if there is only one path.
  // Errors: invalid_argument (the peer has exited or restarted, or is unknown), no_resources,
  // closed, forked.
  Result<std::vector<Path>> paths(PeerId peer);
  // Returns the address at which this device reaches the peer, that of its first path.
  // Errors: invalid_argument (the peer has exited or restarted, or is unknown), closed, forked.
  Result<Endpoint> endpoint(PeerId peer) const;
  // Adds a path to a device that was opened as `paths():...`. `device` is a device string that
  // could have been part of that string, such as "udp:10.0.2.1". Returns the address at which peers
  // reach the new path. Peers are notified immediately; the path carries packets once a probe over
  // it has been answered, usually within two round trips; EventKind::path_added reports this. A
  // device has up to 8 paths.
  // Errors: invalid_argument (not a device string, or it cannot be combined with the other paths),
  // address_in_use, permission_denied, no_resources (8 paths exist; no descriptors left),
  // unsupported (the device was not opened as paths()), closed, forked.
  Result<Endpoint> add_path(std::string_view device);
  // Removes the path with this address (Path::from, endpoints()). The first path can be removed,
  // too: the EID of the device and its channels stay. When the call returns, nothing is sent from
  // the address any longer, the driver no longer reads memory for packets sent from it, and the
  // address can be used again. The call waits until the peers have acknowledged the removal, at
  // most 50 ms. No work fails: packets lost with the path are sent again over the others.
  // Descriptors that contain only removed addresses can no longer be imported.
  // Errors: invalid_argument (not an address of this device, or the last one), no_resources,
  // closed, forked.
  Result<void> remove_path(const Endpoint& place);
  // Lists the unregistered memory of this device's medium, of any owner, that cannot be allocated
  // yet, because a process that is not running may still write to it, or because this device has
  // handed it to a peer. There is one entry for each segment and process, at most 256 in all.
  // Errors: no_resources, closed, forked.
  Result<std::vector<Quarantined>> quarantined();

  // Makes a Jetty.
  // Errors: invalid_argument (JettyOptions), no_resources (Limits::jetties; too few entries in a
  // shared completion queue: the message has the number needed), address_in_use (JettyOptions::id),
  // unsupported (JettyOptions::id with engines=), closed, forked.
  Result<Jetty> jetty(const JettyOptions& options = {});
  // Makes a shared receive queue, which counts as one of Limits::jetties. Errors: as `jetty`.
  Result<Jfr> jfr(const JfrOptions& options = {});
  // Makes a group of Jetties without members. Errors: as `jetty`; unsupported also if the device
  // has several engines, because the members of a group must belong to one.
  Result<JettyGroup> jetty_group(const JettyGroupOptions& options = {});
  // Makes a completion queue with `depth` entries, 1 to 2^22. Each Jetty that completes there
  // reserves berths + 2 * receives entries, and each Jfr reserves 2 * receives entries.
  // Errors: invalid_argument, no_resources, closed, forked.
  Result<Jfc> jfc(uint32_t depth);
  // Makes an event channel. Errors: no_resources, closed, forked.
  Result<Jfce> jfce();

  // Writes events to `out`, oldest first, and returns how many. Events report what completions do
  // not (urma/core/event.h). Never blocks. At least 256 events are buffered; further ones are
  // dropped and counted in one event of EventKind::missed. After close, once all events have been
  // taken, each call returns one event of EventKind::closed. Returns 0 in a forked child. One
  // thread at a time may call it.
  [[nodiscard]] size_t events(std::span<Event> out);
  // Returns a file descriptor that is readable while there are events to take, and when the device
  // closes. Do not read, write or close it. An inlined device detects events only while it is
  // polled. After close, a descriptor that was made before is still returned.
  // Errors: no_resources, closed, forked.
  Result<int> events_fd();

  // Publishes a segment, a Jetty or both under a name, for `import` by other processes, until
  // `unpublish` or until this device is closed. A name has 1 to 64 characters, which are letters
  // (A-Z, a-z), digits, `.`, `_` or `-`; it does not start with a dot, and is unique for each
  // address of this host. `audience` says which processes may import it; by default, those of this
  // user on this host.
  // Errors: invalid_argument, address_in_use (this or another process publishes the name at this
  // address already), permission_denied, no_resources, io_error, closed, forked.
  Result<void> publish(std::string_view name, const Segment& segment, const Jetty& jetty,
                       const Audience& audience = this_user());
  Result<void> publish(std::string_view name, const Segment& segment,
                       const Audience& audience = this_user());
  Result<void> publish(std::string_view name, const Jetty& jetty,
                       const Audience& audience = this_user());
  // These two publish a Jfr, which importers see as a Jetty.
  Result<void> publish(std::string_view name, const Segment& segment, const Jfr& jfr,
                       const Audience& audience = this_user()) {
    return publish(name, segment, jfr.jetty_, audience);
  }
  Result<void> publish(std::string_view name, const Jfr& jfr,
                       const Audience& audience = this_user()) {
    return publish(name, jfr.jetty_, audience);
  }
  // These two publish a group of Jetties, which importers see as a Jetty.
  Result<void> publish(std::string_view name, const Segment& segment, const JettyGroup& group,
                       const Audience& audience = this_user()) {
    return publish(name, segment, group.jetty_, audience);
  }
  Result<void> publish(std::string_view name, const JettyGroup& group,
                       const Audience& audience = this_user()) {
    return publish(name, group.jetty_, audience);
  }
  // Ends the publication of a name. Segments and Jetties that peers have imported by the name stay
  // valid.
  // Errors: not_found (this device does not publish it), closed, forked.
  Result<void> unpublish(std::string_view name);

  // Imports a segment, a Jetty or both. `what` is a descriptor line, or a name:
  //   urma://localhost/NAME       published by a process of this user on this host, at any IP
  //                               address or, on a window device, in that window; found without
  //                               the network
  //   urma://ADDRESS/NAME         published at that address; this device asks the process that has
  //                               UDP port 4792 open there
  //   urma://ADDRESS:PORT/NAME    published by the process that has that port open there
  // ADDRESS is numeric or a host name. If ADDRESS and PORT are those of this device itself, it asks
  // no process. It then finds what this user's processes publish at ADDRESS and, if that is
  // 127.0.0.N, also what they publish at other loopback addresses. Open udp:ADDRESS:0 to leave port
  // 4792 to the publisher.
  //
  // A descriptor is not checked with its owner: if it is no longer valid, works that use it fail.
  // If a name is not published yet, the call blocks until it is, for up to ImportOptions::limit, so
  // the two processes may start in any order.
  //
  // ImportOptions::retransmission sets how everything that this device sends to that process is
  // retransmitted from now on; an existing channel is replaced. A mode that this medium cannot use
  // is an invalid_argument; if another mode is better for this medium, Imported::warning says so.
  // Errors: invalid_argument, not_found, peer_unreachable, permission_denied, version_mismatch,
  // no_resources, closed, forked.
  Result<Imported> import(std::string_view what, const ImportOptions& options = {});
  Result<Imported> import(std::string_view what, Duration limit) {
    return import(what, ImportOptions{.limit = limit});
  }
  // Starts an import that does not block: call Import::poll until it returns the result.
  // ImportOptions::limit is counted from this call. The number of imports at the same time is not
  // limited; each has a file descriptor. A host name in `what`, unlike a numeric address and
  // "localhost", makes this call wait for the system's resolver (DNS).
  // Errors: invalid_argument, no_resources, closed, forked; not_found (the resolver does not know
  // the host). Import::poll returns the other errors of `import`.
  Result<Import> start_import(std::string_view what, const ImportOptions& options = {});

  // Returns the address at which this device was opened, which is that of its first engine. It does
  // not change.
  Endpoint endpoint() const;
  // Returns the addresses at which peers reach the device now, one for each of its paths. May throw
  // std::bad_alloc.
  std::vector<Endpoint> endpoints() const;
  // Returns the EID of this device (UB 1), which is that of its first engine.
  Eid eid() const;
  // Returns the length of the longest message of ServiceMode::unreliable, in bytes: the payload of
  // one packet on this device's medium. A receiver may have a smaller limit; 1024 bytes always
  // pass.
  uint32_t datagram_bytes() const;
  // Returns the device string and the values that the driver chose, as a text for people. May throw
  // std::bad_alloc.
  std::string description() const;
  // Returns each value that the device works with, and its source: an option, the system, the
  // medium. Errors: no_resources, closed, forked.
  Result<SettingList> settings();
  // Returns all congestion controls of the library, the default one first, and for each the
  // one that this device would use if that were asked for. May throw std::bad_alloc.
  std::vector<CongestionChoice> congestion_choices() const;
  // Returns the counters of the device; `all_metrics` explains each. With several engines, each has
  // peers, channels and a Jetty of its own, which are added. Errors: closed, forked.
  Result<Statistics> stats();
  // Returns how long each stage of the device's work took, since it was opened; `all_stages`
  // explains each. Errors: invalid_argument (DeviceOptions::profile was not set), closed, forked.
  Result<Profile> profile();

  // Returns the memory that one object of each kind costs, part by part. May throw std::bad_alloc.
  static Budget budget();

  // Ends everything that was made from this device, and notifies the peers. Blocks for up to an
  // operation timeout and 0.2 s. Does nothing if the device is closed. A peer that was in the
  // middle of a copy to or from a mapped segment may finish that copy, and a peer that was handed a
  // segment (cxl:?share=segment) can use it, until Segment::unregister, which may be called before
  // or after close and ends both.
  void close();

 private:
  friend URMA_API Result<Device> open(std::string_view device, const DeviceOptions& options);
  struct State;
  URMA_LOCAL explicit Device(std::unique_ptr<State> state);
  URMA_LOCAL static Result<Device> make(std::string_view text, const DeviceOptions& options);
  URMA_LOCAL Result<Jetty> make_jetty(std::string_view call, const JettyOptions& options,
                                      std::optional<GroupPolicy> group = {});
  URMA_LOCAL Result<Segment> add_segment(std::unique_ptr<Segment::State> segment,
                                         const SegmentOptions& options);
  URMA_LOCAL Result<void> publish_line(std::string_view name, const std::string& line,
                                       const Audience& audience);
  std::unique_ptr<State> state_;
};

// The default device: this user's window of shared memory, which is the fastest way to other
// processes of this user on this host. It does not reach processes of other hosts or other users.
inline constexpr std::string_view default_device = "cxl:";

// Opens a device. `device` is a device string, DRIVER:ADDRESS?OPTION=VALUE&..., for example
//   cxl:   cxl:/dev/shm/ub0?size=64M          a window: reaches devices that open the same one
//   udp:   udp:10.0.0.5   udp:[::1]?mtu=4096  UDP: reaches any host
//   fault(loss=5%,seed=7):udp:127.0.0.1       UDP that loses 5 % of the packets
//   pcap(file=/tmp/x.pcapng):udp:             UDP whose packets are also written to a file
// Each of these device strings accepts the option `retransmit=sel-fast`, or another name of
// named_retransmissions().
// `udp:` and `cxl:` devices accept the option `engines=N`, 1 to 8. Then the device has N ports, and
// another thread can run each, so N threads with a Jetty each do not wait for one another. Each
// Jetty, Jfr and Jfc belongs to the next engine in turn, or to that of the queues that it shares.
// Limits hold for each engine. Works of one Jetty may reach a peer that has several engines over
// different channels, and the first work to an engine of such a peer blocks `post` until the engine
// has run, as a control call does. Not with Threads::inlined.
// list_drivers() describes all drivers and their options. Devices of different drivers do not reach
// one another; a process may open several devices. Any thread may call it.
// Errors: invalid_argument (the message quotes the position), address_in_use, permission_denied,
// no_resources, version_mismatch, unsupported, io_error.
URMA_API Result<Device> open(std::string_view device, const DeviceOptions& options = {});
// Opens the device that the user chose: the variable URMA_DEVICE, or the configuration file, or
// else `default_device`. Errors: as above, and those of `configuration`.
URMA_API Result<Device> open(const DeviceOptions& options = {});

// Returns what the environment and the configuration file set, for tools that show it; opens no
// device. urma/core/configuration.h says what can be set, and which calls use it. Any thread may
// call it, unless another one changes the environment meanwhile. Errors: invalid_argument (a line
// of the file, or a value), not_found or permission_denied (the file), no_resources.
URMA_API Result<Configuration> configuration();

// Returns the drivers of this build, and how their device strings are written. Opens no device. Any
// thread may call it. May throw std::bad_alloc.
URMA_API std::vector<DriverInfo> list_drivers();

}  // namespace urma
