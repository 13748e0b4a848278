#include <algorithm>

#include "engine/engine.h"

// The part of control calls that runs inside a pass.

namespace urma::engine {
namespace {

// A copy of a slice takes microseconds: a peer that holds a segment for longer does not run.
constexpr Duration most_held = std::chrono::microseconds(500);
// Where nothing else helps: it may have to wait for a processor.
constexpr Duration most_awaited = std::chrono::milliseconds(20);
// Peers that are there have answered long before: then one or the other packet is lost.
constexpr Duration most_told = std::chrono::milliseconds(50);
constexpr Duration told_patience = std::chrono::microseconds(250);

}  // namespace

// ---- Jetties

bool Engine::new_jetty_id(JettyId& id) {
  // Few ids serve any number of Jetties, the latest freed first: peers remember what was executed
  // for each id that was ever used, and have only so much room.
  if (retired_count_ > 0) {
    id = JettyId(retired_ids_[--retired_count_]);
    return true;
  }
  while (ids_drawn_ < id_limit) {
    const uint32_t drawn = id_order_(ids_drawn_++);
    if (drawn < number(first_dynamic_jetty)) continue;
    id = JettyId(drawn);
    return true;
  }
  return false;
}

void Engine::retire_jetty_id(JettyId id) { retired_ids_[retired_count_++] = number(id); }

std::optional<Engine::JettyMade> Engine::create_jetty(jetty::JettyParts parts) {
  jetty::Jetties& jetties = transactions_.jetties();
  JettyMade made;
  if (jetties.full() || !new_jetty_id(made.id)) return std::nullopt;
  made.token = TokenValue(entropy_->next32());
  made.handle = jetties.handle_of(*jetties.create(made.id, made.token, std::move(parts)));
  return made;
}

bool Engine::flush_jetty(uint32_t index, Time now) {
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  jetty.state = jetty::JettyState::error;
  jetty::Initiator& initiator = transactions_.initiator();
  while (jetty.queues->jfs().used() && initiator.take(jetty, works_per_pass, now) > 0) {
  }
  initiator.flush(jetty, now);
  transactions_.target().detach(jetty);
  transactions_.target().flush_receives(jetty);
  return jetty.outstanding == 0;
}

void Engine::reset_jetty(uint32_t index, Time now) {
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  jetty::Initiator& initiator = transactions_.initiator();
  // Works that were posted, or held, before this call are flushed.
  while (jetty.queues->jfs().used() && initiator.take(jetty, works_per_pass, now) > 0) {
  }
  initiator.end_cancelled(jetty, now);
  jetty.state = jetty::JettyState::ready;
}

bool Engine::destroy_jetty(uint32_t index, Time now) {
  if (!flush_jetty(index, now)) return false;
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  transactions_.initiator().detach(jetty);
  retire_jetty_id(jetty.id);
  transactions_.jetties().destroy(jetty);
  return true;
}

// ---- segments

std::optional<Engine::Lease> Engine::lease_of(const Segments::Segment& segment) {
  if (segment.lease == Segments::none) return std::nullopt;
  return Lease{.number = segment.lease,
               .address = segment.address,
               .base = segment.base,
               .bytes = segment.bytes};
}

// The medium says of all that share the TokenID what the table says.
void Engine::grant_all(Handle handle) {
  const Segments::Token token = segments_.token(handle);
  segments_.for_each(segments_.root(handle), [&](const Segments::Segment& segment) {
    const std::optional<Lease> lease = lease_of(segment);
    if (!lease) return;
    port_->memory()->grant(*lease, {.id = token.id,
                                    .token = token.value,
                                    .older = token.older,
                                    .checked = token.checked,
                                    .rights = segment.rights,
                                    .atomics = segment.atomics});
  });
}

Engine::Segments::Added Engine::add_segment(const Segments::Segment& segment, TokenPolicy policy,
                                            Handle with, Segments::Made& made) {
  if (ending_) return Segments::Added::gone;
  if (segment.guarded &&
      !(segments_.guard().open() && transactions_.target().answers().guarded().prepare())) {
    return Segments::Added::no_guard;
  }
  const Segments::Added added =
      with ? segments_.join(with, segment, made) : segments_.add(segment, policy, made);
  if (added == Segments::Added::added && segment.lease != Segments::none) grant_all(made.segment);
  return added;
}

template <class Function>
void Engine::for_each_part(const Withdrawal& what, Function&& function) {
  if (what.withdrawn == Segments::none) return function(what.own);
  segments_.for_each(what.withdrawn, function);
}

// Returns the lease if a peer is in the middle of a copy that the owner would see.
std::optional<Engine::Lease> Engine::held(const Segments::Segment& segment) {
  const std::optional<Lease> lease = lease_of(segment);
  if (!lease || port_->memory()->moved(*lease)) return std::nullopt;
  return port_->memory()->loose(*lease) || !is_released(*lease) ? lease : std::nullopt;
}

// A fence: no check succeeds any more, what was gathered has been read by the driver, no work of
// ours uses the memory, and no peer that maps it is in the middle of a copy. One of them may have
// been stopped there: that is not waited for.
bool Engine::withdraw_segments(Withdrawal& what, Time now) {
  if (!what.begun) {
    what.begun = true;
    // Works posted before the call use the memory, too, though no pass has seen them yet.
    transactions_.jetties().for_each(
        [&](jetty::Jetty& jetty) { transactions_.initiator().note(jetty, now); });
    what.withdrawn = segments_.withdraw(what.segment, what.all);
    for_each_part(what, [&](const Segments::Segment& part) {
      if (const auto lease = lease_of(part)) port_->memory()->revoke(*lease);
      transactions_.initiator().flush_memory(part.base, part.bytes, now);
      transactions_.target().flush_memory(part.base, part.bytes);
    });
    what.fill = fill_;
  }
  bool used = !settled(what.fill);
  for_each_part(what, [&](const Segments::Segment& part) {
    used = used || transactions_.initiator().using_memory(part.base, part.bytes);
  });
  if (used) return false;
  if (what.since == Time{}) what.since = now;
  what.held = what.fenced && !what.all ? held(what.own) : std::nullopt;
  if (what.held) {
    return port_->memory()->loose(*what.held) || now - what.since > most_held;
  }
  if (!what.fenced) ++not_fenced_;
  segments_.release(std::exchange(what.withdrawn, Segments::none));
  return true;
}

bool Engine::rotate_token(Handle segment) {
  if (!segments_.rotate(segment)) return false;
  grant_all(segment);
  return true;
}

// Packets with the older value are refused from the first pass on, and answers to reads with it
// that were gathered before have left when this returns true. Peers that map the segment use
// packets while its record is closed. It stays closed until each of them has ended its hold,
// because a hold may have begun with the older value.
bool Engine::retire_token(Retirement& what, Time now) {
  if (!what.begun) {
    what.begun = true;
    segments_.retire(what.segment);
    segments_.for_each(segments_.root(what.segment), [&](const Segments::Segment& part) {
      if (const auto lease = lease_of(part)) port_->memory()->revoke(*lease);
    });
    what.fill = fill_;
  }
  if (what.since == Time{} && !settled(what.fill)) return false;
  if (what.since == Time{}) what.since = now;
  bool held = false;
  segments_.for_each(segments_.root(what.segment), [&](const Segments::Segment& part) {
    const auto lease = held ? std::nullopt : lease_of(part);
    held = held || (lease && !is_released(*lease));
  });
  if (held && now - what.since <= most_awaited) return false;
  what.fenced = !held;
  if (held) ++not_fenced_;
  if (!ending_) grant_all(what.segment);
  return true;
}

// As a rule the holder lets go in a moment.
bool Engine::is_released(const Lease& lease) {
  constexpr int looks = 32;
  for (int i = 0; i < looks; ++i) {
    if (!port_->memory()->held(lease)) return true;
  }
  return false;
}

bool Engine::end_everything(Time now) {
  ending_ = true;
  bool ended = true;
  transactions_.jetties().for_each([&](jetty::Jetty& jetty) {
    if (jetty.id == names_jetty) return;
    ended = flush_jetty(transactions_.jetties().index_of(jetty), now) && ended;
  });
  segments_.clear();
  if (port_->memory() != nullptr) port_->memory()->revoke_all();
  return ended && settled(fill_);
}

// ---- paths

bool Engine::add_path(drivers::PathPorts::Joining& joining, Time now) {
  PathList paths = transport_.paths();
  uint8_t place = 0;
  while (place < most_paths && (paths.there(place) || leaving_[place])) ++place;
  if (place == most_paths) return false;
  paths.set(place, joining.self());
  port_->path_ports()->join(place, joining);
  transport_.lead_paths(paths, now);
  return true;
}

// First this device sends nothing from the address, and its peers are told not to send there;
// packets on their way are still received. When no peer names the address, the frames that were
// filled for it settle.
bool Engine::remove_path(PathRemoval& what, Time now) {
  if (!what.begun) {
    PathList paths = transport_.paths();
    unsigned there = 0;
    what.number = most_paths;
    for (uint8_t i = 0; i < most_paths; ++i) {
      there += paths.there(i);
      if (paths.there(i) && paths.endpoints[i] == what.place) what.number = i;
    }
    if (what.number == most_paths || there == 1) {
      what.found = there == 1 && what.number < most_paths ? PathRemoval::Found::last
                                                          : PathRemoval::Found::nowhere;
      return true;
    }
    what.begun = true;
    what.since = now;
    leaving_[what.number] = true;
    paths.set(what.number, {});
    transport_.lead_paths(paths, now);
  }
  if (!what.closed) {
    if (now < what.look_at) return false;
    what.look_at = now + told_patience;
    if (!transport_.told_paths() && now - what.since < most_told) return false;
    what.closed = true;
    port_->path_ports()->stop(what.number);
    transport_.close_place(what.number);
    what.fill = fill_;
  }
  if (!settled(what.fill)) return false;
  what.port = port_->path_ports()->part(what.number);
  leaving_[what.number] = false;
  return true;
}

// ---- statistics

std::optional<size_t> Engine::paths(PeerId peer, std::span<Path, most_paths> out) {
  const auto facts = transport_.facts(peer);
  if (!facts) return std::nullopt;
  if (facts->routes == nullptr) return 0;
  size_t count = 0;
  for (uint8_t i = 0; i < facts->routes->count(); ++i) {
    const transport::Route& route = (*facts->routes)[i];
    if (!route.there) continue;
    out[count++] = {.from = transport_.paths().endpoints[route.local],
                    .to = route.to,
                    .usable = route.usable,
                    .rtt = route.rtt,
                    .sent = route.sent,
                    .lost = route.lost,
                    .number = i};
  }
  return count;
}

Statistics Engine::statistics() {
  const jetty::InitiatorCounters& initiator = transactions_.initiator().counters();
  const jetty::TargetCounters& target = transactions_.target().counters();
  const transport::Counters& packets = transport_.counters();
  const transport::PeerNews& peers = transport_.news();
  const drivers::PortCounters port = port_->counters();
  Statistics out;
  out.works = initiator.works;
  out.completions = transactions_.jetties().completed();
  out.receiver_not_ready = initiator.not_ready;
  out.retries = initiator.retries;
  out.timeouts = initiator.timeouts;
  out.unknown = initiator.unknown;
  out.held = initiator.held;
  out.copied = initiator.copied;
  out.copied_bytes = initiator.copied_bytes;
  out.copied_past_caches = initiator.copied_past_caches;
  out.past_caches_from = transactions_.initiator().past_caches_from();
  out.executed = target.executed;
  out.refused = target.refused + port.refused;
  out.not_ready = target.not_ready;
  out.repeated = target.repeated;
  out.withdrawn = target.withdrawn;
  out.unheard = target.unheard + port.unheard;
  out.parked = target.parked;
  out.too_early = target.too_early;
  out.datagrams_sent = packets.datagrams_sent;
  out.datagrams_received = target.datagrams;
  out.datagrams_dropped = target.datagrams_dropped + packets.datagrams_lost;
  out.packets_sent = packets.sent;
  out.retransmitted = packets.retransmitted;
  out.filler = packets.filler;
  out.acks_sent = packets.acks_sent;
  out.packets_received = packets.received;
  out.duplicates = packets.duplicates;
  out.out_of_order = packets.out_of_order;
  out.retransmission_timeouts = packets.timeouts;
  out.dropped_icrc = packets.bad_icrc;
  out.dropped_malformed =
      packets.malformed + target.malformed + initiator.malformed + port.malformed;
  out.dropped_unknown_channel = packets.unknown_channel;
  out.dropped_other =
      packets.wrong_source + packets.wrong_partition + packets.invalid_psn + packets.no_memory;
  out.setup_sent = packets.setup_sent;
  out.setup_received = packets.setup_received;
  out.setup_cookies = packets.setup_cookies;
  out.setup_refused = packets.setup_refused;
  out.setup_incarnation = packets.setup_incarnation;
  out.setup_late = packets.setup_late;
  out.setup_declined = packets.setup_declined;
  out.setup_unsent = packets.setup_unsent;
  out.peers = transport_.peer_count();
  out.peers_restarted = peers.of(transport::Why::restarted).count;
  out.peers_left = peers.of(transport::Why::left).count;
  out.channels = transport_.channel_count();
  out.channels_not_made = peers.of(transport::Why::unreachable).count +
                          peers.of(transport::Why::refused).count +
                          peers.of(transport::Why::no_room).count;
  out.jetties = transactions_.jetties().size();
  out.segments = segments_.size();
  out.not_fenced = not_fenced_;
  out.channels_made = packets.channels_made;
  out.channels_lost = packets.channels_lost;
  out.channels_idle = peers.of(transport::Why::idle).count;
  out.paths_lost = peers.path_lost.count;
  out.paths_back = peers.path_back.count;
  out.frames_sent = port.frames_sent;
  out.frames_received = port.frames_received;
  out.send_calls = port.calls_sent;
  out.receive_calls = port.calls_received;
  out.send_failures = port.send_failures;
  out.unreachable = port.unreachable;
  out.faults_injected = port.injected;
  out.uncaptured = port.uncaptured;
  out.passes = passes_;
  return out;
}

Snapshot Engine::snapshot() {
  const drivers::PortCounters port = port_->counters();
  return {.counts = statistics(),
          .peers = transport_.news(),
          .send_failure = port.latest_failure,
          .paths = transport_.path_totals(),
          .no_room = {port.shortage, &port_->facts().backing}};
}

}  // namespace urma::engine
