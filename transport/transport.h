#pragma once

#include <optional>
#include <span>

#include "base/entropy.h"
#include "base/flat_map.h"
#include "base/siphash.h"
#include "base/timer_wheel.h"
#include "transport/ctp.h"
#include "transport/rtp/tp.h"
#include "transport/utp.h"
#include "wire/setup_message.h"

namespace urma::transport {

struct Settings {
  Endpoint self;
  PathList paths{};  // with `self` first; none: there is one, for ever
  Balance balance = Balance::slice;
  Eid eid;
  Incarnation life{};
  uint32_t mtu = 1024;  // largest packet payload the driver carries
  Retransmission retransmission{};
  uint32_t tassn_window = 1024;    // W
  uint32_t reads = 64;             // outstanding at us, for each peer
  uint32_t atomic_results = 0;     // R
  uint32_t buffer_bytes = 200000;  // what the driver can hold that we have not read yet
  const congestion::ControllerKind* controller = nullptr;
  Duration setup_timeout = std::chrono::seconds(2);
  Duration idle_timeout{};  // a channel that carried nothing for so long is closed; zero: none is
  Ways* ways = nullptr;     // not null: nothing is lost, so channels are CTP's

  // Limits.
  uint32_t peers = 1024;
  uint32_t packets = 64 * 1024;  // in flight, over all channels
  uint32_t slices = 64 * 1024;   // offered, over all channels
};

// The peers of one engine and their channels. Frames come in by `receive`, go out by `fill`.
// Engine thread only.
class Transport final : public Channels {
 public:
  Transport(const Settings& settings, Entropy& entropy, PacketSink& sink);

  // The peer that lives at `at` with this EID (zero: whoever answers there) and this life (zero:
  // whichever answers). The same arguments name the same peer as long as it lives. A null handle
  // when the limit on peers is reached and none of them can be forgotten. `also`: its other paths.
  PeerId know(const Eid& eid, const Endpoint& at, Incarnation life,
              std::span<const Endpoint> also = {});

  // How what is sent to this peer is retransmitted, instead of Settings::retransmission. A channel
  // that was made otherwise is made anew.
  void choose(PeerId peer, const Retransmission& mode, Time now);

  struct PeerFacts {
    Eid eid;
    Endpoint at;
    Incarnation life{};
    bool connected = false;
    Duration rtt{};
    const Routes* routes = nullptr;  // several; until the next call of any other function
  };
  // Nothing when this life is over.
  std::optional<PeerFacts> facts(PeerId peer);

  // Channels
  Channel* channel(PeerId peer, Time now) override;
  bool knows(PeerId peer) override { return peers_.find(peer) != nullptr; }
  Eid address(PeerId peer) override;
  Why why_not(PeerId peer) override;
  Channel* unreliable(PeerId peer) override;

  void receive(std::span<const RxFrame> frames, Time now);
  size_t fill(PacketSource& source, std::span<TxFrame* const> frames, Time now);

  // Handles at most 64 deadlines that have passed.
  void handle_timers(Time now);
  Time next_deadline() const;
  // Of all frames that `fill` has written, the oldest that no driver reads any more.
  void settled(uint64_t frames) { utp_.settled(frames); }
  // Whether `fill` may have something to write.
  bool wants_to_send() const {
    return pending_setup_.count > 0 || pools_.active.size() > 0 || utp_.waits();
  }

  // Says goodbye to all peers; `closed` when they have heard or had their chance. Channels end
  // without a `down`.
  void close(Time now);
  bool closed() const { return closing_ && goodbyes_ == 0; }
  // Everything that was offered has been acknowledged.
  bool idle();

  const Endpoint& self() const { return settings_.self; }
  const Counters& counters() const { return counters_; }
  const PeerNews& news() const { return news_; }
  // Where this device is reached now.
  const PathList& paths() const { return paths_; }
  // From now on it is reached there: what is sent goes over these paths, and the peers are told.
  // What a device that was opened with one place only never is. A place that is gone still takes
  // what comes, until `close_place`: after that nothing is sent from there any more.
  void lead_paths(const PathList& paths, Time now);
  void close_place(uint8_t place) { places_.endpoints[place] = {}; }
  // No peer with a channel is still to be told.
  bool told_paths();
  // By our paths; zeros where there is one only.
  const AllPathTotals& path_totals() const { return path_totals_; }
  uint32_t channel_count() const { return tps_.size() + ctps_.size(); }
  uint32_t peer_count() const { return peers_.size(); }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  // In `tps_by_tpn_`: the TPN is promised to the channel that a peer is being asked for.
  static constexpr uint32_t opening_flag = 1u << 31;

  // One life of a process, and the making of a channel to it.
  struct Peer {
    Eid eid;
    Endpoint at;
    Incarnation life{};
    uint32_t tp = none;
    uint32_t routes = none;
    uint32_t mode = none;  // of the channel, if it is not Settings::retransmission
    uint32_t next_of_eid = none;
    bool asked_for = false;  // by `know`: somebody here holds its PeerId
    bool opening = false;
    bool answered_open = false;  // the channel was made by its OPEN, and has heard nothing yet
    bool notes_paths = false;    // it understands which paths there are without an OPEN
    bool spoke = false;          // packets came on a channel: works of it may have executed here
    bool may_retry = false;      // this set-up: a RETRY is answered at once
    bool refused = false;        // this set-up: it answered, though not with a channel
    bool given_up = false;       // the last set-up was in vain
    Why why_not = Why::unreachable;
    uint32_t number = 0;  // of this acquaintance, ours; what is forgotten is never known by it
    uint32_t their_number = 0;  // theirs; 0: not heard yet
    Time heard_at{};            // on the last channel
    uint16_t tries = 0;         // OPENs of this set-up, each over another path
    uint8_t goodbyes = 0;       // CLOSE still to be sent
    uint8_t closes = 0;         // likewise, for want of anything to say
    uint32_t attempt = 0;       // of our last OPEN
    uint32_t attempt_seen = 0;  // of its last OPEN
    Tpn tpn{};                  // ours: of the channel, or asked for
    uint32_t first_psn = 0;
    Tpn doubted_tpn{};  // of the channel in use, while another one is asked for
    uint32_t doubted_psn = 0;
    uint64_t cookie = 0;
    std::optional<Retransmission> chosen;
    Time opened_at{};
    Time sent_at{};
  };
  struct Outgoing {
    Endpoint to;
    Addresses addresses;
    SetupMessage message;
    uint32_t padded_to = 0;
    uint8_t path = 0;  // ours
  };
  struct Pending {
    static constexpr uint32_t capacity = 64;
    std::array<Outgoing, capacity> ring;
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct HashEid {
    uint64_t operator()(const Eid& eid) const;
  };

 public:
  // What each costs, for the budget.
  static constexpr size_t peer_bytes = sizeof(Peer);
  static size_t eid_entry_bytes() { return FlatMap<Eid, HashEid>::entry_bytes(); }
  static size_t tpn_entry_bytes() { return FlatMap<uint32_t>::entry_bytes(); }

 private:
  // Dispatch.
  bool take(const RxFrame& frame, Time now, size_t& count);
  bool take_compact(const RxFrame& frame, Time now, size_t& count);
  uint32_t channel_from(const Endpoint& from);
  void note_heard(const PacketChannel& channel);
  [[gnu::cold]] void handle_setup(std::span<const std::byte> packet, const Endpoint& from,
                                  Time now);
  bool handle_channel_packet(const Rtph& header, std::span<const std::byte> rest,
                             const RxFrame& frame, Time now, size_t waiting);
  bool comes_from(const PacketChannel& channel, const RxFrame& frame, Time now);
  bool handle_data(Tp& tp, const Rtph& header, std::span<const std::byte> rest, Time now,
                   size_t waiting);
  [[gnu::cold]] size_t fill_setup(std::span<TxFrame* const> frames);
  bool may_take_room(const TxFrame& frame);
  void deliver(std::span<const Received> packets, Time now);

  // Datagrams (transport_datagrams.cc).
  size_t fill_datagrams(std::span<TxFrame* const> frames, uint64_t filled_before);
  bool is_datagram(std::span<const std::byte> packet) const;
  bool take_datagram(std::span<const std::byte> packet, std::span<const std::byte> head,
                     const Endpoint& from, size_t waiting);
  PeerId who_lives(const Eid& eid, const Endpoint& at);

  // Set-up (transport_setup.cc).
  void handle_open(const ReceivedSetup& open, const Endpoint& from, Time now);
  void welcome(Peer& peer, const ReceivedSetup& open, const Endpoint& from, SetupMessage acceptance,
               Time now);
  void handle_retry(const ReceivedSetup& retry, const Endpoint& from, Time now);
  void handle_accept(const ReceivedSetup& accept, const Endpoint& from, Time now);
  void handle_refuse(const ReceivedSetup& refuse, Time now);
  void handle_reset(const ReceivedSetup& reset, const Endpoint& from, Time now);
  void handle_close(const ReceivedSetup& close, const Endpoint& from, Time now);
  void handle_closed(const ReceivedSetup& closed, Time now);
  void refuse(const ReceivedSetup& open, const Endpoint& at, SetupReason reason);
  void handle_question(const ReceivedSetup& question, const Endpoint& from);
  void handle_answer(const ReceivedSetup& answer, const Endpoint& from, Time now);
  void handle_paths(const ReceivedSetup& told, const Endpoint& from, Time now);
  void handle_noted(const ReceivedSetup& noted, const Endpoint& from);
  void begin_opening(Peer& peer, Time now);
  void cancel_opening(Peer& peer);
  void pause_while_asking(const Endpoint& to);
  [[gnu::cold]] void handle_peer_timer(Peer& peer, Time now);
  // A packet of data with so much payload.
  static uint32_t as_large_as(uint32_t payload);
  Outgoing opening(const Peer& peer) const;
  void send_open(Peer& peer, Time now);
  void send_open(Peer& peer, const Endpoint& to, Time now);
  void push_open(Peer& peer, const Outgoing& message, Time now);
  void send_close(Peer& peer, SetupReason reason, unsigned number_of_try);
  [[gnu::cold]] void send_reset(const SetupMessage& reset, const Endpoint& to, Time now);
  void answer(const ReceivedSetup& to, const Endpoint& at, SetupMessage message);
  [[gnu::cold]] void push_setup(const Outgoing& message);
  void drop_pending() {
    pending_setup_.first = (pending_setup_.first + 1) % pending_setup_.capacity;
    --pending_setup_.count;
  }
  const Retransmission& mode_for(const Peer* peer) const {
    return peer != nullptr && peer->chosen ? *peer->chosen : settings_.retransmission;
  }
  SetupMessage our_side(SetupType type, const Peer* peer = nullptr) const;
  uint64_t cookie(const ReceivedSetup& open, const Endpoint& from, uint64_t epoch) const;
  bool cookie_holds(const ReceivedSetup& open, const Endpoint& from, Time now) const;
  uint32_t mtu_to_ask(const Peer& peer) const;
  Peer* opening_peer(const ReceivedSetup& answer);
  bool taken(const Eid& eid, const Endpoint& from, Time now);
  bool could_end_something(const Eid& eid);
  bool acquainted(Peer*& peer, const ReceivedSetup& open, Time now);
  PacketChannel* channel_named(const ReceivedSetup& message);
  PacketChannel* channel_named(const ReceivedSetup& message, const Endpoint& from);
  // The same; if there is no such channel, counts the reason why the message is ignored.
  PacketChannel* channel_meant(const ReceivedSetup& message, const Endpoint& from);
  // Whether the message names this incarnation; if not, counts that it is ignored.
  bool names_us(const ReceivedSetup& message);
  // Counts a message that is ignored.
  static void ignore(uint64_t& reason) { ++reason; }
  bool may_live_at(const Eid& eid, const Endpoint& at);
  static bool of_late(const ReceivedSetup& reset, const Tp& tp, Psn first);

  // Idle channels (transport_idle.cc).
  Time closes_at(const PacketChannel& channel);
  // When the channel is to be looked at next.
  Time deadline_of(const PacketChannel& channel) {
    const Time next = channel.next_deadline();
    return idle_timeout_ == Duration{} ? next : std::min(next, closes_at(channel));
  }
  void ask_to_close(Peer& peer, Time now);
  void ask_again_to_close(Peer& peer, Time now);

  // Paths (transport_paths.cc).
  const Endpoint& endpoint_of(uint8_t path) const { return places_.endpoints[path]; }
  // This device may have several, now or later.
  bool has_paths() const { return settings_.paths.count > 0; }
  Routes* routes_of(const Peer& peer) {
    return peer.routes == none ? nullptr : &routes_.at(peer.routes);
  }
  void expect_paths(Peer& peer, std::span<const Endpoint> also);
  void learn_paths(Peer& peer, const PathList& theirs, const Endpoint& at, Time now);
  void forget_paths(Peer& peer);
  void move_peer(Peer& peer);
  void tell_peer(Peer& peer, Time now);
  void tend_paths(Peer& peer, Time now);
  void send_paths(Peer& peer, uint8_t route);
  void send_question(const Peer& peer, const Routes::Question& question);
  // What finds no room is dropped, and a question that never left would be one in vain: so none is
  // asked then, and what is due stays due. Half of the room is for answers and channels.
  bool may_ask() const { return pending_setup_.count < Pending::capacity / 2; }
  void tell_paths(Peer& peer);
  // Where and on which of our paths the next set-up message to this peer leaves.
  void aim(Outgoing& message, const Peer& peer, unsigned number_of_try);

  // Peers and channels.
  Peer* find_peer(const Eid& eid, const Endpoint& at, Incarnation life);
  Peer* create_peer(const Eid& eid, const Endpoint& at, Incarnation life);
  void forget_one();
  void probe_longest_silent(Time now);
  void name_peer(Peer& peer, const Eid& eid);
  void bind_life(Peer& peer, Incarnation life, Time now);
  void destroy_peer(Peer& peer);
  void end_peer(Peer& peer, Why why, Time now);
  Tpn new_tpn();
  // All channels are of one kind.
  bool compact() const { return settings_.ways != nullptr; }
  Carrier carrier() const { return compact() ? Carrier::compact : Carrier::unreliable; }
  bool live(uint32_t channel) const { return compact() ? ctps_.live(channel) : tps_.live(channel); }
  PacketChannel& at(uint32_t channel) {
    return compact() ? static_cast<PacketChannel&>(ctps_.at(channel)) : tps_.at(channel);
  }
  template <class Function>
  void for_each_channel(Function&& function) {
    compact() ? ctps_.for_each(function) : tps_.for_each(function);
  }
  // A place in a window, by what its address does not share with others.
  static uint64_t source_key(const Endpoint& from) {
    return load_be<8>(from.address.bytes.data() + 8);
  }
  void make_channel(Peer& peer, const SetupMessage& theirs, uint32_t mtu, Duration first_rtt,
                    Time now);
  const Retransmission* mode_of_channel(Peer& peer, uint32_t features);
  void make_channel_to_self(Peer& peer, Time now);
  [[gnu::cold]] void end_channel(Peer& peer, Why why, Time now);
  void drop_channel(Peer& peer);
  void tell_down(Peer& peer, Why why, Time now);
  PeerId id_of(const Peer& peer) const { return peers_.handle_of(&peer); }

  const Settings settings_;
  const Duration idle_timeout_;  // zero where a channel costs no memory of its own
  PathList paths_;               // ours: one, at least
  PathList places_;              // those, and what is about to be gone
  Entropy& entropy_;
  PacketSink& sink_;
  Counters counters_;
  PeerNews news_;
  Pools pools_;
  Slab<Peer> peers_;
  AllPathTotals path_totals_;
  Slab<Routes::Four> more_routes_;  // of those with more than four
  Slab<Routes> routes_;             // of peers with several paths
  Slab<Retransmission> modes_;      // of channels that have one of their own
  Slab<Tp> tps_;                    // RTP
  Slab<Ctp> ctps_;                  // or CTP
  FlatMap<uint64_t> ctps_by_source_;
  uint64_t latest_source_ = 0;  // where a packet came from last, 0: none; and its channel
  uint32_t latest_channel_ = none;
  FlatMap<Eid, HashEid> peers_by_eid_;  // first of a list
  FlatMap<uint32_t> tps_by_tpn_;
  TimerWheel tp_timers_;
  TimerWheel peer_timers_;
  SipHash cookies_;
  // What OPEN and ACCEPT say of our paths.
  std::array<std::byte, SetupMessage::most_paths_size> paths_said_{};
  size_t paths_said_bytes_ = 0;
  Pending pending_setup_;
  Utp utp_;
  uint64_t frames_filled_ = 0;
  static constexpr size_t burst = 64;
  IcrcPrefix received_prefix_;
  std::array<Received, burst> fresh_;  // within `receive` only
  // Copies of the headers of packets whose sender could still change them.
  static constexpr size_t head_bytes = 128;
  std::array<std::array<std::byte, head_bytes>, burst> heads_;
  Time now_{};
  uint8_t arrived_by_ = 0;  // our path that the set-up packet at hand came on
  uint32_t attempts_ = 0;
  uint32_t half_open_ = 0;
  uint32_t nameless_ = 0;  // peers that were asked by their address, and have not answered
  uint32_t resets_left_ = 0;
  Time resets_refilled_{};
  bool closing_ = false;
  uint32_t goodbyes_ = 0;
};

}  // namespace urma::transport
