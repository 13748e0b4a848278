#pragma once

#include <optional>
#include <span>

#include "base/flat_map.h"
#include "base/prng.h"
#include "base/timer_wheel.h"
#include "base/turns.h"
#include "jetty/flow.h"
#include "jetty/initiator/copier.h"
#include "jetty/initiator/counters.h"
#include "jetty/jetty.h"
#include "jetty/peers.h"
#include "transport/upper.h"
#include "wire/ta_chain.h"

namespace urma::jetty {

struct SlicePacket;

// Carries works to their completion: takes them from the Jetties, cuts them into slices, offers
// these to channels, writes their packets when the channel asks for them, handles the answers, and
// completes each work once. Every change of a slice goes through `step` (slice_table.h), except in
// `end_executed`, which ends several slices together as `step` would end each. It does not know
// packet numbers or losses. Transactions owns it; only the thread that runs the engine calls it.
class Initiator {
 public:
  struct Limits {
    uint32_t jetties;
    uint32_t flows;
    uint32_t slices;
  };
  Initiator(const Limits& limits, Jetties& jetties, PeerStates& peers,
            transport::Channels& channels, uint64_t seed);

  // ---- from the application

  // Sends or copies the work that was just posted before the work is recorded, if it is small and
  // no other work must precede it. `take` must follow, and records the work while the packet is on
  // its way. Returns false if it did nothing.
  bool send_ahead(Jetty& jetty);
  // Copies posted works to or from mapped memory and completes them, oldest first, until one has to
  // be recorded; at most `budget` works. Returns how many.
  uint32_t copy_posted(Jetty& jetty, uint32_t budget);
  // Returns whether no pass is needed for such copies: the state of the peer is being watched.
  bool watches_peer(const Jetty& jetty);
  // Takes at most `budget` posted works, and returns how many it took.
  uint32_t take(Jetty& jetty, uint32_t budget, Time now);
  // Takes all posted works, but begins none of them.
  void note(Jetty& jetty, Time now);
  // Ends all outstanding works of this Jetty, each as soon as its outcome is known.
  void flush(Jetty& jetty, Time now);
  // Ends the cancelled works of this Jetty, each as soon as its outcome is known.
  void end_cancelled(Jetty& jetty, Time now) { sweep_jetty(jetty, now); }
  // Ends the works that use this memory; `using_memory` returns whether such a work is left.
  void flush_memory(const std::byte* base, uint64_t bytes, Time now);
  bool using_memory(const std::byte* base, uint64_t bytes);
  // Call it before a Jetty is destroyed. The Jetty has no outstanding work.
  void detach(Jetty& jetty);
  Copier& copier() { return copier_; }
  const Copier& copier() const { return copier_; }

  // ---- outwards

  // Offers slices of queued works to their channels, or copies them if the target's memory is
  // mapped: at most `budget` slices, where a large copy counts as several. Returns false if it
  // could do nothing.
  bool cut(uint32_t budget, Time now);
  void write(transport::PacketSlot& packet);
  // Packets that are written from now on belong to this fill. Fills are numbered upwards.
  void begin_fill(uint64_t fill) { fill_ = fill; }
  // No driver reads memory for packets of fills up to this one any more.
  void settled(uint64_t fill, Time now);
  // Returns whether works whose status is decided wait for `settled`.
  bool settling() const { return settling_count_ > 0; }

  // ---- inwards

  void delivered(transport::SliceRef slice, Time now);
  void handle_response(PeerId peer, const ParsedResponse& response, Time now);
  [[gnu::cold]] void up(PeerState& peer, Time now);
  [[gnu::cold]] void down(PeerState& peer, transport::Why why, Time now);

  // ---- time

  void handle_timers(Time now);
  Time next_deadline() const;

  const InitiatorCounters& counters() const { return counters_; }
  // Returns whether works that waited for others may begin now; the next `cut` begins them.
  bool lets_go() const { return to_release_.size() > 0; }
  uint32_t open_slices() const { return slices_.size(); }

 private:
  struct Answer {
    bool given;
    Status status;
    uint8_t timer;  // if not ready: wait 2 us * 2^timer
    Answer() : given(false), status(Status::ok), timer(0) {}
    explicit Answer(Status answered) : given(true), status(answered), timer(0) {}
  };

  // Works.
  void launch(Jetty& jetty, uint16_t lease, Status refused, Time now);
  [[gnu::cold]] uint32_t take_datagrams(Jetty& jetty, uint32_t budget, Time now);
  std::optional<Status> send_datagram(const Jetty& jetty, uint16_t lease);
  void end_datagram(Jetty& jetty, Status status, Time now);
  void flush_datagrams(Jetty& jetty, const std::byte* base, uint64_t bytes, Time now);
  [[gnu::cold]] void start(Jetty& jetty, uint16_t lease, Time now);
  // Returns the Jetty's first flow, usually its only one, or null if that flow leads to another
  // peer.
  Flow* first_flow(const Jetty& jetty, PeerId peer) {
    if (jetty.first_flow == Flow::none) return nullptr;
    Flow& first = flows_.at(jetty.first_flow);
    return first.peer == peer && !first.peer_over ? &first : nullptr;
  }
  Flow* find_flow(const Jetty& jetty, PeerId peer);
  // Returns the Jetty's flow to this peer, which is made if there is none; null, and the reason, if
  // it cannot be made.
  Flow* flow_for(Jetty& jetty, PeerId peer, Status& why_not);
  void begin(Flow& flow, Jetty& jetty, uint16_t lease, Time now);
  bool all_copied(const Jetty& jetty, uint16_t lease, Flow& flow);
  void end_at_once(Jetty& jetty, uint16_t lease);
  void put_in_line(Flow& flow, Jetty& jetty, uint16_t lease, bool first);
  void take_out_of_line(Flow& flow, Jetty& jetty, uint16_t lease);
  [[gnu::cold]] void clear_line(Flow& flow, SliceEvent event, bool only_cancelled, Time now);
  void append(Jetty& jetty, uint16_t lease, Time now);
  [[gnu::cold]] void give_up_rest(Jetty& jetty, uint16_t lease, Status status, Time now);
  void finish(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now);
  void show(Jetty& jetty, uint16_t lease, Status status);
  bool cancel(WorkState& work, Time now);
  void slice_ended(Jetty& jetty, uint16_t lease, Status status, bool answered, Time now);

  // Order.
  bool may_begin(Jetty& jetty, uint16_t lease);
  uint32_t group_of(const Jetty& jetty, const Berth& berth);
  Order order_of(const Jetty& jetty, const Berth& berth, const Flow& flow);
  [[gnu::cold]] void left_gate(Jetty& jetty, uint16_t lease);
  bool release(Time now);
  [[gnu::cold]] void end_held(Jetty& jetty, Time now);
  void note_sequence_answer(Slice& slice, bool kept);
  [[gnu::cold]] void suspend(Jetty& jetty, Time now);

  // Slices.
  enum class Cut : uint8_t { done, blocked, no_memory };
  Cut cut_one(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer, Time now);
  bool copied(Jetty& jetty, uint16_t lease, uint32_t bytes, Time now);
  Cut cut_slice(Flow& flow, Jetty& jetty, uint16_t lease, PeerState& peer, Time now);
  void append(Flow& flow, Slice& slice, Jetty& jetty, WorkState& work);
  bool write_at_once(const Flow& flow, const Jetty& jetty, uint16_t lease, uint32_t from,
                     const PeerState& peer);
  [[gnu::cold]] void put_order(SlicePacket& packet, const Flow& flow, const Jetty& jetty,
                               uint16_t lease);
  bool asks_sequence(const Flow& flow, const Jetty& jetty, const Berth& berth);
  bool window_open(const Flow& flow, const PeerState& peer);
  bool results_open(const Flow& flow, const PeerState& peer);
  void note_atomic(Flow& flow, Slice& slice);
  void atomic_decided(Flow& flow, const Slice& slice);
  uint8_t weight_of(const Flow& flow);
  static uint32_t part_of_offer(const Flow& flow, const Jetty& jetty, const PeerState& peer,
                                uint32_t slice);
  bool offer(Slice& slice, Flow& flow, PeerState& peer, Time now);
  void apply(Slice& slice, SliceEvent event, Time now) { apply(slice, event, now, Answer{}); }
  void apply(Slice& slice, SliceEvent event, Time now, const Answer& answer);
  void end(Slice& slice, Time now);
  void erase(Slice& slice);
  void leave_offer(Slice& slice);
  void offer_later(Slice& slice);
  void stop_expecting(Slice& slice, Time now);
  [[gnu::cold]] void wait_for_receiver(Slice& slice, uint8_t timer, Time now);
  [[gnu::cold]] void reoffer(Flow& flow, PeerState& peer, Time now);
  SliceEvent cancellation(const Flow& flow, const WorkState& work, SliceState state);
  [[gnu::cold]] void sweep(Flow& flow, Time now);
  Slice* find(transport::SliceRef ref);
  Slice* find(Flow& flow, Tassn tassn);
  bool is_read(const Slice& slice);
  const Berth& berth_of(const Slice& slice);
  // Returns whether a driver may still read memory for packets of this slice. An answer does not
  // rule that out: a second copy of a packet may be in the device, or the peer may answer a slice
  // that it has not received.
  bool in_device(const Slice& slice) const { return slice.last_written > settled_; }
  bool leaves_gap(const Slice& slice, SliceState before, SliceEvent event) const;
  bool must_report(const Slice& slice, SliceState before, SliceEvent event) const;
  [[gnu::cold]] void report_cancelled(Slice& slice);
  [[gnu::cold]] void report_again(Slice& slice, Time now);
  bool only_tombstones(uint32_t slice) const;

  // Answers.
  void handle_answer(Flow& flow, const Atah& answer, Time now);
  uint32_t end_executed(Flow& flow, Tassn first, Tassn last, Time now);
  // Returns the slice that a response with data answers. Counts a late answer, ends the tombstone
  // that waited for it, and returns null.
  Slice* find_answered(Flow& flow, const ParsedResponse& response);
  void handle_read_response(Flow& flow, const ParsedResponse& response, Time now);
  void handle_atomic_response(Flow& flow, const ParsedResponse& response, Time now);

  // Deadlines.
  [[gnu::cold]] void check_deadline(Jetty& jetty, Time now);
  Time progress_of(const Jetty& jetty, const WorkState& work);
  [[gnu::cold]] void sweep_jetty(Jetty& jetty, Time now);

  void activate(Flow& flow);
  [[gnu::cold]] void retire(Flow& flow);
  uint32_t index_of(const Flow& flow) const { return flows_.index_of(&flow); }
  static uint64_t flow_key(PeerId peer, uint32_t rc_id) {
    return uint64_t{peer.index} << 32 | rc_id;
  }

  Jetties& jetties_;
  PeerStates& peers_;
  transport::Channels& channels_;
  Slab<Flow> flows_;
  FlatMap<uint64_t> flows_by_key_;  // peer index and RC id
  Slab<Slice> slices_;
  TimerWheel jetty_timers_;
  TimerWheel slice_timers_;
  Turns active_;      // flows that may have works to cut
  Turns to_release_;  // Jetties of which waiting works may begin
  // slices whose status is decided, but which a driver may still read
  RegionArray<uint32_t> settling_;
  uint32_t settling_count_ = 0;
  uint64_t fill_ = 0;
  uint64_t settled_ = 0;
  // The part of the work that `take` takes next which `send_ahead` has already done.
  struct Ahead {
    uint16_t lease = Queues::none;
    uint32_t copied = 0;  // bytes
    bool sent = false;    // the rest was sent
  };
  Ahead ahead_;
  bool noting_ = false;
  uint32_t checks_ = 0;
  uint32_t next_serial_ = 1;
  Prng jitter_;
  InitiatorCounters counters_;
  Copier copier_{counters_};
};

}  // namespace urma::jetty
