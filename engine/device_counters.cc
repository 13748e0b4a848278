// SPDX-License-Identifier: Apache-2.0
#include "engine/device_counters.h"

#include "engine/engine.h"

namespace urma::engine {
namespace {

void add_works(Statistics& out, jetty::Transactions& transactions) {
  const jetty::InitiatorCounters& initiator = transactions.initiator().counters();
  out.works = initiator.works;
  out.completions = transactions.jetties().completed();
  out.receiver_not_ready = initiator.not_ready;
  out.retries = initiator.retries;
  out.timeouts = initiator.timeouts;
  out.unknown = initiator.unknown;
  out.held = initiator.held;
  out.copied = initiator.copied;
  out.copied_bytes = initiator.copied_bytes;
  out.copied_past_caches = initiator.copied_past_caches;
  out.carried = initiator.carried;
  out.carried_bytes = initiator.carried_bytes;
  out.past_caches_from = transactions.initiator().copier().past_caches_from();
}

void add_requests(Statistics& out, const jetty::TargetCounters& target,
                  const drivers::PortCounters& port) {
  out.executed = target.executed;
  out.refused = target.refused + port.refused;
  out.not_ready = target.not_ready;
  out.repeated = target.repeated;
  out.withdrawn = target.withdrawn;
  out.ignored = target.ignored + port.ignored;
  out.parked = target.parked;
  out.too_early = target.too_early;
}

void add_packets(Statistics& out, const transport::Counters& packets,
                 jetty::Transactions& transactions, const drivers::PortCounters& port) {
  const jetty::InitiatorCounters& initiator = transactions.initiator().counters();
  const jetty::TargetCounters& target = transactions.target().counters();
  out.packets_sent = packets.sent;
  out.retransmitted = packets.retransmitted;
  out.acknowledged_bytes = packets.acknowledged_bytes;
  out.filler = packets.filler;
  out.paced_packets = packets.paced;
  out.paced_trains = packets.trains;
  out.acks_sent = packets.acks_sent;
  out.packets_received = packets.received;
  out.duplicates = packets.duplicates;
  out.out_of_order = packets.out_of_order;
  out.retransmission_timeouts = packets.timeouts;
  out.datagrams_sent = packets.datagrams_sent;
  out.datagrams_received = target.datagrams;
  out.datagrams_dropped = target.datagrams_dropped + packets.datagrams_lost;
  out.packets_marked = packets.marked;
  out.overtaken_reports = packets.overtaken_reports;
  out.notifications = packets.notifications;
  out.dropped_icrc = packets.bad_icrc;
  out.dropped_malformed =
      packets.malformed + target.malformed + initiator.malformed + port.malformed;
  out.dropped_unknown_channel = packets.unknown_channel;
  out.dropped_other =
      packets.wrong_source + packets.wrong_partition + packets.invalid_psn + packets.no_memory;
}

void add_setup(Statistics& out, const transport::Counters& packets) {
  out.setup_sent = packets.setup_sent;
  out.setup_received = packets.setup_received;
  out.setup_cookies = packets.setup_cookies;
  out.setup_refused = packets.setup_refused;
  out.setup_incarnation = packets.setup_incarnation;
  out.setup_late = packets.setup_late;
  out.setup_declined = packets.setup_declined;
  out.setup_unsent = packets.setup_unsent;
  out.channels_made = packets.channels_made;
  out.channels_lost = packets.channels_lost;
  out.channels_without_reports = packets.channels_without_reports;
}

void add_peers(Statistics& out, transport::Transport& transport) {
  const transport::PeerNews& peers = transport.news();
  out.peers = transport.counts().peers;
  out.peers_restarted = peers.of(transport::Why::restarted).count;
  out.peers_left = peers.of(transport::Why::left).count;
  out.channels = transport.counts().channels;
  out.channels_not_made = peers.of(transport::Why::unreachable).count +
                          peers.of(transport::Why::refused).count +
                          peers.of(transport::Why::no_room).count;
  out.channels_idle = peers.of(transport::Why::idle).count;
  out.paths_lost = peers.path_lost.count;
  out.paths_back = peers.path_back.count;
}

void add_port(Statistics& out, const drivers::PortCounters& port) {
  out.frames_sent = port.frames_sent;
  out.frames_received = port.frames_received;
  out.send_calls = port.calls_sent;
  out.receive_calls = port.calls_received;
  out.send_failures = port.send_failures;
  out.unreachable = port.unreachable;
  out.faults_injected = port.injected;
  out.uncaptured = port.uncaptured;
}

}  // namespace

Statistics statistics_of(Engine& engine) {
  jetty::Transactions& transactions = engine.transactions();
  const transport::Counters& packets = engine.transport().counters();
  const drivers::PortCounters port = engine.port().counters();
  Statistics out;
  add_works(out, transactions);
  add_requests(out, transactions.target().counters(), port);
  add_packets(out, packets, transactions, port);
  add_setup(out, packets);
  add_peers(out, engine.transport());
  add_port(out, port);
  out.jetties = transactions.jetties().size();
  out.segments = engine.segments().size();
  out.not_fenced = engine.registrations().not_fenced();
  out.passes = engine.passes();
  return out;
}

Snapshot snapshot_of(Engine& engine) {
  transport::Transport& transport = engine.transport();
  const drivers::PortCounters port = engine.port().counters();
  return {.counts = statistics_of(engine),
          .peers = transport.news(),
          .send_failure = port.latest_failure,
          .send_failure_text = port.failure_text,
          .paths = transport.path_totals(),
          .no_room = {port.shortage, &engine.port().facts().backing}};
}

std::optional<size_t> paths_to(Engine& engine, PeerId peer, std::span<Path, most_paths> out) {
  transport::Transport& transport = engine.transport();
  const auto facts = transport.facts(peer);
  if (!facts) return std::nullopt;
  if (facts->routes == nullptr) return 0;
  size_t count = 0;
  for (uint8_t i = 0; i < facts->routes->count(); ++i) {
    const transport::Route& route = (*facts->routes)[i];
    if (!route.there) continue;
    out[count++] = {.from = transport.paths().endpoints[route.local],
                    .to = route.to,
                    .usable = route.usable,
                    .rtt = route.rtt,
                    .sent = route.sent,
                    .lost = route.lost,
                    .number = i};
  }
  return count;
}

}  // namespace urma::engine
