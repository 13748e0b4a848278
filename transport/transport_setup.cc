#include <algorithm>
#include <bit>

#include "transport/transport.h"
#include "wire/icrc.h"

// How channels are made and ended. Nothing here believes a packet that only an observer of the
// path could not have made up: answers repeat the 24-bit TPN, the attempt and the 64-bit life of
// whoever asked; what would end a live channel must bring back a cookie; RESET decides nothing.

namespace urma::transport {
namespace {

constexpr uint32_t half_open_without_cookie = 64;
constexpr Duration half_open_limit = std::chrono::seconds(3);
constexpr Duration first_retry = std::chrono::milliseconds(10);
constexpr Duration last_retry = std::chrono::milliseconds(200);
constexpr Duration goodbye_retry = std::chrono::milliseconds(20);
constexpr uint8_t goodbyes_sent = 3;
constexpr Duration cookie_epoch = std::chrono::seconds(4);
constexpr Duration reset_refill = std::chrono::milliseconds(10);
constexpr uint32_t resets_per_refill = 10;
constexpr Duration unknown_rtt = std::chrono::milliseconds(1);
constexpr uint32_t least_mtu = 1024;
// A path that swallows large packets shows by silence: ask for half after so many tries.
constexpr uint8_t tries_per_mtu = 3;
// Of a data packet beyond its payload.
constexpr size_t data_overhead = Rtph::size + TaRequest::max_size + icrc_bytes;

// A process on the UB port is known by its address. One on another port has drawn an EID (fd00::/8,
// Sub-ID 1), which says nothing about where it lives.
bool names_address(const Eid& eid, const Endpoint& at) {
  if (eid == at.address && at.port == ub_port) return true;
  return eid.bytes[0] == std::byte{0xfd} && (eid.bytes[13] & std::byte{0x0f}) == std::byte{0} &&
         eid.bytes[14] == std::byte{0} && eid.bytes[15] == std::byte{1};
}

// Powers of two, from 1 KiB to a slice.
bool known_mtu(uint8_t log2) { return log2 >= 10 && log2 <= 16; }

uint64_t epoch_of(Time now) { return static_cast<uint64_t>(now.time_since_epoch() / cookie_epoch); }

}  // namespace

// Who is known here may also speak from where its paths lead.
bool Transport::may_live_at(const Eid& eid, const Endpoint& at) {
  if (names_address(eid, at)) return true;
  for (uint32_t i = peers_by_eid_.find(eid); i != none; i = peers_.at(i).next_of_eid) {
    const Routes* routes = routes_of(peers_.at(i));
    if (routes != nullptr && routes->leads_to(at)) return true;
  }
  return false;
}

// Each message that has no effect and gets no answer is counted by one reason (counters.h).
void Transport::handle_setup(std::span<const std::byte> packet, const Endpoint& from, Time now) {
  const auto setup = parse_setup(packet, carrier());
  if (!setup) return ignore(counters_.malformed);
  ++counters_.setup_received;
  if (setup->addresses.upi != Addresses::default_upi) return ignore(counters_.wrong_partition);
  const Eid& source = setup->addresses.source;
  if (compact() ? !(source == from.address) : !may_live_at(source, from)) {
    return ignore(counters_.wrong_source);
  }
  switch (setup->message.type) {
    case SetupType::open:
      return handle_open(*setup, from, now);
    case SetupType::retry:
      return handle_retry(*setup, from, now);
    case SetupType::accept:
      return handle_accept(*setup, from, now);
    case SetupType::refuse:
      return handle_refuse(*setup, now);
    case SetupType::reset:
      return handle_reset(*setup, from, now);
    case SetupType::close:
      return handle_close(*setup, from, now);
    case SetupType::closed:
      return handle_closed(*setup, now);
    case SetupType::question:
      return handle_question(*setup, from);
    case SetupType::answer:
      return handle_answer(*setup, from, now);
    case SetupType::paths:
      return handle_paths(*setup, from, now);
    case SetupType::noted:
      return handle_noted(*setup, from);
  }
}

// ---- asking

void Transport::begin_opening(Peer& peer, Time now) {
  // A channel that is only doubted keeps its TPN until another one replaces it.
  const bool doubted = live(peer.tp);
  if (doubted) {
    peer.doubted_tpn = peer.tpn;
    peer.doubted_psn = peer.first_psn;
  }
  peer.opening = true;
  peer.closes = 0;
  // OPEN says where we are.
  if (Routes* const routes = doubted ? nullptr : routes_of(peer)) routes->told();
  pause_while_asking(peer.at);
  peer.refused = peer.given_up = false;
  peer.tpn = new_tpn();
  peer.first_psn = entropy_.below(Psn::modulus);
  peer.attempt = ++attempts_;
  peer.tries = 0;
  peer.cookie = 0;
  peer.opened_at = now;
  tps_by_tpn_.insert(number(peer.tpn), peers_.index_of(&peer) | opening_flag);
  send_open(peer, now);
}

void Transport::cancel_opening(Peer& peer) {
  if (!peer.opening) return;
  tps_by_tpn_.erase(number(peer.tpn));
  peer.opening = false;
  pause_while_asking(peer.at);
  if (!live(peer.tp)) return;
  peer.tpn = peer.doubted_tpn;
  peer.first_psn = peer.doubted_psn;
}

// No number tells which channel a packet of CTP belongs to: behind an OPEN it would be the next. So
// nothing leaves then to where it went, be it on the channel of whoever lived there before.
void Transport::pause_while_asking(const Endpoint& to) {
  const uint32_t channel = compact() ? ctps_by_source_.find(source_key(to)) : none;
  if (channel == none) return;
  bool asking = false;
  peers_.for_each([&](const Peer& peer) { asking = asking || (peer.opening && peer.at == to); });
  ctps_.at(channel).pause(asking);
  if (!asking) pools_.active.add(channel);
}

uint32_t Transport::mtu_to_ask(const Peer& peer) const {
  if (compact()) return settings_.mtu;
  // Halved three times at most: tries may be many. Most paths have a try.
  const int paths = peer.routes == none ? 1 : routes_.at(peer.routes).count();
  const int tries = std::clamp<int>(paths, tries_per_mtu, tries_per_mtu + 1);
  return std::max(settings_.mtu >> std::min(peer.tries / tries, 3), least_mtu);
}

void Transport::send_open(Peer& peer, Time now) {
  Outgoing message = opening(peer);
  aim(message, peer, peer.tries);
  peer.may_retry = true;
  push_open(peer, message, now);
}

void Transport::send_open(Peer& peer, const Endpoint& to, Time now) {
  Outgoing message = opening(peer);
  message.to = to;
  message.path = arrived_by_;
  push_open(peer, message, now);
}

uint32_t Transport::as_large_as(uint32_t payload) {
  return static_cast<uint32_t>(payload + data_overhead);
}

Transport::Outgoing Transport::opening(const Peer& peer) const {
  const uint32_t mtu = mtu_to_ask(peer);
  SetupMessage open = our_side(SetupType::open, &peer);
  open.mtu_log2 = static_cast<uint8_t>(std::countr_zero(mtu));
  open.to_life = number(peer.life);
  open.from_tpn = number(peer.tpn);
  open.first_psn = peer.first_psn;
  open.attempt = peer.attempt;
  open.echoed_psn = peer.number;
  open.to_tpn = peer.their_number;
  open.cookie = peer.cookie;
  return {.to = peer.at,
          .addresses = {.source = settings_.eid, .destination = peer.eid},
          .message = open,
          .padded_to = compact() ? 0 : as_large_as(mtu)};
}

void Transport::push_open(Peer& peer, const Outgoing& message, Time now) {
  push_setup(message);
  peer.sent_at = now;
  const Duration wait = std::min(first_retry * (1 << std::min<int>(peer.tries, 8)), last_retry);
  if (peer.tries < UINT16_MAX) ++peer.tries;
  peer_timers_.arm(peers_.index_of(&peer), now + wait);
}

void Transport::handle_peer_timer(Peer& peer, Time now) {
  if (peer.goodbyes > 0) {
    if (--peer.goodbyes == 0) {
      --goodbyes_;
    } else {
      send_close(peer, SetupReason::leaving, goodbyes_sent - peer.goodbyes);
      peer_timers_.arm(peers_.index_of(&peer), now + goodbye_retry);
    }
  } else if (peer.closes > 0) {
    ask_again_to_close(peer, now);
  } else if (peer.opening) {
    Ways* const ways = settings_.ways;
    const bool no_way = compact() && ways->state(ways->way_to(peer.at)).no_room;
    if (!peer.refused) peer.why_not = no_way ? Why::no_room : Why::unreachable;
    if (now - peer.opened_at < settings_.setup_timeout) return send_open(peer, now);
    cancel_opening(peer);
    peer.given_up = true;
    if (!live(peer.tp)) return tell_down(peer, peer.why_not, now);
    // It asked, too, and its time was this timer.
    if (peer.answered_open) peer_timers_.arm(peers_.index_of(&peer), now + half_open_limit);
    tp_timers_.arm_no_later(peer.tp, deadline_of(at(peer.tp)));
  } else if (peer.answered_open) {
    // It asked and was never heard of again. It may never have had the answer, and still be asking.
    --peer.attempt_seen;
    end_channel(peer, Why::silent, now);
  }
}

bool Transport::names_us(const ReceivedSetup& message) {
  if (message.message.to_life == number(settings_.life)) return true;
  ++counters_.setup_incarnation;
  return false;
}

// Returns the peer whose OPEN this message answers. Returns null, and counts the reason, if this
// device waits for no such answer.
Transport::Peer* Transport::opening_peer(const ReceivedSetup& answer) {
  if (!names_us(answer)) return nullptr;
  const uint32_t found = tps_by_tpn_.find(answer.message.to_tpn);
  const bool opening = found != none && (found & opening_flag) != 0;
  Peer* const peer = opening ? &peers_.at(found & ~opening_flag) : nullptr;
  if (peer == nullptr || answer.message.attempt != peer->attempt) {
    ++counters_.setup_late;
    return nullptr;
  }
  if (peer->eid == Eid{} || peer->eid == answer.addresses.source) return peer;
  ++counters_.wrong_source;
  return nullptr;
}

void Transport::handle_retry(const ReceivedSetup& retry, const Endpoint& from, Time now) {
  Peer* peer = opening_peer(retry);
  if (peer == nullptr) return;
  // A cookie twice is a peer that does not accept its own: wait for the timer.
  if (peer->cookie == retry.message.cookie) return ignore(counters_.setup_late);
  peer->cookie = retry.message.cookie;
  // It is a cookie for the place that it was asked for from, and where that is anybody may say:
  // there goes one at most for each that we sent unasked. Else the timer's next OPEN carries it.
  const Routes* const routes = routes_of(*peer);
  const bool its_own = peer->at == from || (routes != nullptr && routes->leads_to(from));
  if (its_own && std::exchange(peer->may_retry, false)) send_open(*peer, from, now);
}

void Transport::handle_accept(const ReceivedSetup& accept, const Endpoint& from, Time now) {
  Peer* peer = opening_peer(accept);
  if (peer == nullptr) return;
  const uint8_t mtu_log2 = accept.message.mtu_log2;
  if (accept.message.from_life == 0 || !known_mtu(mtu_log2) || accept.addresses.source == Eid{} ||
      accept.addresses.source == settings_.eid) {
    return ignore(counters_.malformed);
  }
  const auto life = Incarnation(accept.message.from_life);
  const bool known_anew =
      peer->their_number != 0 && peer->their_number != accept.message.acquaintance();
  if ((peer->life != Incarnation{} && peer->life != life) || known_anew) {
    return end_peer(*peer, Why::restarted, now);
  }
  peer->their_number = accept.message.acquaintance();
  if (peer->eid == Eid{}) name_peer(*peer, accept.addresses.source);
  peer->at = from;
  const Tpn tpn = peer->tpn;
  const uint32_t first_psn = peer->first_psn;
  cancel_opening(*peer);
  peer_timers_.disarm(peers_.index_of(peer));
  // The peer has lost the old channel, else it would not have been asked for a new one.
  if (live(peer->tp)) end_channel(*peer, Why::silent, now);
  bind_life(*peer, life, now);
  peer->tpn = tpn;
  peer->first_psn = first_psn;
  learn_paths(*peer, accept.message.paths, from, now);
  make_channel(*peer, accept.message, std::min(1u << mtu_log2, settings_.mtu),
               peer->tries == 1 ? now - peer->sent_at : unknown_rtt, now);
}

void Transport::handle_refuse(const ReceivedSetup& refuse, Time now) {
  Peer* peer = opening_peer(refuse);
  if (peer == nullptr) return;
  switch (refuse.message.reason) {
    case SetupReason::restarted:
      return end_peer(*peer, Why::restarted, now);
    case SetupReason::version:
      cancel_opening(*peer);
      peer_timers_.disarm(peers_.index_of(peer));
      peer->given_up = true;
      peer->why_not = Why::refused;
      return end_channel(*peer, Why::refused, now);
    case SetupReason::no_resources:
      peer->refused = true;
      peer->why_not = Why::no_room;
      return;  // asked again when the timer says so
    default:
      return ignore(counters_.malformed);
  }
}

// ---- being asked

void Transport::handle_open(const ReceivedSetup& open, const Endpoint& from, Time now) {
  const SetupMessage& message = open.message;
  if (message.version != setup_version) return refuse(open, from, SetupReason::version);
  const bool meant_for_another =
      (!(open.addresses.destination == Eid{}) && !(open.addresses.destination == settings_.eid)) ||
      (message.to_life != 0 && message.to_life != number(settings_.life));
  if (meant_for_another) return refuse(open, from, SetupReason::restarted);
  if (message.from_life == 0 || message.from_tpn == 0 || message.attempt == 0 ||
      !known_mtu(message.mtu_log2) || open.addresses.source == Eid{} ||
      open.addresses.source == settings_.eid) {
    return ignore(counters_.malformed);
  }
  if (closing_) return ignore(counters_.setup_declined);

  const auto life = Incarnation(message.from_life);
  Peer* peer = find_peer(open.addresses.source, from, life);
  const bool connected = peer != nullptr && live(peer->tp);
  SetupMessage acceptance = our_side(SetupType::accept, peer);
  const uint32_t mtu = std::min(1u << message.mtu_log2, settings_.mtu);
  acceptance.mtu_log2 = static_cast<uint8_t>(std::countr_zero(mtu));
  if (connected && number(at(peer->tp).remote()) == message.from_tpn) {
    // Its OPEN again: our answer was lost. The channel is what it was made as, also if this time
    // less was asked for.
    const uint32_t made = at(peer->tp).facts().packet_bytes;
    acceptance.mtu_log2 = static_cast<uint8_t>(std::countr_zero(made));
    acceptance.from_tpn = number(at(peer->tp).local());
    acceptance.first_psn = peer->opening ? peer->doubted_psn : peer->first_psn;
    acceptance.echoed_psn = peer->number;
    return answer(open, from, acceptance);
  }
  if (peer != nullptr && peer->life == life && message.attempt <= peer->attempt_seen) {
    return ignore(counters_.setup_late);
  }
  // Both ask at once: the question of the lower EID is the one that is answered.
  if (peer != nullptr && peer->opening && settings_.eid < peer->eid) {
    return ignore(counters_.setup_declined);
  }

  if (taken(open.addresses.source, from, now)) return ignore(counters_.wrong_source);
  if ((could_end_something(open.addresses.source) || half_open_ >= half_open_without_cookie) &&
      !cookie_holds(open, from, now)) {
    SetupMessage retry = our_side(SetupType::retry);
    retry.cookie = cookie(open, from, epoch_of(now));
    ++counters_.setup_cookies;
    return answer(open, from, retry);
  }

  if (!acquainted(peer, open, now)) return refuse(open, from, SetupReason::restarted);
  if (peer == nullptr) peer = create_peer(open.addresses.source, from, life);
  if (peer == nullptr) {
    probe_longest_silent(now);
    return refuse(open, from, SetupReason::no_resources);
  }
  welcome(*peer, open, from, acceptance, now);
}

void Transport::refuse(const ReceivedSetup& open, const Endpoint& at, SetupReason reason) {
  SetupMessage refusal = our_side(SetupType::refuse);
  refusal.reason = reason;
  ++counters_.setup_refused;
  answer(open, at, refusal);
}

// The asker gets its channel.
void Transport::welcome(Peer& peer, const ReceivedSetup& open, const Endpoint& from,
                        SetupMessage acceptance, Time now) {
  const SetupMessage& message = open.message;
  cancel_opening(peer);
  peer.at = from;
  peer.attempt_seen = message.attempt;
  peer.their_number = message.acquaintance();
  if (live(peer.tp)) end_channel(peer, Why::silent, now);
  bind_life(peer, Incarnation(message.from_life), now);
  peer.tpn = new_tpn();
  peer.first_psn = entropy_.below(Psn::modulus);
  peer.answered_open = true;
  ++half_open_;
  peer_timers_.arm(peers_.index_of(&peer), now + half_open_limit);
  acceptance.from_tpn = number(peer.tpn);
  acceptance.first_psn = peer.first_psn;
  acceptance.echoed_psn = peer.number;
  // The answer goes first: the layer above may have requests for the new channel.
  answer(open, from, acceptance);
  learn_paths(peer, message.paths, from, now);
  make_channel(peer, message, 1u << acceptance.mtu_log2, unknown_rtt, now);
}

// A drawn EID belongs to whoever came with it first: while its channel lives nobody else,
// elsewhere, gets it. That it does live is asked for, so that an owner who moved waits for the
// verdict only.
bool Transport::taken(const Eid& eid, const Endpoint& from, Time now) {
  bool taken = false;
  for (uint32_t i = peers_by_eid_.find(eid); i != none; i = peers_.at(i).next_of_eid) {
    const Peer& peer = peers_.at(i);
    const Routes* routes = routes_of(peer);
    if (!live(peer.tp) || at(peer.tp).to() == from) continue;
    if (routes != nullptr && routes->leads_to(from)) continue;
    at(peer.tp).probe(now);
    taken = true;
  }
  return taken;
}

// Whether believing an OPEN from this EID could cost somebody his channel, or what is remembered of
// him.
bool Transport::could_end_something(const Eid& eid) {
  bool any = false;
  for (uint32_t i = peers_by_eid_.find(eid); i != none; i = peers_.at(i).next_of_eid) {
    any = any || live(peers_.at(i).tp) || peers_.at(i).spoke;
  }
  return any;
}

// Replays are told from first tries by what the target remembers, so both ends must mean the same
// acquaintance. False: the asker means one that was forgotten here. If it has forgotten ours, ours
// ends as well, and `peer` is null.
bool Transport::acquainted(Peer*& peer, const ReceivedSetup& open, Time now) {
  const SetupMessage& message = open.message;
  if (message.known_as() != 0 && (peer == nullptr || peer->number != message.known_as()))
    return false;
  if (peer == nullptr || peer->their_number == 0) return true;
  if (peer->life == Incarnation(message.from_life) &&
      peer->their_number != message.acquaintance()) {
    end_peer(*peer, Why::restarted, now);
    peer = nullptr;
  }
  return true;
}

uint64_t Transport::cookie(const ReceivedSetup& open, const Endpoint& from, uint64_t epoch) const {
  const uint64_t words[] = {load_be<8>(from.address.bytes.data()),
                            load_be<8>(from.address.bytes.data() + 8),
                            uint64_t{from.port} << 32 | open.message.from_tpn,
                            open.message.from_life,
                            open.message.attempt,
                            epoch};
  return cookies_(words) | 1;  // never zero: zero is "no cookie"
}

bool Transport::cookie_holds(const ReceivedSetup& open, const Endpoint& from, Time now) const {
  const uint64_t epoch = epoch_of(now);
  return open.message.cookie == cookie(open, from, epoch) ||
         open.message.cookie == cookie(open, from, epoch - 1);
}

// ---- ends

PacketChannel* Transport::channel_named(const ReceivedSetup& message) {
  const uint32_t index = tps_by_tpn_.find(message.message.to_tpn);
  if (!live(index)) return nullptr;
  PacketChannel& channel = at(index);
  return number(channel.remote()) == message.message.from_tpn ? &channel : nullptr;
}

PacketChannel* Transport::channel_named(const ReceivedSetup& message, const Endpoint& from) {
  PacketChannel* const channel = channel_named(message);
  if (channel == nullptr || channel->to() == from) return channel;
  const Routes* routes = compact() ? nullptr : tps_.at(channel->index()).routes();
  return routes != nullptr && routes->leads_to(from) ? channel : nullptr;
}

PacketChannel* Transport::channel_meant(const ReceivedSetup& message, const Endpoint& from) {
  PacketChannel* const channel = channel_named(message, from);
  if (channel == nullptr) {
    ++(channel_named(message) == nullptr ? counters_.unknown_channel : counters_.wrong_source);
  }
  return channel;
}

void Transport::send_reset(const SetupMessage& about, const Endpoint& to, Time now) {
  if (now - resets_refilled_ >= reset_refill) {
    resets_refilled_ = now;
    resets_left_ = resets_per_refill;
  }
  if (resets_left_ == 0) return ignore(counters_.setup_unsent);
  --resets_left_;
  SetupMessage reset = about;
  reset.type = SetupType::reset;
  push_setup({.to = to,
              .addresses = {.source = settings_.eid, .destination = {}},
              .message = reset,
              .path = arrived_by_});
}

// Anybody can send one, so it ends nothing: it makes us ask.
void Transport::handle_reset(const ReceivedSetup& reset, const Endpoint& from, Time now) {
  PacketChannel* channel = nullptr;
  if (compact()) {
    // Its packets have no TPN: there is one channel to where it comes from.
    const uint32_t index = ctps_by_source_.find(source_key(from));
    if (index == none) return ignore(counters_.unknown_channel);
    channel = &ctps_.at(index);
  } else {
    channel = channel_meant(reset, from);
  }
  if (channel == nullptr) return;
  Peer& peer = *peers_.find(channel->peer());
  if (peer.opening || closing_) return ignore(counters_.setup_declined);
  const bool ours =
      compact() || of_late(reset, tps_.at(channel->index()), Psn::first(peer.first_psn));
  if (!ours) return ignore(counters_.setup_late);
  begin_opening(peer, now);
}

// Whether the packet that it answers is one that we may have sent.
bool Transport::of_late(const ReceivedSetup& reset, const Tp& tp, Psn first) {
  const Psn psn = Psn::unwrap(tp.next_psn(), reset.message.echoed_psn);
  return psn >= first && psn < tp.next_psn() && tp.next_psn() - psn <= ReceivedWindow::max_window;
}

void Transport::close(Time now) {
  closing_ = true;
  peers_.for_each([&](Peer& peer) {
    cancel_opening(peer);
    if (!live(peer.tp) || peer.eid == settings_.eid) return;
    peer.goodbyes = goodbyes_sent;
    peer.closes = 0;
    ++goodbyes_;
    send_close(peer, SetupReason::leaving, 0);
    peer_timers_.arm(peers_.index_of(&peer), now + goodbye_retry);
  });
}

void Transport::send_close(Peer& peer, SetupReason reason, unsigned number_of_try) {
  SetupMessage close = our_side(SetupType::close);
  close.reason = reason;
  if (reason == SetupReason::idle) close.cookie = peer.cookie;
  close.to_life = number(peer.life);
  close.from_tpn = number(at(peer.tp).local());
  close.to_tpn = number(at(peer.tp).remote());
  Outgoing message{.to = peer.at,
                   .addresses = {.source = settings_.eid, .destination = peer.eid},
                   .message = close};
  aim(message, peer, number_of_try);
  push_setup(message);
}

void Transport::handle_close(const ReceivedSetup& close, const Endpoint& from, Time now) {
  if (!names_us(close)) return;
  const PacketChannel* channel = channel_named(close, from);
  Peer* peer = channel == nullptr ? nullptr : peers_.find(channel->peer());
  const bool idle = close.message.reason == SetupReason::idle;
  // A channel that is there, from a place that it has not told of yet: it asks again.
  if (channel == nullptr && channel_named(close) != nullptr) return ignore(counters_.wrong_source);
  // What is on its way from here says no, and so does our own goodbye.
  if (idle && peer != nullptr && (!channel->idle() || peer->goodbyes > 0)) {
    return ignore(counters_.setup_declined);
  }
  // Also when the channel is gone already: then our answer was lost.
  SetupMessage closed = our_side(SetupType::closed);
  if (idle) closed.cookie = close.message.cookie;
  answer(close, from, closed);
  if (peer == nullptr) return;
  if (number(peer->life) != close.message.from_life) return ignore(counters_.setup_incarnation);
  if (close.message.reason == SetupReason::leaving) {
    end_peer(*peer, Why::left, now);
  } else {
    end_channel(*peer, idle ? Why::idle : Why::silent, now);
  }
}

void Transport::handle_closed(const ReceivedSetup& closed, Time now) {
  const uint32_t index = tps_by_tpn_.find(closed.message.to_tpn);
  if (!names_us(closed)) return;
  if (!live(index)) return ignore(counters_.unknown_channel);
  Peer& peer = *peers_.find(at(index).peer());
  if (closed.message.from_life != number(peer.life)) return ignore(counters_.setup_incarnation);
  if (peer.goodbyes == 0) {
    // The other end is gone, whatever has been offered since: that goes over the next channel.
    const bool asked = !peer.opening && peer.cookie != 0 && closed.message.cookie == peer.cookie;
    return asked ? end_channel(peer, Why::idle, now) : ignore(counters_.setup_late);
  }
  peer.goodbyes = 0;
  --goodbyes_;
  peer_timers_.disarm(peers_.index_of(&peer));
}

// ---- messages

SetupMessage Transport::our_side(SetupType type, const Peer* peer) const {
  const Retransmission& mode = mode_for(peer);
  SetupMessage message;
  message.type = type;
  message.from_life = number(settings_.life);
  message.features = feature_filler | feature_sequences | features_of(mode);
  message.receive_window = static_cast<uint16_t>(mode.window_packets);
  message.tassn_window = static_cast<uint16_t>(settings_.tassn_window);
  message.atomic_results = static_cast<uint16_t>(settings_.atomic_results);
  message.reads = static_cast<uint16_t>(settings_.reads);
  message.buffer_bytes = settings_.buffer_bytes;
  const bool names_paths =
      type == SetupType::open || type == SetupType::accept || type == SetupType::paths;
  if (names_paths) {
    message.features |= feature_new_paths;
    message.paths = paths_;
    if (has_paths()) message.features |= feature_paths;
  }
  return message;
}

void Transport::answer(const ReceivedSetup& to, const Endpoint& at, SetupMessage message) {
  message.to_life = to.message.from_life;
  message.to_tpn = to.message.from_tpn;
  message.attempt = to.message.attempt;
  push_setup({.to = at,
              .addresses = {.source = settings_.eid, .destination = to.addresses.source},
              .message = message,
              .path = arrived_by_});
}

// Set-up packets are repeated until they are answered: one too many is one lost.
void Transport::push_setup(const Outgoing& message) {
  if (pending_setup_.count == pending_setup_.capacity) return ignore(counters_.setup_unsent);
  const uint32_t at = (pending_setup_.first + pending_setup_.count) % pending_setup_.capacity;
  pending_setup_.ring[at] = message;
  ++pending_setup_.count;
  pools_.setup_waits = true;
}

}  // namespace urma::transport
