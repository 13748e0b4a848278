// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp_medium.h"

#include <algorithm>

#include "base/timer_wheel.h"
#include "wire/icrc.h"

namespace urma::transport {
namespace {

constexpr uint32_t least_mtu = 1024;
// Only silence shows that a path loses all large packets, so after this many OPENs half of the MTU
// is asked for.
constexpr int tries_per_mtu = 3;
// The most that a data packet holds besides its payload.
constexpr size_t data_overhead = Rtph::size + TaRequest::max_size + icrc_bytes;

// A process on the UB port has its address as EID. A process on another port has drawn its EID
// (fd00::/8, Sub-ID 1), which does not say where it is.
bool names_address(const Eid& eid, const Endpoint& at) {
  if (eid == at.address && at.port == ub_port) return true;
  if (is_switched(at.address)) return false;  // each device there has its address as its EID
  return eid.bytes[0] == std::byte{0xfd} && (eid.bytes[13] & std::byte{0x0f}) == std::byte{0} &&
         eid.bytes[14] == std::byte{0} && eid.bytes[15] == std::byte{1};
}

// No port knows the round trip to a peer without queues, so controllers take the least measured
// one.
congestion::Settings pacing_of(const Settings& settings) {
  return {.bytes_per_second = static_cast<double>(settings.line_bytes_per_second),
          // The timer of a departure expires up to a tick late, however punctual the engine is.
          .lateness = std::max(settings.lateness, TimerWheel::tick)};
}

}  // namespace

RtpMedium::RtpMedium(const Uses& uses, const OwnPaths& own_paths)
    : MediumOf(uses, uses.settings.idle_timeout, uses.settings.packets, uses.settings.slices,
               uses.settings.peers, uses.settings.lateness),
      own_paths_(own_paths),
      pacing_(pacing_of(uses.settings)),
      modes_(uses.settings.peers) {}

PacketChannel& RtpMedium::make(Peer& peer, const Agreed& agreed, Time now) {
  const SetupMessage& theirs = agreed.theirs;
  const ReportOffer their_offer = offered_by(theirs.features);
  const ReportForm taken = agreed_form(agreed.ours, their_offer);
  const congestion::ControllerKind& controller = controller_for(taken);
  if (&controller != settings_.controller) ++counters_.channels_without_reports;
  const TpSettings settings{
      .ends = ends_of(peer, agreed),
      .first_sent = Psn::first(peer.first_psn),
      .first_received = Psn::first(theirs.first_psn),
      .send_window = std::max<uint32_t>(theirs.receive_window, 1),
      .limit_bytes = std::max<uint32_t>(theirs.buffer_bytes, agreed.mtu),
      .first_rtt = agreed.first_rtt,
      .mode = mode_of(peer, theirs.features),
      .peers_mode = asked_by(theirs.features),
      .controller = &controller,
      .gives = agreed_form(their_offer, agreed.ours),
      .takes = taken,
      .pacing = pacing_,
      .paths = &own_paths_.usable(),
      .path = own_paths_.current().first(),
      .routes = peer.routes,
      .balance = settings_.balance,
  };
  return *channels_.create(channels_.next_index(), settings, own_pools_, counters_, now);
}

// Without the reports that it needs, the controller of the device gives way to the first one that
// reads those that were agreed on: without any, to the default one, which reacts to loss alone. If
// this device could not use reports anyway, it asked for none, and a controller that asks switches
// stays: its guard reads delays and losses.
const congestion::ControllerKind& RtpMedium::controller_for(ReportForm reports) const {
  const congestion::Needs needs = settings_.controller->needs;
  const bool guarded = needs == congestion::Needs::increases || needs == congestion::Needs::rates;
  const bool asked = settings_.reports.contain(form_for(needs));
  if (form_for(needs) == reports || (guarded && !asked && reports == ReportForm::none)) {
    return *settings_.controller;
  }
  for (const congestion::ControllerKind& kind : congestion::controllers()) {
    if (form_for(kind.needs) == reports) return kind;
  }
  return congestion::controllers().front();
}

void RtpMedium::view_control(const PacketChannel& channel, ChannelView& out) const {
  const congestion::ControllerKind& used =
      controller_for(channels_.at(channel.index()).reports_taken().form());
  out.congestion = used.name;
  if (&used != settings_.controller) out.instead = ChannelView::Instead::not_reported;
}

// Most channels use the mode of the device.
const Retransmission* RtpMedium::mode_of(const Peer& peer, uint32_t features) {
  const Retransmission mode = followed_by(mode_for(&peer, settings_), features);
  return mode == settings_.retransmission ? &settings_.retransmission : modes_.create(mode);
}

void RtpMedium::destroy(PacketChannel& channel) {
  Tp& tp = channels_.at(channel.index());
  const Retransmission* const mode = &tp.mode();
  timers_.disarm(tp);
  channels_.destroy(&tp);
  if (mode != &settings_.retransmission) modes_.destroy(&modes_.at(modes_.index_of(mode)));
}

bool RtpMedium::may_have_sent(const PacketChannel& channel, const SetupMessage& reset) {
  const Tp& tp = channels_.at(channel.index());
  const Psn first = Psn::first(peers_.find(channel.peer())->first_psn);
  const Psn psn = Psn::unwrap(tp.next_psn(), reset.echoed_psn);
  return psn >= first && psn < tp.next_psn() && tp.next_psn() - psn <= ReceivedWindow::max_window;
}

bool RtpMedium::finish(TxFrame& frame) {
  if (!own_paths_.usable().there(frame.path)) return false;
  seal(frame, own_paths_.endpoint(frame.path), own_pools_.prefix);
  return true;
}

// A peer may also send from any address of its paths.
bool RtpMedium::may_come_from(const Eid& source, const Endpoint& from) {
  if (names_address(source, from)) return true;
  bool known = false;
  peers_.for_each_of(source, [&](const Peer& peer) { known = known || peer.has_route_to(from); });
  return known;
}

uint32_t RtpMedium::mtu_to_ask(const Peer& peer) const {
  // Halved three times at most, since OPENs may be many. Most paths are tried once with each size.
  const int paths = peer.routes == nullptr ? 1 : peer.routes->count();
  const int tries = std::clamp<int>(paths, tries_per_mtu, tries_per_mtu + 1);
  return std::max(settings_.mtu >> std::min(peer.tries / tries, 3), least_mtu);
}

uint32_t RtpMedium::as_large_as(uint32_t payload) const {
  return static_cast<uint32_t>(payload + data_overhead);
}

}  // namespace urma::transport
