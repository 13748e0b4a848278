#include "transport/transport.h"

#include <algorithm>

#include "base/assert.h"
#include "base/copy.h"
#include "wire/icrc.h"

namespace urma::transport {
namespace {

constexpr size_t timers_at_a_time = 64;

// A string instruction would take longer than all the rest, and loads after it would wait for it.
void copy_head(std::byte* to, const std::byte* from, size_t bytes) {
  size_t at = 0;
  for (; at + 32 < bytes; at += 16) std::memcpy(to + at, from + at, 16);
  copy_bytes(to + at, from + at, bytes - at);
}

}  // namespace

uint64_t Transport::HashEid::operator()(const Eid& eid) const {
  return mix_bits(load_be<8>(eid.bytes.data()) ^ mix_bits(load_be<8>(eid.bytes.data() + 8)));
}

Transport::Transport(const Settings& settings, Entropy& entropy, PacketSink& sink)
    : settings_(settings),
      idle_timeout_(compact() ? Duration{} : settings.idle_timeout),
      paths_(settings.paths.count > 0 ? settings.paths
                                      : PathList{.count = 1, .endpoints = {settings.self}}),
      places_(paths_),
      entropy_(entropy),
      sink_(sink),
      pools_(settings.packets, settings.slices, settings.peers),
      peers_(settings.peers),
      more_routes_(settings.peers),
      routes_(settings.peers),
      modes_(settings.peers),
      tps_(settings.peers),
      ctps_(settings.peers),
      ctps_by_source_(settings.peers),
      peers_by_eid_(settings.peers),
      tps_by_tpn_(2 * settings.peers),
      tp_timers_(settings.peers),
      peer_timers_(settings.peers),
      cookies_(entropy.next(), entropy.next()),
      paths_said_bytes_(emit_paths(paths_, paths_said_)),
      utp_(settings.mtu, carrier(), counters_) {}

// ---- inwards

void Transport::receive(std::span<const RxFrame> frames, Time now) {
  now_ = now;
  size_t count = 0;
  for (const RxFrame& frame : frames) {
    count += compact() ? take_compact(frame, now, count) : take(frame, now, count);
    if (count == burst) {
      deliver(fresh_, now);
      count = 0;
    }
  }
  deliver(std::span(fresh_).first(count), now);
}

// True: `fresh_[count]` is a packet for the layer above. Delivers earlier ones, if it must.
bool Transport::take(const RxFrame& frame, Time now, size_t& count) {
  const std::span<const std::byte> packet(frame.data, frame.bytes);
  if (packet.size() < Rtph::size + icrc_bytes || packet.size() % 4 != 0) {
    ++counters_.malformed;
    return false;
  }
  if (!verify(packet, *frame.from, endpoint_of(frame.path), received_prefix_)) {
    ++counters_.bad_icrc;
    return false;
  }
  ++counters_.received;
  const auto body = packet.first(packet.size() - icrc_bytes);
  const auto header = Rtph::parse(body.first<Rtph::size>());
  if (!header) {
    ++counters_.malformed;
    return false;
  }
  if (header->opcode == static_cast<uint8_t>(TpOpcode::unreliable)) {
    if (is_datagram(body)) return take_datagram(body, body, *frame.from, count);
    // What it says may end channels that earlier packets of the burst belong to.
    deliver(std::span(fresh_).first(std::exchange(count, 0)), now);
    arrived_by_ = frame.path;
    handle_setup(body, *frame.from, now);
    return false;
  }
  return handle_channel_packet(*header, body.subspan(Rtph::size), frame, now, count);
}

// The same over a medium that loses nothing, and whose packets may lie where their sender can write
// still: what is read of one to decide anything is copied first.
bool Transport::take_compact(const RxFrame& frame, Time now, size_t& count) {
  std::array<std::byte, head_bytes>& head = heads_[count];
  const size_t copied = std::min<size_t>(frame.bytes, head_bytes);
  copy_head(head.data(), frame.data, copied);
  ++counters_.received;
  const auto header =
      copied < Ctph::size ? std::nullopt : Ctph::parse(std::span(head).first<Ctph::size>());
  if (!header) {
    ++counters_.malformed;
    return false;
  }
  if (header->next == NextHeader::full_addresses) {
    const auto packet = std::span(frame.data, frame.bytes);
    const auto beginning = std::span<const std::byte>(head).first(copied);
    if (is_datagram(beginning)) {
      return take_datagram(packet, beginning, *frame.from, count);
    }
    const std::array<std::byte, head_bytes> setup = head;
    deliver(std::span(fresh_).first(std::exchange(count, 0)), now);
    handle_setup(std::span(setup).first(copied), *frame.from, now);
    return false;
  }
  const uint32_t index = channel_from(*frame.from);
  if (index == none) {
    ++counters_.unknown_channel;
    if (header->opcode == Ctph::Opcode::packet) send_reset({}, *frame.from, now);
    return false;
  }
  Ctp& channel = ctps_.at(index);
  if (header->next != NextHeader::transaction || header->opcode == Ctph::Opcode::congestion) {
    ++counters_.malformed;
    return false;
  }
  note_heard(channel);
  if (channel.handle_packet(now)) sink_.up(channel.peer(), channel, now);
  const bool filler = header->opcode == Ctph::Opcode::filler;
  if (filler && frame.bytes == Ctph::size) return false;  // it was asked whether we live
  Received& out = fresh_[count];
  out = {.peer = channel.peer(),
         .channel = index,
         .slice = channel.name_slice(),
         .last = true,
         .in_order = true,
         .withdrawn = filler,
         .head = std::span<const std::byte>(head).first(copied).subspan(Ctph::size),
         .bytes = std::span(frame.data, frame.bytes).subspan(Ctph::size)};
  if (sink_.admits(out, count)) return true;
  // It will not come again: its initiator finds out in time. It has taken more than its share.
  ++counters_.no_memory;
  return false;
}

// Most packets come from where the one before came from.
uint32_t Transport::channel_from(const Endpoint& from) {
  const uint64_t source = source_key(from);
  if (source != latest_source_) {
    latest_channel_ = ctps_by_source_.find(source);
    latest_source_ = source;
  }
  return latest_channel_;
}

void Transport::note_heard(const PacketChannel& channel) {
  if (channel.heard()) return;
  Peer& peer = *peers_.find(channel.peer());
  peer.spoke = true;
  if (!peer.answered_open) return;
  peer.answered_open = false;
  --half_open_;
  if (!peer.opening && peer.goodbyes == 0) peer_timers_.disarm(peers_.index_of(&peer));
}

void Transport::deliver(std::span<const Received> packets, Time now) {
  if (!packets.empty()) sink_.accept(packets, now);
}

// From where the peer lives, over any of its paths.
bool Transport::comes_from(const PacketChannel& channel, const RxFrame& frame, Time now) {
  Routes* const routes = compact() ? nullptr : tps_.at(channel.index()).routes();
  if (routes == nullptr) return channel.to() == *frame.from;
  const auto route = routes->find(frame.path, *frame.from);
  if (route) routes->came(*route, now);
  return route.has_value();
}

// True: `fresh_[waiting]` is a packet for the layer above.
bool Transport::handle_channel_packet(const Rtph& header, std::span<const std::byte> rest,
                                      const RxFrame& frame, Time now, size_t waiting) {
  const uint32_t index = tps_by_tpn_.find(header.destination);
  if (!tps_.live(index)) {
    ++counters_.unknown_channel;
    // A channel that is being made will be known in a moment; one that nobody knows is reset.
    if (index == none && header.opcode == static_cast<uint8_t>(TpOpcode::data)) {
      SetupMessage reset;
      reset.from_tpn = header.destination;
      reset.to_tpn = header.source;
      reset.echoed_psn = header.psn;
      arrived_by_ = frame.path;
      send_reset(reset, *frame.from, now);
    }
    return false;
  }
  Tp& tp = tps_.at(index);
  if (!comes_from(tp, frame, now) || number(tp.remote()) != header.source) {
    ++counters_.wrong_source;
    return false;
  }
  if (header.next != NextHeader::transaction || rest.size() < header.padding) {
    ++counters_.malformed;
    return false;
  }
  note_heard(tp);
  pools_.active.add(index);
  rest = rest.first(rest.size() - header.padding);
  switch (static_cast<TpOpcode>(header.opcode)) {
    case TpOpcode::data:
      return handle_data(tp, header, rest, now, waiting);
    case TpOpcode::ack:
    case TpOpcode::selective_ack:
      tp.handle_ack(header, rest, now, sink_);
      if (tp.routes() != nullptr && tp.routes()->any_news()) tell_paths(*peers_.find(tp.peer()));
      return false;
    default:
      ++counters_.malformed;
      return false;
  }
}

bool Transport::handle_data(Tp& tp, const Rtph& header, std::span<const std::byte> rest, Time now,
                            size_t waiting) {
  // A keep-alive is filler without a BTAH: once received it has done its duty.
  const bool keep_alive = header.fake && rest.empty();
  Received& out = fresh_[waiting];
  out = {.peer = tp.peer(),
         .channel = tp.index(),
         .slice = header.tpmsn,
         .last = header.last,
         .in_order = tp.in_order(header),
         .withdrawn = header.fake,
         .head = rest,
         .bytes = rest};
  // What has come before is acknowledged again, whatever there is room for.
  if (!keep_alive && !sink_.admits(out, waiting) && tp.is_fresh(header)) {
    ++counters_.no_memory;
    return false;
  }
  return tp.handle_data(header, now) && !keep_alive;
}

// ---- outwards

size_t Transport::fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) {
  size_t used = pending_setup_.count > 0 ? fill_setup(frames) : 0;
  // However many datagrams there are, half of what is left is for what waits for answers.
  if (utp_.waits()) {
    const auto half = frames.subspan(used, (frames.size() - used + 1) / 2);
    used += fill_datagrams(half, frames_filled_ + used);
  }
  // Each channel once: who has more to send than fits goes to the end of the line.
  for (uint32_t turns = pools_.active.size(); turns > 0 && used < frames.size(); --turns) {
    const uint32_t index = pools_.active.take();
    if (!live(index)) continue;
    PacketChannel& channel = at(index);
    // However much there is to send, an acknowledgement finds a frame, or the peer sends all again.
    const bool acks = channel.owes_ack(now);
    used += channel.fill(source, frames.subspan(used, frames.size() - used - acks), now);
    if (acks) channel.fill_ack(*frames[used++]);
    if (channel.wants_to_send(now)) pools_.active.add(index);
    tp_timers_.arm_no_later(index, deadline_of(channel));
  }
  frames_filled_ += used;
  return used;
}

size_t Transport::fill_setup(std::span<TxFrame* const> frames) {
  size_t used = 0;
  while (pending_setup_.count > 0 && used < frames.size()) {
    const Outgoing& message = pending_setup_.ring[pending_setup_.first];
    TxFrame& frame = *frames[used];
    if (!places_.there(message.path)) {
      ++counters_.setup_unsent;
      drop_pending();
      continue;
    }
    write_setup(frame, message.addresses, message.message, message.padded_to, carrier(),
                std::span(paths_said_).first(paths_said_bytes_));
    frame.to = message.to;
    frame.path = message.path;
    if (!compact()) seal(frame, endpoint_of(message.path), pools_.prefix);
    if (!compact() || may_take_room(frame)) {
      ++counters_.setup_sent;
      ++used;
    } else {
      ++counters_.setup_unsent;
    }
    drop_pending();
  }
  pools_.setup_waits = pending_setup_.count > 0;
  return used;
}

// A full way has no room for what is repeated anyway: it would take it from packets that are not,
// and that were promised it. Where there is no way yet, this makes one.
bool Transport::may_take_room(const TxFrame& frame) {
  const auto bytes = static_cast<uint32_t>(frame.bytes());
  Ways& ways = *settings_.ways;
  const uint32_t way = ways.way_to(frame.to);
  return ways.reserve(way, bytes) || ways.state(way).gone;
}

// ---- time

void Transport::handle_timers(Time now) {
  now_ = now;
  std::array<uint32_t, timers_at_a_time> due;
  const size_t channels = tp_timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(channels)) {
    if (!live(index)) continue;
    PacketChannel& channel = at(index);
    const bool silent = channel.silent();
    const std::optional<Why> dead = channel.handle_timer(now);
    if (!dead) {
      tend_paths(*peers_.find(channel.peer()), now);
      if (silent && !channel.silent()) sink_.up(channel.peer(), channel, now);
      if (!silent && channel.silent()) {
        PeerNews::note(news_.silent, peers_.find(channel.peer())->at);
        sink_.silent(channel.peer());
      }
      pools_.active.add(index);
      if (idle_timeout_ > Duration{} && closes_at(channel) <= now) {
        ask_to_close(*peers_.find(channel.peer()), now);
      }
      // Armed anew by `fill`; this keeps the deadline if there is no frame for it.
      tp_timers_.arm(index, std::max(deadline_of(channel), now + TimerWheel::tick));
      continue;
    }
    ++counters_.channels_lost;
    Peer& peer = *peers_.find(channel.peer());
    if (*dead == Why::no_room) peer.why_not = *dead;
    *dead == Why::left ? end_peer(peer, *dead, now) : end_channel(peer, *dead, now);
  }
  const size_t peers = peer_timers_.poll(now, due);
  for (const uint32_t index : std::span(due).first(peers)) {
    if (peers_.live(index)) handle_peer_timer(peers_.at(index), now);
  }
}

Time Transport::next_deadline() const {
  return std::min(tp_timers_.next_deadline(), peer_timers_.next_deadline());
}

bool Transport::idle() {
  bool all = true;
  for_each_channel([&](PacketChannel& channel) { all = all && channel.idle(); });
  return all;
}

// ---- peers

PeerId Transport::know(const Eid& eid, const Endpoint& at, Incarnation life,
                       std::span<const Endpoint> also) {
  Peer* found = nullptr;
  if (eid == Eid{}) {
    peers_.for_each([&](Peer& peer) {
      if (found == nullptr && peer.at == at) found = &peer;
    });
  } else {
    found = find_peer(eid, at, life);
  }
  if (found == nullptr) found = create_peer(eid, at, life);
  if (found == nullptr) return {};
  // Whoever asks for a life is not served by another one.
  if (found->life == Incarnation{}) found->life = life;
  found->asked_for = true;
  if (!compact() && !live(found->tp)) found->at = at;
  expect_paths(*found, also);
  return id_of(*found);
}

std::optional<Transport::PeerFacts> Transport::facts(PeerId id) {
  const Peer* peer = peers_.find(id);
  if (peer == nullptr) return std::nullopt;
  const bool connected = live(peer->tp);
  return PeerFacts{.eid = peer->eid,
                   .at = peer->at,
                   .life = peer->life,
                   .connected = connected,
                   .rtt = connected ? at(peer->tp).rtt() : Duration{},
                   .routes = peer->routes == none ? nullptr : &routes_.at(peer->routes)};
}

void Transport::choose(PeerId id, const Retransmission& mode, Time now) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr || mode_for(peer) == mode) return;
  peer->chosen = mode;
  const bool told = peer->opening || live(peer->tp);
  if (!told || closing_ || compact() || peer->eid == settings_.eid) return;
  cancel_opening(*peer);
  begin_opening(*peer, now);
}

Eid Transport::address(PeerId id) {
  const Peer* peer = peers_.find(id);
  return peer == nullptr ? Eid{} : peer->at.address;
}

Why Transport::why_not(PeerId id) {
  const Peer* peer = peers_.find(id);
  return peer == nullptr ? Why::unreachable : peer->why_not;
}

Channel* Transport::channel(PeerId id, Time now) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return nullptr;
  if (live(peer->tp)) return &at(peer->tp);
  if (peer->eid == settings_.eid) {
    make_channel_to_self(*peer, now);
    return live(peer->tp) ? &at(peer->tp) : nullptr;
  }
  if (!peer->opening && !closing_) begin_opening(*peer, now);
  return nullptr;
}

// The peer with this EID that has, or may turn out to have, this life. One that was asked by its
// address only turns out to be this one: two channels to one process would end each other.
Transport::Peer* Transport::find_peer(const Eid& eid, const Endpoint& at, Incarnation life) {
  for (uint32_t i = peers_by_eid_.find(eid); i != none; i = peers_.at(i).next_of_eid) {
    Peer& peer = peers_.at(i);
    if (life == Incarnation{} || peer.life == Incarnation{} || peer.life == life) return &peer;
  }
  Peer* found = nullptr;
  if (nameless_ == 0) return found;
  peers_.for_each([&](Peer& peer) {
    if (peer.eid == Eid{} && peer.at == at) found = &peer;
  });
  if (found != nullptr) name_peer(*found, eid);
  return found;
}

Transport::Peer* Transport::create_peer(const Eid& eid, const Endpoint& at, Incarnation life) {
  if (peers_.full()) forget_one();
  Peer* peer = peers_.create();
  if (peer == nullptr) return nullptr;
  do peer->number = entropy_.next32();
  while (peer->number == 0);
  peer->at = at;
  peer->life = life;
  ++nameless_;
  if (!(eid == Eid{})) name_peer(*peer, eid);
  return peer;
}

// Makes room by forgetting a peer that nobody here can miss: it has no channel, and nobody asked
// for it or it did not answer who did. First who never spoke, then who was silent for longest. If
// it comes back it is told that its acquaintance is over, so what it may have had executed here is
// not repeated.
void Transport::forget_one() {
  Peer* least = nullptr;
  peers_.for_each([&](Peer& peer) {
    const bool needed = live(peer.tp) || peer.opening || peer.eid == settings_.eid ||
                        (peer.asked_for && !peer.given_up);
    if (needed) return;
    const bool less = least == nullptr ||
                      (peer.spoke != least->spoke ? least->spoke : peer.heard_at < least->heard_at);
    if (less) least = &peer;
  });
  if (least != nullptr) end_peer(*least, Why::left, now_);
}

// An idle channel says nothing of its peer. When somebody else needs its place it is asked, so that
// one that has died, or stands still, is found out and forgotten; one in each call.
void Transport::probe_longest_silent(Time now) {
  PacketChannel* longest = nullptr;
  for_each_channel([&](PacketChannel& channel) {
    const Peer& peer = *peers_.find(channel.peer());
    const bool needed = !channel.idle() && !channel.silent();
    if (needed || peer.asked_for || peer.eid == settings_.eid) return;
    if (longest == nullptr || channel.last_heard() < longest->last_heard()) longest = &channel;
  });
  if (longest == nullptr) return;
  if (!longest->silent()) return longest->probe(now);
  ++counters_.channels_lost;
  end_channel(*peers_.find(longest->peer()), Why::silent, now);
}

// Enters the peer under its EID, in front of other lives.
void Transport::name_peer(Peer& peer, const Eid& eid) {
  --nameless_;
  peer.eid = eid;
  peer.next_of_eid = peers_by_eid_.find(eid);
  if (peer.next_of_eid != none) peers_by_eid_.erase(eid);
  peers_by_eid_.insert(eid, peers_.index_of(&peer));
}

// This life has spoken: whatever else we knew at this EID is over.
void Transport::bind_life(Peer& peer, Incarnation life, Time now) {
  peer.life = life;
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = peers_by_eid_.find(peer.eid); i != none && !again;
         i = peers_.at(i).next_of_eid) {
      if (&peers_.at(i) == &peer || peers_.at(i).life == Incarnation{}) continue;
      end_peer(peers_.at(i), Why::restarted, now);
      again = true;
    }
  }
}

void Transport::destroy_peer(Peer& peer) {
  const uint32_t index = peers_.index_of(&peer);
  cancel_opening(peer);
  half_open_ -= peer.answered_open;
  if (peer.goodbyes > 0) --goodbyes_;
  peer_timers_.disarm(index);
  if (peer.eid == Eid{}) {
    --nameless_;
  } else {
    const uint32_t first = peers_by_eid_.find(peer.eid);
    if (first == index) {
      peers_by_eid_.erase(peer.eid);
      if (peer.next_of_eid != none) peers_by_eid_.insert(peer.eid, peer.next_of_eid);
    } else {
      uint32_t before = first;
      while (peers_.at(before).next_of_eid != index) before = peers_.at(before).next_of_eid;
      peers_.at(before).next_of_eid = peer.next_of_eid;
    }
  }
  forget_paths(peer);
  peers_.destroy(&peer);
}

void Transport::end_peer(Peer& peer, Why why, Time now) {
  drop_channel(peer);
  tell_down(peer, why, now);
  destroy_peer(peer);
}

// ---- channels

Tpn Transport::new_tpn() {
  for (;;) {
    const uint32_t tpn = entropy_.below(tpn_limit);
    if (tpn != 0 && tps_by_tpn_.find(tpn) == none) return Tpn(tpn);
  }
}

void Transport::make_channel(Peer& peer, const SetupMessage& theirs, uint32_t mtu,
                             Duration first_rtt, Time now) {
  URMA_ASSERT(!live(peer.tp), "a peer has one channel");
  peer.notes_paths = (theirs.features & feature_new_paths) != 0;
  // As many channels as peers: there is room.
  const ChannelEnds ends{
      .peer = id_of(peer),
      .local = peer.tpn,
      .remote = Tpn(theirs.from_tpn),
      .to = peer.at,
      .facts = {.packet_bytes = mtu,
                .tassn_window =
                    std::clamp<uint32_t>(theirs.tassn_window, 1, settings_.tassn_window),
                .reads = std::max<uint16_t>(theirs.reads, 1),
                .sequences = (theirs.features & feature_sequences) != 0,
                .atomic_results =
                    static_cast<uint8_t>(std::min<uint16_t>(theirs.atomic_results, UINT8_MAX))},
  };
  if (compact()) {
    const Ctp::Upwards upwards{.sink = sink_, .ways = *settings_.ways};
    Ctp* ctp = ctps_.create(ctps_.next_index(), ends, upwards, pools_, counters_, now);
    peer.tp = ctps_.index_of(ctp);
    const uint64_t source = source_key(peer.at);
    ctps_by_source_.insert(source, peer.tp);
    latest_source_ = 0;
  } else {
    const TpSettings settings{
        .ends = ends,
        .first_sent = Psn::first(peer.first_psn),
        .first_received = Psn::first(theirs.first_psn),
        .send_window = std::max<uint32_t>(theirs.receive_window, 1),
        .limit_bytes = std::max<uint32_t>(theirs.buffer_bytes, mtu),
        .first_rtt = first_rtt,
        .mode = mode_of_channel(peer, theirs.features),
        .peers_mode = asked_by(theirs.features),
        .controller = settings_.controller,
        .paths = &places_,
        .path = paths_.first(),
        .routes = routes_of(peer),
        .balance = settings_.balance,
    };
    Tp* tp = tps_.create(tps_.next_index(), settings, pools_, counters_, now);
    peer.tp = tps_.index_of(tp);
  }
  tps_by_tpn_.insert(number(peer.tpn), peer.tp);
  tp_timers_.arm(peer.tp, deadline_of(at(peer.tp)));
  ++counters_.channels_made;
  PeerNews::note(news_.made, peer.at);
  sink_.up(id_of(peer), at(peer.tp), now);
}

// Most channels have the device's mode.
const Retransmission* Transport::mode_of_channel(Peer& peer, uint32_t features) {
  const Retransmission mode = followed_by(mode_for(&peer), features);
  if (mode == settings_.retransmission) return &settings_.retransmission;
  Retransmission* own = modes_.create(mode);
  peer.mode = modes_.index_of(own);
  return own;
}

// A process may be its own peer: one channel whose two ends are the same object needs no set-up.
void Transport::make_channel_to_self(Peer& peer, Time now) {
  if (peer.life == Incarnation{}) bind_life(peer, settings_.life, now);
  if (peer.life != settings_.life) return end_peer(peer, Why::restarted, now);
  peer.at = paths_.endpoints[paths_.first()];
  peer.tpn = new_tpn();
  peer.first_psn = entropy_.below(Psn::modulus);
  SetupMessage theirs = our_side(SetupType::accept, &peer);
  theirs.from_tpn = number(peer.tpn);
  theirs.first_psn = peer.first_psn;
  make_channel(peer, theirs, settings_.mtu, std::chrono::microseconds(100), now);
}

void Transport::drop_channel(Peer& peer) {
  if (!live(peer.tp)) return;
  PacketChannel& channel = at(peer.tp);
  peer.heard_at = channel.last_heard();
  tps_by_tpn_.erase(number(channel.local()));
  if (compact()) ctps_by_source_.erase(source_key(channel.to()));
  latest_source_ = 0;
  tp_timers_.disarm(peer.tp);
  half_open_ -= peer.answered_open;
  peer.answered_open = false;
  if (peer.goodbyes > 0 || peer.closes > 0) {
    // Nobody is left to say goodbye to.
    goodbyes_ -= peer.goodbyes > 0;
    peer.goodbyes = peer.closes = 0;
    peer_timers_.disarm(peers_.index_of(&peer));
  }
  const uint32_t index = std::exchange(peer.tp, none);
  compact() ? ctps_.destroy(&ctps_.at(index)) : tps_.destroy(&tps_.at(index));
  if (peer.mode != none) modes_.destroy(&modes_.at(std::exchange(peer.mode, none)));
}

void Transport::end_channel(Peer& peer, Why why, Time now) {
  drop_channel(peer);
  tell_down(peer, why, now);
}

void Transport::tell_down(Peer& peer, Why why, Time now) {
  PeerNews::note(news_.of(why), peer.at);
  sink_.down(id_of(peer), why, now);
}

}  // namespace urma::transport
