#pragma once

// The Unified Bus programming model: open a device, make memory and Jetties, post works to any
// peer's memory or Jetty, poll completions. Nothing is connected; nothing throws (but Result::value
// on an error, which is the caller's choice, and std::bad_alloc where what is returned is a text).
//
//   the one that owns memory
//     auto here = urma::open().value();
//     auto inbox = here.allocate(1 << 20).value();
//     auto jetty = here.jetty({.receives = 64}).value();
//     here.publish("inbox", inbox, jetty).value();
//     for (auto& arrival : jetty.wait(1s)) ...
//   the one that writes into it
//     auto here = urma::open().value();
//     auto inbox = here.import("urma://localhost/inbox").value();
//     auto jetty = here.jetty().value();
//     if (jetty.post(urma::write(bytes, inbox.segment).to(inbox.jetty).immediate(42)) != 1) ...
//     for (auto& done : jetty.wait(1s)) ...
//
// Threads: while the application polls or waits, its own threads run the device, and nothing is
// handed to another; some 0.2 ms after it stopped, a thread of the device's own does, so that the
// memory of a process that makes no call can be reached (Threads::automatic, the default).
//
// A Device and its control calls may be used by any thread. Of a Jetty or Jfr one thread at a time
// posts works, one posts receives, and one polls; they may be different ones, and each may hand its
// part to another thread by whatever makes one wait for the other (a mutex, a join). What completes
// into one queue is polled by one thread at a time for all of it, while others post, and while
// Jetties are made on it and destroyed.
//
// Lifetimes: objects may be destroyed in any order. Closing or destroying a device ends everything
// that was made from it: its works complete, its segments are unregistered, later calls answer
// `closed`. In a child made by fork, calls answer `forked`, and the parent's device is neither
// touched nor kept open: its address and names are free when the parent has gone.
//
// An object that was moved from holds nothing. It may be destroyed, assigned to and called: control
// calls answer `closed`, `poll` and `wait` give one completion with Status::closed, `events` one of
// EventKind::closed, `post` and `take` return 0, `receive` and `arm` false, other calls 0 or
// something empty, Jfce::fd -1. None of them waits. As an argument (publish, attach, the options of
// a Jetty or a segment) it is an invalid_argument.
//
// Options with a value that its enumeration does not have, a negative duration, or a number out of
// range are an invalid_argument. A span at null holds nothing, whatever size it has; null memory in
// a work is bad_work (Buffer). A negative limit of `wait` is zero.
//
// The rest of the process: nothing that belongs to all of it is changed, and nothing is printed.
// One exception: while a window in a file is open (cxl:), SIGBUS is handled, since anybody who has
// the file may cut it off. Faults that are not in the window go to whoever handled them before;
// with the last window that is closed, all is as it was.
// Descriptors of the library lie above 2, also when the process has closed its standard ones; only
// those that the C library opens while it resolves a host's name or lists addresses do not.

#include "urma/core/cxx20.h"

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "urma/core/atomic_works.h"
#include "urma/core/budget.h"
#include "urma/core/descriptor.h"
#include "urma/core/driver_info.h"
#include "urma/core/event.h"
#include "urma/core/export.h"
#include "urma/core/options.h"
#include "urma/core/path.h"
#include "urma/core/result.h"
#include "urma/core/segment_options.h"
#include "urma/core/setting.h"
#include "urma/core/statistics.h"
#include "urma/core/work.h"

namespace urma {

// Memory of this process that peers may read or write, as far as its rights say. Unregistered when
// destroyed. Move only.
class URMA_API Segment {
 public:
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  std::span<std::byte> bytes() const;
  Rights rights() const;
  AtomicDomain atomics() const;
  // Whether it lies in memory that others on this device's medium map (RemoteSegment::mapped).
  bool mapped() const;

  // One line of text that lets whoever has it access this memory (it holds the token).
  std::string descriptor() const;
  // As an import of it would be: for works of this device on its own memory.
  RemoteSegment local() const;

  // A second token for this segment, and for all that share its TokenID; the first one is good
  // until `retire`, so that nobody is refused who still has it. From now on descriptor() and
  // local() hold the second one; a published name does not, until it is published again. Errors:
  // invalid_argument (there are two already, it has none, it is revoked), closed, forked.
  Result<TokenValue> rotate();
  // Ends the first one: after this returns, no access with it is let in, and none is under way. The
  // second one is never refused. Who was handed the memory for it (cxl:?share=segment) can use it
  // until `unregister`. Errors: closed, forked; not_fenced, as below, after 20 ms.
  Result<void> retire();

  // After this returns, no peer reads or writes the memory: requests are refused, data on its way
  // out has left, works of this device that use it have ended, and receives with buffers in it have
  // completed as `flushed`. At most one operation timeout, as a rule microseconds. Memory from
  // allocate() is given back by the destructor.
  // Who was in the middle of a copy into mapped memory, and has not gone on after 0.5 ms (it was
  // stopped, or has no processor), goes on in pages that nobody sees: bytes() get others, with the
  // same content, which takes 0.5 ms for each MiB; do not write there meanwhile.
  // Errors: closed, the device's close has unregistered the memory before, so that it is as after
  // `ok`; forked; not_fenced, also after close, after 0.5 to 0.8 ms: that cannot be done with this
  // memory (huge pages, a device), or for want of some: it may write once more, up to 64 KiB;
  // whoever was handed it (cxl:?share=segment), as often as he likes. Nobody else is given the
  // memory before (Device::quarantined). Ask again then.
  Result<void> unregister();
  // The same for all segments that share its TokenID, at once (SegmentOptions::with). Those of them
  // that were not fenced each say so when they are unregistered.
  Result<void> revoke();

 private:
  friend class Device;
  struct State;
  URMA_LOCAL explicit Segment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A completion queue that several Jetties and Jfrs of its device share, whichever threads post to
// them. Polled by one thread at a time, and polling a Jetty or Jfr that completes here is polling
// it. Move only. It may be destroyed before its Jetties: they go on completing, and are polled.
//
// Jetties may be made on it and destroyed while it is polled. What a destroyed one had reserved of
// it returns when what it completed has been polled; until then another Jetty may already have its
// id, so that Completion::jetty alone does not tell the two apart.
class URMA_API Jfc {
 public:
  Jfc(Jfc&&) noexcept;
  Jfc& operator=(Jfc&&) noexcept;
  ~Jfc();

  // As the same calls of a Jetty, for all Jetties that complete here.
  [[nodiscard]] size_t poll(std::span<Completion> out);
  [[nodiscard]] std::span<const Completion> wait(Duration limit);
  Result<int> fd();
  bool arm(Wake wake = Wake::any);

 private:
  friend class Device;
  friend class Jfce;
  struct State;
  URMA_LOCAL explicit Jfc(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Where works are posted and messages arrive (JFS and JFR in one). Move only; when destroyed, its
// works end. Their completions go with its own queue; those in a shared Jfc can still be polled.
class URMA_API Jetty {
 public:
  Jetty(Jetty&&) noexcept;
  Jetty& operator=(Jetty&&) noexcept;
  ~Jetty();

  // Takes works in order and returns how many: fewer than given when no berth is vacant (poll, then
  // post the rest). What is taken completes exactly once. The last vacant berth takes only a
  // signalled work. Buffers are borrowed until the completion is polled, those of inline data until
  // this returns. Works leave when the device is next run (`Threads`), a small one that answers
  // something over shared memory at once. Never blocks. 0 after close and in a forked child.
  [[nodiscard]] size_t post(std::span<const Work> works);
  [[nodiscard]] size_t post(const Work& work) { return post(std::span(&work, 1)); }
  [[nodiscard]] size_t post(std::initializer_list<Work> works) {
    return post(std::span(works.begin(), works.size()));
  }

  // Posts a buffer for one message (send). Returns false when no receive slot is vacant (poll
  // returns them; there are JettyOptions::receives, none with receives_from), after close and in a
  // forked child; and always if the buffer cannot be memory (Buffer: null, or a range that no
  // process can have). Its completion has operation `receive` and this tag. Immediates of writes
  // need no buffer.
  [[nodiscard]] bool receive(std::span<std::byte> buffer, uint64_t tag = 0);
  // Several buffers, filled one after the other. Always returns false with more than max_buffers.
  [[nodiscard]] bool receive(std::span<const Buffer> buffers, uint64_t tag = 0);

  // Takes completions, at most as many as `out` holds; returns how many. Never blocks. Runs a
  // pass of the engine when there is none yet, unless the device is served. In a forked child: one
  // completion with Status::forked. After close, when nothing is left: one with Status::closed.
  // Different works complete in any order, whatever their order of execution: tags tell them apart.
  // With JettyOptions::in_order they complete in the order in which they were posted.
  [[nodiscard]] size_t poll(std::span<Completion> out);
  // Waits for completions, at most `limit`, and takes them. The span is good until the next call of
  // `wait` on this object. Empty when the time is over. A close from another thread ends it.
  [[nodiscard]] std::span<const Completion> wait(Duration limit);

  // A descriptor for poll, select or epoll, for who waits for other things too:
  //   for (;;) {
  //     while (size_t count = jetty.poll(completions)) handle(first `count` of them);
  //     if (jetty.arm()) epoll_wait(...);
  //   }
  // It becomes readable, once, when there is something to poll after `arm` returned true, and when
  // the device closes; now and then for nothing. Do not read, write or close it: `arm` makes it
  // unreadable, and the library closes it with the queue. One for all that complete into one queue.
  // After close, a descriptor that was made before is still returned, so that it can be taken out
  // of an epoll set. Errors: unsupported on inlined and simulated devices, no_resources, closed,
  // forked; invalid_argument: it is attached to a Jfce.
  Result<int> fd();
  // For the thread that polls. False: poll first, there is something (after close and in a forked
  // child always), or there was no `fd` and no Jfce. A `wait` disarms. An automatic device is run
  // by its own thread from here on, until somebody polls for longer than it takes to find nothing,
  // or waits. Wake::solicited: sleep on while what completes is neither solicited nor failed; it is
  // polled later.
  bool arm(Wake wake = Wake::any);

  // For the thread that posts works, and the one that posts receives: what they can post now.
  // Others may poll meanwhile. There are no receives when a Jfr has them.
  uint32_t vacant_berths() const;
  uint32_t vacant_receives() const;

  // Ends all works and receives: those that never left as `flushed`, those that may have executed
  // as `unknown`, or as the target says if it answers in time (some milliseconds). Their
  // completions can be polled when this returns. From then on posted works complete as `flushed`
  // and arrivals are refused, until `reset`. Receives of a Jfr wait on. Errors: closed, forked.
  Result<void> flush();
  // After `flush`, or when a work has failed (JettyOptions::suspend_on_error): works run again.
  Result<void> reset();

  JettyId id() const;
  // One line of text that lets whoever has it send to this Jetty (it holds its token).
  std::string descriptor() const;
  RemoteJetty local() const;

 private:
  friend class Device;
  friend class Jfce;
  struct State;
  URMA_LOCAL explicit Jetty(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A receive queue that several Jetties share (JettyOptions::receives_from): a message or immediate
// to any of them takes one of its buffers or permits, and completes here (or in JfrOptions::
// completions); Completion::jetty says which Jetty it came to. It has an id of its own, and can be
// sent to itself. Move only.
//
// A Jetty that is flushed or destroyed takes nothing along: what was arriving for it is refused,
// and gives its buffer back to the others. When the Jfr is destroyed its waiting buffers are free,
// what is arriving for its Jetties is refused, and whoever sends to them from then on is told
// `remote_unsupported`, as if they had no receives; their works go on.
class URMA_API Jfr {
 public:
  // As the same calls of a Jetty. One thread at a time posts buffers, one polls; neither need be
  // one that uses the Jetties.
  [[nodiscard]] bool receive(std::span<std::byte> buffer, uint64_t tag = 0) {
    return jetty_.receive(buffer, tag);
  }
  [[nodiscard]] bool receive(std::span<const Buffer> buffers, uint64_t tag = 0) {
    return jetty_.receive(buffers, tag);
  }
  [[nodiscard]] size_t poll(std::span<Completion> out) { return jetty_.poll(out); }
  [[nodiscard]] std::span<const Completion> wait(Duration limit) { return jetty_.wait(limit); }
  Result<int> fd() { return jetty_.fd(); }
  bool arm(Wake wake = Wake::any) { return jetty_.arm(wake); }
  uint32_t vacant_receives() const { return jetty_.vacant_receives(); }

  JettyId id() const { return jetty_.id(); }
  std::string descriptor() const { return jetty_.descriptor(); }
  RemoteJetty local() const { return jetty_.local(); }

 private:
  friend class Device;
  friend class Jfce;
  explicit Jfr(Jetty jetty) : jetty_(std::move(jetty)) {}
  Jetty jetty_;
};

// One descriptor for who sleeps until any of several completion queues has something (UB: JFCE), be
// they of one device or of several of this process:
//
//   auto events = device.jfce().value();
//   events.attach(jetty, 7).value();     // before its fd() or arm()
//   jetty.arm();                         // false: poll it first
//   for (;;) {
//     epoll_wait(...);                   // events.fd() is readable
//     for (uint64_t tag : events.wait(0s)) {
//       do { poll the queue `tag` until it is empty } while (!its arm());
//     }
//   }
//
// It is woken once for all that came at once. Move only; used by one thread at a time. Its queues
// may go before it, or after it, and then wake nobody.
class URMA_API Jfce {
 public:
  Jfce(Jfce&&) noexcept;
  Jfce& operator=(Jfce&&) noexcept;
  ~Jfce();

  // From now on `arm` of this queue is for this channel, which will call it `tag`. For the thread
  // that polls it. Jetties and Jfrs that complete into a shared Jfc are attached with that one.
  // Errors: invalid_argument (it has a descriptor, or is attached), unsupported on inlined and
  // simulated devices, no_resources, closed, forked.
  Result<void> attach(Jetty& jetty, uint64_t tag);
  Result<void> attach(Jfr& jfr, uint64_t tag) { return attach(jfr.jetty_, tag); }
  Result<void> attach(Jfc& jfc, uint64_t tag);

  // Readable when armed queues have something, and when their device closes; now and then for
  // nothing. Do not read, write or close it. It lives as long as this object and its queues.
  int fd() const;
  // The tags of queues that were told since they were armed, at most as many as `tags` holds: poll
  // those until they are empty, and arm them again. Fewer than it holds: fd() is not readable any
  // more. Never blocks. 0 in a forked child.
  [[nodiscard]] size_t take(std::span<uint64_t> tags);
  // The same, waiting for the first one at most `limit`. The span, of at most 64, is good until the
  // next call.
  [[nodiscard]] std::span<const uint64_t> wait(Duration limit);

 private:
  friend class Device;
  struct State;
  explicit Jfce(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What an import finds: a segment, a Jetty, or both. What was not published is empty (bytes 0, no
// peer), and works on it complete as bad_work.
struct Imported {
  RemoteSegment segment;
  RemoteJetty jetty;
  // What ImportOptions::retransmission costs on this medium; empty: nothing worth saying.
  std::string warning{};
};

// One way to the network and everything that uses it. Move only. Several may be open in a process.
class URMA_API Device {
 public:
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  ~Device();

  // Memory where the device likes it, zeroed; given back when the Segment is destroyed. On cxl it
  // is the window's while that has room: others in the window then write and read it by themselves
  // (Segment::mapped). A child of fork shares it for as long as it lives, and must not write there
  // once this process has unregistered it. Else, or while somebody who was stopped has the window's
  // lock, it is private.
  // Errors: invalid_argument (0 bytes; SegmentOptions::with, guarded), no_resources, unsupported
  // (SegmentOptions::policy), closed, forked.
  Result<Segment> allocate(size_t bytes, const SegmentOptions& options = {});
  Result<Segment> allocate(size_t bytes, Rights rights,
                           AtomicDomain atomics = AtomicDomain::processor) {
    return allocate(bytes, SegmentOptions{.rights = rights, .atomics = atomics});
  }
  // Memory of the caller's; it must outlive the registration, and stay mapped for that long: if a
  // peer reads or writes an address that is not, this process gets SIGSEGV, unless the segment is
  // guarded (SegmentOptions::guarded). Nothing is pinned by the drivers of this version, and the
  // time it takes does not depend on the size. For rights to write the system is asked whether this
  // process may write the first and the last page, and these two pages are faulted in; pages
  // between them are not looked at. Errors: as above; invalid_argument (this process may not write
  // there; null; a range that no process can have).
  Result<Segment> register_memory(std::span<std::byte> memory, const SegmentOptions& options = {});
  Result<Segment> register_memory(std::span<std::byte> memory, Rights rights,
                                  AtomicDomain atomics = AtomicDomain::processor) {
    return register_memory(memory, SegmentOptions{.rights = rights, .atomics = atomics});
  }
  // The paths to a peer (`RemoteSegment::peer`, `Completion::from`) with a channel: empty if there
  // is one only (UB 6.5). Errors: closed, forked, invalid_argument (its life is over),
  // no_resources.
  Result<std::vector<Path>> paths(PeerId peer);
  // Another path for a device that was opened as `paths():...`: opens `device`, as it would stand
  // there ("udp:10.0.2.1"), and returns where it is reached. Peers learn of it at once, and it
  // carries as soon as it has answered, mostly within two round trips; events say path_added. At
  // most eight. Errors: invalid_argument (no such device, or it fits not beside the others),
  // address_in_use, permission_denied, no_resources (eight are there; descriptors), unsupported
  // (opened with one path), closed, forked.
  Result<Endpoint> add_path(std::string_view device);
  // Takes away the path that is reached there (Path::from, endpoints()), the first one too: who it
  // is and its channels stay. When it returns nothing is sent from there any more, the driver has
  // read all that was, and its address is free. Peers have learnt of it, or 50 ms are over. No work
  // fails; what is lost with it is sent again over the others. Descriptors that name only places
  // that are gone do not lead here any more. Errors: invalid_argument (not one of its places, or
  // the last), closed, forked, no_resources.
  Result<void> remove_path(const Endpoint& place);
  // Memory of this device's medium that is revoked, whoever's it was, and not given to anybody
  // while somebody who does not run may still write there, or whom this device handed it to: one
  // for each of them. Errors: closed,
  // forked, no_resources.
  Result<std::vector<Quarantined>> quarantined();

  // Errors: invalid_argument, no_resources (Jetties; entries of a shared completion queue, with the
  // sum that would be needed), closed, forked.
  Result<Jetty> jetty(const JettyOptions& options = {});
  // It is one of the Limits::jetties. Errors: as above.
  Result<Jfr> jfr(const JfrOptions& options = {});
  // `depth`: entries; a Jetty needs berths + 2 * receives of them, a Jfr 2 * receives. 1 to 2^22.
  Result<Jfc> jfc(uint32_t depth);

  // Errors: no_resources, closed, forked.
  Result<Jfce> jfce();

  // Takes events, which no completion tells (urma/core/event.h), oldest first; returns how many.
  // Never blocks. 256 and more are kept for who does not ask, then `missed` counts. After close,
  // when there are none left: `closed`, each time. 0 in a forked child. By one thread at a time.
  size_t events(std::span<Event> out);
  // Readable while there are events to take, and when the device closes. Do not read, write or
  // close it. An inlined device finds out what happens only while it is polled. After close, a
  // descriptor that was made before is still returned. Errors:
  // no_resources, closed, forked.
  Result<int> events_fd();

  // Lets others find a segment, a Jetty or both by name, for as long as this device is open or
  // until unpublished. A name is unique per address of this host.
  // Errors: invalid_argument (a name has 1 to 64 of A-Z a-z 0-9 . _ -), address_in_use (taken),
  // permission_denied, io_error, closed, forked.
  Result<void> publish(std::string_view name, const Segment& segment, const Jetty& jetty,
                       const Audience& audience = this_user());
  Result<void> publish(std::string_view name, const Segment& segment,
                       const Audience& audience = this_user());
  Result<void> publish(std::string_view name, const Jetty& jetty,
                       const Audience& audience = this_user());
  // A Jfr is a target like a Jetty.
  Result<void> publish(std::string_view name, const Segment& segment, const Jfr& jfr,
                       const Audience& audience = this_user()) {
    return publish(name, segment, jfr.jetty_, audience);
  }
  Result<void> publish(std::string_view name, const Jfr& jfr,
                       const Audience& audience = this_user()) {
    return publish(name, jfr.jetty_, audience);
  }
  Result<void> unpublish(std::string_view name);

  // What a descriptor line says, or what is published as
  //   urma://localhost/NAME       by this user on this host, at IP addresses or, from a window, in
  //                               it; no network
  //   urma://ADDRESS/NAME         at that address; asks whoever holds port 4792 there
  //   urma://ADDRESS:PORT/NAME    by that process
  // A device that was opened at ADDRESS before the publisher asks itself: there it finds what this
  // user publishes, and for 127.0.0.N also what is published at another loopback address. Open
  // udp:ADDRESS:0 to leave port 4792 to the publisher.
  // A descriptor is not checked with its owner: works on it find out. A name that nobody has
  // published yet is waited for, at most `limit`: the two sides may start in any order.
  // `options.retransmission`: how what is sent to that process is retransmitted from now on, by all
  // of this device; a channel that is there already is made anew. invalid_argument where this
  // medium has no use for the mode, and `Imported::warning` where there is a better one.
  // Errors: invalid_argument, not_found, peer_unreachable, version_mismatch, no_resources, closed,
  // forked.
  Result<Imported> import(std::string_view what, const ImportOptions& options = {});
  Result<Imported> import(std::string_view what, Duration limit) {
    return import(what, ImportOptions{.limit = limit});
  }

  // Where others reach this device since it was opened, and who it is.
  Endpoint endpoint() const;
  // Where they reach it now, over each of its paths. Any thread. Throws std::bad_alloc.
  std::vector<Endpoint> endpoints() const;
  Eid eid() const;
  // The longest message of ServiceMode::unreliable: the payload of one packet, as this device's
  // medium carries it. Who receives it may be behind a narrower one: 1024 pass everywhere.
  uint32_t datagram_bytes() const;
  // What was opened and what it chose, for people.
  std::string description() const;
  // All that it works with, one by one, and who decided it: options, the system, the medium. Any
  // thread. Errors: closed, forked, no_resources.
  Result<SettingList> settings();
  // What it has counted: `all_metrics` explains each number. Errors: closed, forked.
  Result<Statistics> stats();

  // What one object of each kind costs, part by part. Throws std::bad_alloc.
  static Budget budget();

  // Ends everything made from this device and tells the peers. At most an operation timeout and
  // 0.2 s. The destructor does it too. A peer that was in the middle of a copy into a mapped
  // segment may finish that one, and whoever was handed one (cxl:?share=segment) can use it until
  // `unregister`, which sees to both, before or after.
  void close();

 private:
  friend URMA_API Result<Device> open(std::string_view device, const DeviceOptions& options);
  struct State;
  URMA_LOCAL explicit Device(std::unique_ptr<State> state);
  URMA_LOCAL static Result<Device> make(std::string_view text, const DeviceOptions& options);
  URMA_LOCAL Result<Jetty> make_jetty(std::string_view call, const JettyOptions& options);
  URMA_LOCAL Result<Segment> add_segment(std::unique_ptr<Segment::State> segment,
                                         const SegmentOptions& options);
  URMA_LOCAL Result<void> publish_line(std::string_view name, const std::string& line,
                                       const Audience& audience);
  std::unique_ptr<State> state_;
};

// This user's window of shared memory: the fastest way to all processes of this user on this host.
// Processes of other hosts, or of other users, are not in it.
inline constexpr std::string_view default_device = "cxl:";

// Opens a device by its string: DRIVER:ADDRESS?OPTION=VALUE&..., for example
//   cxl:   cxl:/dev/shm/ub0?size=64M                   a window: who shares it reach one another
//   udp:   udp:10.0.0.5   udp:[::1]?mtu=4096           any network; any host
//   fault(loss=5%,seed=7):udp:127.0.0.1                a bad one
//   pcap(file=/tmp/x.pcapng):udp:                      one whose packets are written to a file
// `retransmit=sel-fast`, or another of named_retransmissions(), is an option of any of them.
// Devices of different drivers do not reach one another; a process may open several.
// Errors: invalid_argument (quoting the place), address_in_use, permission_denied, no_resources,
// version_mismatch, io_error.
URMA_API Result<Device> open(std::string_view device = default_device,
                             const DeviceOptions& options = {});

// The drivers of this build and how their device strings are written. Opens nothing.
URMA_API std::vector<DriverInfo> list_drivers();

}  // namespace urma
