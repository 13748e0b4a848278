// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/tp.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "transport/rtp/parsed_ack.h"
#include "wire/cci.h"
#include "wire/icrc.h"

namespace urma::transport {
namespace {

// How many full packets a time-out of mode rack sends again, or how many smaller ones of the same
// size together. One would be enough for a peer that was not running; more of them end a burst of
// losses sooner.
constexpr uint32_t questions = 4;
constexpr uint32_t most_questions = 64;

constexpr SliceRef no_slice{};

// Returns what switches say on this packet, if that was agreed on in this form. Any other CCI but 0
// is counted and ignored.
congestion::Signal signal_on(const RxFrame& frame, ReportForm form, Counters& counters) {
  if (frame.cci == 0) return {};
  std::optional<congestion::Signal> signal;
  if (has_answers(form)) signal = signal_of(frame.cci, frame.switch_queue);
  if (!signal) ++counters.malformed;
  return signal.value_or(congestion::Signal{});
}

LossDetection::Times times_of(ChannelRoutes routes, const Waits& waits, Duration rtt) {
  return {rtt, routes.spread(waits, rtt)};
}

// Adds to a sum that stops at its largest value.
void add_to(uint32_t& sum, uint32_t more) { sum += std::min(more, UINT32_MAX - sum); }

// With several paths, each of them has its own congestion window, and the channel's window limits
// only how much the peer has to buffer.
const congestion::ControllerKind& controller_of(const TpSettings& settings) {
  const bool several = ChannelRoutes(settings.routes).several();
  return several ? *congestion::find_controller("fixed") : *settings.controller;
}

congestion::Settings pacer_settings(uint32_t index, const TpSettings& settings,
                                    uint32_t packet_bytes) {
  congestion::Settings out = settings.pacing;
  out.packet_bytes = packet_bytes;
  out.limit_bytes = settings.limit_bytes;
  out.seed = index ^ number(settings.ends.local);
  return out;
}

}  // namespace

// The burst that is being put together: which packets leave in which frames.
struct Tp::Plan {
  std::span<TxFrame* const> frames;
  Burst& burst;
  SentBurst& remembered;
  bool paced;  // packets may have to wait for their departure
  size_t count = 0;
  uint64_t bytes_again = 0;
  uint32_t requests = 0;   // packets of requests
  bool again = false;      // contains a retransmission
  bool held_back = false;  // another retransmission has to wait, so new packets have to, too

  bool full() const { return count == frames.size() || count == Burst::capacity; }
  // Returns whether no later packet of the burst takes the same route as this one.
  bool ends_route(size_t at) const {
    const auto& packets = remembered.packets;
    for (size_t i = at + 1; i < count; ++i) {
      if (packets[i]->route == packets[at]->route) return false;
    }
    return true;
  }
  void add(SentWindow::Packet& packet, Psn psn, bool repeated, uint16_t cci) {
    frames[count]->head_bytes = Rtph::size;
    frames[count]->piece_count = 0;
    frames[count]->tail_bytes = 0;
    frames[count]->cci = cci;
    burst.slots[count] = {.slice = packet.slice,
                          .index = packet.index,
                          .again = repeated,
                          .frame = frames[count],
                          .withdrawn = false};
    remembered.packets[count] = &packet;
    remembered.psns[count] = psn;
    ++count;
  }
};

Tp::Tp(uint32_t index, const TpSettings& settings, RtpPools& pools, Counters& counters, Time now)
    : PacketChannel(index, settings.ends, pools, counters, now),
      paths_(*settings.paths),
      mode_(*settings.mode),
      sent_(settings.first_sent, settings.routes),
      balance_(settings.balance),
      path_(settings.path),
      reports_taken_(settings.takes),
      pacer_(controller_of(settings),
             pacer_settings(index, settings, settings.ends.facts.packet_bytes + header_allowance)),
      send_window_(
          static_cast<uint16_t>(std::min(settings.send_window, ReceivedWindow::max_window))),
      losses_(settings.first_sent),
      next_tpmsn_(settings.first_sent.wire()),
      timer_(settings.first_rtt),
      reports_given_(settings.gives),
      receipts_(settings.first_received, *settings.mode, settings.peers_mode) {
  routes().open(
      takes_overtaking_for_loss(mode_), *settings.controller,
      pacer_settings(index, settings, settings.ends.facts.packet_bytes + header_allowance),
      settings.gives, settings.takes);
}

Tp::~Tp() {
  sent_.release(pools().sent);
  receipts_.release(pools().bitmaps);
}

size_t Tp::view(std::span<ChannelView> out, Time now) const {
  if (out.empty()) return 0;
  ChannelView whole{.from = paths_.endpoints[path_],
                    .to = to_,
                    .unheard = now - last_heard_,
                    .retransmitted = retransmitted_,
                    .spurious = spurious_,
                    .not_ready = not_ready_,
                    .acknowledged_bytes = acknowledged_bytes_};
  if (routes().several()) return routes().view(whole, paths_, out);
  whole.rtt = rtt();
  if (timer_.rtt().least() > Duration{}) whole.least_rtt = timer_.rtt().least();
  whole.inflight_bytes = sent_.inflight_bytes();
  pacer_.view(whole);
  out[0] = whole;
  return 1;
}

// ---- receiving

bool Tp::handle_data(const Rtph& header, const RxFrame& frame, Time now) {
  hear(now);
  switch (receipts_.receive(header, mode_, now, pools().bitmaps)) {
    case Receipts::Arrival::fresh: {
      if (receipts_.has_hole()) ++counters_.out_of_order;
      const auto signal = signal_on(frame, reports_given_.form(), counters_);
      if (reports_given_.any()) {
        if (frame.ecn == Ecn::ce) ++counters_.marked;
        routes().reports().given(reports_given_).add(frame.bytes, frame.ecn, now, signal);
      }
      return true;
    }
    case Receipts::Arrival::duplicate:
      ++counters_.duplicates;
      return false;
    case Receipts::Arrival::no_memory:
      ++counters_.no_memory;
      return false;
    case Receipts::Arrival::not_kept:
      ++counters_.out_of_order;
      return false;
    case Receipts::Arrival::invalid:
      break;
  }
  ++counters_.invalid_psn;
  return false;
}

void Tp::handle_ack(const Rtph& header, std::span<const std::byte> rest, const RxFrame& frame,
                    Time now, PacketSink& sink) {
  ++counters_.acks_received;
  ParsedAck ack;
  if (!ack.assign(header, rest, sent_.first())) {
    ++counters_.malformed;
    return;
  }
  if (ack.through >= sent_.next()) {
    ++counters_.invalid_psn;
    return;
  }
  hear(now);
  ack.queue = signal_on(frame, reports_taken_.form(), counters_).switch_queue;
  apply(ack, now, sink);
  URMA_PARANOID_ASSERT(sent_.check(pools().sent), "the sent window's counters are its packets'");
}

inline void Tp::apply(const ParsedAck& ack, Time now, PacketSink& sink) {
  std::optional<congestion::Feedback> feedback;
  if (ack.congestion) {
    ReportsTaken& reports = routes().reports().taken(reports_taken_);
    feedback = reports.take(*ack.congestion, facts_.packet_bytes + header_allowance);
    if (feedback) feedback->ack_queue = ack.queue;
    counters_.overtaken_reports += reports.overtaken();
  }
  const uint64_t inflight = sent_.inflight_bytes();
  const auto news =
      sent_.acknowledge(ack.through, ack.selective ? &*ack.selective : nullptr,
                        {timer_.rtt().least(), timer_.longest_answer()}, now, pools().sent);
  if (news.rtt) timer_.add(*news.rtt);
  bool timed_out = false;
  if (news.bytes > 0) {
    timed_out = asks_at_time_out(mode_, routes().several()) &&
                timer_.settle(news.answered, news.oldest_first_copy, mode_, pools().waits, now);
    last_progress_ = now;
    counters_.acknowledged_bytes += news.bytes;
    acknowledged_bytes_ += static_cast<uint32_t>(news.bytes);
  } else {
    timer_.note_duplicate(pools().waits);
  }
  note_acknowledged(news, inflight, feedback ? &*feedback : nullptr, now);
  uint64_t lost_bytes = 0;
  if (ack.negative) {
    // UB 4.4.4. A TPNAK for a packet that was acknowledged since then is out of date.
    const bool late = ack.through + 1 < sent_.first();
    if (!late) lost_bytes = sent_.mark_all_lost(Duration{}, now, pools().sent);
  } else if (news.bytes > 0 && mode_.trigger != Retransmission::Trigger::timeout) {
    // UB 4.4.10: in the modes without fast retransmission, missing packets are noted, and only the
    // time-out has them sent again.
    lost_bytes = losses_.find(mode_, sent_, news, ack.reported(),
                              times_of(routes(), pools().waits, rtt()), now, pools().sent);
  }
  note_lost(lost_bytes, timed_out, now);

  const Psn first = sent_.first();
  const std::span delivered(pools().delivered);
  for (size_t count = delivered.size(); count == delivered.size();) {
    count = sent_.retire(delivered, pools().sent);
    if (count > 0) sink.delivered(peer_, delivered.first(count), now);
  }
  // In the modes without fast retransmission the time-out belongs to the oldest packet, so only the
  // acknowledgement of that packet restarts it.
  const bool moved = mode_.trigger != Retransmission::Trigger::timeout || sent_.first() != first;
  if (news.bytes > 0 && moved) {
    timer_.note_progress(news.rtt.has_value());
    sent_.empty() ? timer_.stop() : timer_.start(mode_, pools().waits, now);
  }
}

inline void Tp::note_acknowledged(const SentWindow::Acknowledgement& news, uint64_t inflight_bytes,
                                  const congestion::Feedback* feedback, Time now) {
  if (news.in_vain) pacer_.handle(congestion::Spurious{.now = now});
  add_to(spurious_, news.spurious);
  if (news.bytes == 0 && feedback == nullptr) return;
  // If switches tell of their queues, a round trip without their answer would look like a queue
  // elsewhere. In virtual time an answer may take no time, but zero means no sample.
  const bool known = feedback != nullptr || !has_answers(reports_taken_.form());
  const Duration sample = news.rtt && known ? std::max(*news.rtt, Duration(1)) : Duration{};
  pacer_.handle(congestion::Acknowledged{.now = now,
                                         .rtt = rtt(),
                                         .bytes = news.bytes,
                                         .inflight_bytes = inflight_bytes,
                                         .sample = sample,
                                         .least_rtt = timer_.rtt().least(),
                                         .feedback = feedback});
  routes().update_windows(false, now, feedback);
}

void Tp::handle_notification(std::span<const std::byte> rest, const RxFrame& frame, Time now) {
  if (reports_taken_.form() != ReportForm::cnp || rest.size() < CnpCetph::size) {
    ++counters_.malformed;
    return;
  }
  hear(now);
  // No form of reports has both CNPs and a CCI.
  (void)signal_on(frame, ReportForm::cnp, counters_);
  ++counters_.notifications;
  const auto cnp = CnpCetph::parse(rest.first<CnpCetph::size>());
  if (cnp.congestion == CnpCetph::Congestion::none) return;
  const congestion::Notified event{.now = now,
                                   .rtt = rtt(),
                                   .severe = cnp.congestion == CnpCetph::Congestion::severe,
                                   .last_hop = cnp.last_hop};
  pacer_.handle(event);
  routes().reports().notified(event);
}

void Tp::note_lost(uint64_t bytes, bool timed_out, Time now) {
  if (bytes == 0 && !timed_out) return;
  if (bytes > 0) {
    losses_.calm();
    timer_.note_lost();
  }
  pacer_.handle(congestion::Lost{.now = now, .rtt = rtt(), .bytes = bytes, .timed_out = timed_out});
  routes().update_windows(timed_out, now);
}

// ---- sending

inline bool Tp::window_open(uint32_t payload, uint64_t window, Time now, uint64_t planned) const {
  if (sent_.next() - sent_.first() >= send_window_) return false;
  if (!routes().any_room_for_new(payload + header_allowance, now)) return false;
  const uint64_t inflight = sent_.inflight_bytes() + planned;
  return inflight == 0 || inflight + payload + header_allowance <= window;
}

bool Tp::wants_to_send(Time now) const {
  return owes_ack(now) || (can_send(now) && pacer_.may_depart(routes(), now));
}

bool Tp::can_send(Time now) const {
  if (keep_alive_due_) return true;
  const uint32_t largest = facts_.packet_bytes + header_allowance;
  if (sent_.lost_packets() > 0) {
    if (questions_due_ > 0) return true;
    if (!routes().any_room(largest, now)) return false;
    return sent_.inflight_bytes() == 0 || sent_.inflight_bytes() + largest <= pacer_.window_bytes();
  }
  const uint64_t window = pacer_.window_bytes();
  if (pulling_.packets > 0) return window_open(pulling_.payload(facts_.packet_bytes), window, now);
  const std::optional<uint32_t> payload = offered_payload();
  if (!payload || !window_open(*payload, window, now)) return false;
  // A burst that fills the window asks for an acknowledgement, so small packets wait until several
  // may leave. They do not wait for more than half of the window, which would stay unused.
  const uint64_t least_room = std::min<uint64_t>(largest, window / 2);
  return sent_.inflight_bytes() + least_room <= window;
}

size_t Tp::fill(PacketSource& source, std::span<TxFrame* const> frames, Time now) {
  const bool paced = pacer_.paces(routes());
  Plan plan{
      .frames = frames, .burst = pools().burst, .remembered = pools().sent_burst, .paced = paced};
  window_limited_ = false;
  routes().begin_plan();
  if (sent_.lost_packets() > 0) plan_lost(plan, now);
  if (!plan.held_back) plan_new(plan, now);
  if (keep_alive_due_) plan_keep_alive(plan, now);
  if (plan.count == 0) return 0;

  const Burst& burst = plan.burst;
  if (paced) {
    counters_.paced += plan.count;
    ++counters_.trains;
  }
  source.write(std::span(plan.burst.slots).first(plan.count));
  for (size_t i = 0; i < plan.count; ++i) {
    // A slice that is withdrawn while its packets are being sent ends with this burst's filler.
    const bool current = pulling_.packets > 0 && burst.slots[i].slice == pulling_.what.slice;
    const bool final = i + 1 == plan.count || !(burst.slots[i + 1].slice == burst.slots[i].slice);
    if (burst.slots[i].withdrawn && current && final && !burst.slots[i].again) {
      plan.remembered.packets[i]->last = true;
      pulling_.packets = 0;
    }
    // A controller that paces reads round trips, which must not include the delay of an
    // acknowledgement.
    const bool ask =
        paced ? plan.ends_route(i)
              : i + 1 == plan.count && (window_limited_ || plan.again || keep_alive_due_);
    SentWindow::Packet& packet = *plan.remembered.packets[i];
    const Psn psn = plan.remembered.psns[i];
    const uint32_t foreseen = packet.bytes;
    finish(burst.slots[i], packet, psn, ask, now);
    if (paced && packet.bytes < foreseen) {
      pacer_.correct(routes(), packet.route,
                     {.number = psn.value, .unused_bytes = foreseen - packet.bytes});
    }
  }
  keep_alive_due_ = false;
  routes().used(now);
  if (!timer_.running()) timer_.start(mode_, pools().waits, now);
  URMA_PARANOID_ASSERT(sent_.check(pools().sent), "the sent window's counters are its packets'");
  return plan.count;
}

inline uint16_t Tp::depart(const Plan& plan, uint8_t route, const congestion::Sent& packet) {
  if (!plan.paced) return 0;
  const congestion::Signal asked = pacer_.depart(routes(), route, packet);
  return has_answers(reports_taken_.form()) ? cci_with(asked) : uint16_t{0};
}

// UB 4.4.15: new packets wait until all lost packets have been sent again.
void Tp::plan_lost(Plan& plan, Time now) {
  uint64_t inflight = sent_.inflight_bytes();
  Psn psn = sent_.first();
  uint32_t left = sent_.lost_packets();
  for (auto at = sent_.begin(pools().sent); at && left > 0; ++at, ++psn) {
    if (!at->lost) continue;
    plan.held_back = plan.full() || !pacer_.may_depart(routes(), now);
    if (plan.held_back) return;
    const bool room = routes().any_room(at->bytes, now);
    const bool open = inflight == 0 || inflight + at->bytes <= pacer_.window_bytes();
    // A question leaves even if the window is full: all packets that fill it may be lost.
    if (questions_due_ > 0) {
      --questions_due_;
    } else if (!room || !open) {
      plan.held_back = window_limited_ = true;
      return;
    }
    at->route = routes().pick(at->bytes, now) & 0x7f;
    const uint16_t cci = depart(plan, at->route,
                                {.now = now,
                                 .number = psn.value,
                                 .bytes = at->bytes,
                                 .again = true,
                                 .inflight_bytes = inflight});
    inflight += at->bytes;
    plan.bytes_again += at->bytes;
    if (at->copies < UINT8_MAX) ++at->copies;
    routes().plan(at->route, at->bytes);
    plan.add(*at, psn, true, cci);
    plan.again = true;
    --left;
    losses_.sent_again(psn);
    ++counters_.retransmitted;
    add_to(retransmitted_, 1);
  }
}

void Tp::plan_new(Plan& plan, Time now) {
  uint64_t window = pacer_.window_bytes();
  while (!plan.full() && (!plan.paced || pacer_.may_depart(routes(), now))) {
    if (pulling_.packets == 0 && !pick_slice(plan, now)) return;
    const uint32_t payload = pulling_.payload(facts_.packet_bytes);
    if (!window_open(payload, window, now, plan.bytes_again)) {
      window_limited_ = true;
      return;
    }
    if (!outstanding()) last_heard_ = std::max(last_heard_, now);
    const Psn psn = sent_.next();
    const uint32_t bytes = payload + header_allowance;
    const uint64_t inflight = sent_.inflight_bytes() + plan.bytes_again;
    pulling_.route = routes().pick_next(pulling_.route, bytes, balance_, now);
    SentWindow::Packet* packet = sent_.push({.slice = pulling_.what.slice,
                                             .tpmsn = pulling_.tpmsn,
                                             .index = pulling_.next,
                                             .bytes = static_cast<uint16_t>(bytes),
                                             .route = static_cast<uint8_t>(pulling_.route & 0x7f),
                                             .last = pulling_.next + 1 == pulling_.packets},
                                            now, pools().sent);
    if (packet == nullptr) return;
    const uint16_t cci = depart(plan, pulling_.route,
                                {.now = now,
                                 .number = psn.value,
                                 .bytes = bytes,
                                 .again = false,
                                 .inflight_bytes = inflight});
    if (plan.paced) window = pacer_.window_bytes();
    plan.add(*packet, psn, false, cci);
    if (++pulling_.next == pulling_.packets) pulling_.packets = 0;
  }
}

bool Tp::pick_slice(Plan& plan, Time now) {
  const std::optional<Class> from = next_class(plan.requests);
  if (!from) return false;
  pulling_.what = offered_.next_of(pools().offered, *from);
  pulling_.packets = static_cast<uint16_t>(packets_of(pulling_.what.bytes, facts_.packet_bytes));
  pulling_.next = 0;
  pulling_.route = routes().pick(pulling_.payload(facts_.packet_bytes) + header_allowance, now);
  pulling_.tpmsn = next_tpmsn_++ % Tpmsn::modulus;
  offered_.take(pools().offered, *from);
  if (*from != Class::answer) plan.requests += pulling_.packets;
  return true;
}

void Tp::plan_keep_alive(Plan& plan, Time now) {
  if (plan.count > 0 || plan.full() || !pacer_.may_depart(routes(), now)) return;
  const Psn psn = sent_.next();
  const uint64_t inflight = sent_.inflight_bytes();
  // A filler that belongs to no slice: it has a TPMSN of its own, and no payload.
  SentWindow::Packet* packet =
      sent_.push({.slice = no_slice,
                  .tpmsn = next_tpmsn_++ % static_cast<uint32_t>(Tpmsn::modulus),
                  .bytes = header_allowance,
                  .route = static_cast<uint8_t>(routes().pick(header_allowance, now) & 0x7f),
                  .last = true},
                 now, pools().sent);
  if (packet == nullptr) return;
  const uint16_t cci = depart(plan, packet->route,
                              {.now = now,
                               .number = psn.value,
                               .bytes = header_allowance,
                               .again = false,
                               .inflight_bytes = inflight});
  plan.add(*packet, psn, false, cci);
}

void Tp::finish(const PacketSlot& slot, SentWindow::Packet& packet, Psn psn, bool ask, Time now) {
  TxFrame& frame = *slot.frame;
  const size_t written = frame.bytes();
  const bool fake = slot.withdrawn || packet.slice == no_slice;
  if (fake) ++counters_.filler;
  ++counters_.sent;
  Rtph header{.last = packet.last,
              .opcode = static_cast<uint8_t>(TpOpcode::data),
              .padding = static_cast<uint8_t>(-written & 3),
              .next = NextHeader::transaction,
              .source = number(local_),
              .destination = number(remote_),
              .ack_request = ask,
              .fake = fake,
              .psn = psn.wire(),
              .tpmsn = packet.tpmsn};
  header.emit(HeaderBytes<Rtph::size>(frame.head, Rtph::size));
  frame.ecn = reports_taken_.form() == ReportForm::none ? Ecn::not_ect : Ecn::ect0;
  const size_t bytes = end_frame(frame, written, packet.route);
  sent_.sending(packet, static_cast<uint16_t>(bytes), now);
}

// Pads the frame, of which so many bytes are written, to four bytes, sets its addresses by the
// route, and appends the ICRC. Returns its size.
size_t Tp::end_frame(TxFrame& frame, size_t written, uint8_t route) const {
  frame.tail_bytes = static_cast<uint8_t>(-written & 3);
  frame.tail.fill(std::byte{0});
  frame.to = to_;
  frame.path = path_;
  routes().address(frame, route);
  const size_t padded = written + frame.tail_bytes;
  seal(frame, padded, paths_.endpoints[frame.path], pools().prefix);
  return padded + icrc_bytes;
}

void Tp::fill_ack(TxFrame& frame) {
  static_assert(Rtph::size + LdcpCetph::size + Saetph::max_size <= TxFrame::head_room);
  const Rtph header{.source = number(local_), .destination = number(remote_)};
  const std::span<std::byte> head(frame.head, TxFrame::head_room);
  frame.piece_count = 0;
  const uint8_t route = routes().for_answer();
  ReportsGiven& given = routes().reports().given_on(route, reports_given_);
  if (given.notification_due()) {
    frame.head_bytes = static_cast<uint8_t>(given.write_notification(header, head));
  } else {
    const size_t report = given.bytes_in_acks();
    frame.head_bytes =
        static_cast<uint8_t>(receipts_.write(header, mode_, head, pools().bitmaps, report));
    if (report > 0) given.write(head.subspan<Rtph::size, LdcpCetph::size>());
    ++counters_.acks_sent;
  }
  frame.ecn = Ecn::not_ect;
  // The acknowledgement asks for nothing; switches report their queues on it.
  frame.cci = has_answers(given.form()) ? cci_with({}) : uint16_t{0};
  end_frame(frame, frame.head_bytes, route);
}

// ---- timers

Time Tp::next_deadline() const {
  Time at = std::min(timer_.deadline(), losses_.deadline());
  at = std::min(at, receipts_.deadline(mode_, pools().waits, rtt()));
  at = std::min(at, routes().next_deadline());
  const bool paced = pacer_.paces(routes());
  if (paced && can_send(never)) {
    // Questions and keep-alives leave even if windows are full, so they wait for the departure
    // alone.
    const bool any = keep_alive_due_ || (questions_due_ > 0 && sent_.lost_packets() > 0);
    uint32_t payload = facts_.packet_bytes;
    if (sent_.lost_packets() == 0) {
      payload = pulling_.packets > 0 ? pulling_.payload(payload) : offered_payload().value_or(0);
    }
    at = std::min(at, pacer_.departure(routes(), any ? 0 : payload + header_allowance));
  }
  if (outstanding()) {
    at = std::min(at, last_heard_ + verdict_after);
    // A keep-alive that is due already may wait for its departure.
    const bool waits = keep_alive_due_ && paced;
    if (sent_.empty() && !waits) at = std::min(at, last_heard_ + keep_alive_after);
  }
  return at;
}

void Tp::handle_time_out(Time now) {
  ++counters_.timeouts;
  if (asks_at_time_out(mode_, routes().several())) {
    // After a long silence, more packets are sent: a burst of losses is over when enough packets
    // have been lost.
    const uint32_t full = timer_.timeouts_in_row() > 4 ? 4 * questions : questions;
    const uint64_t bytes = uint64_t{full} * (facts_.packet_bytes + header_allowance);
    const bool once = timer_.asks_once(has_answers(reports_taken_.form()));
    questions_due_ =
        static_cast<uint8_t>(sent_.ask_first(once ? 1 : most_questions, bytes, now, pools().sent));
    timer_.note_questions(questions_due_);
    return;
  }
  // The time-out is enabled in each mode (UB 4.4.1) and repairs the losses that no other rule has
  // repaired (UB 4.4.16, UB 4.4.20). Go-back-N sends again from the first missing packet on
  // (UB 4.4.6), selective retransmission each missing packet (UB 4.4.10).
  routes().timed_out(now);
  // A peer that reports which packets it has may still report those that left less than a round
  // trip ago.
  const bool tells = mode_.scope == Retransmission::Scope::selective;
  const Duration least_age =
      tells ? std::min(rtt(), timer_.time_out(mode_, pools().waits, 0) / 2) : Duration{};
  note_lost(sent_.mark_all_lost(least_age, now, pools().sent), true, now);
}

std::optional<Why> Tp::handle_timer(Time now) {
  if (outstanding() && now >= last_heard_ + verdict_after) return Why::silent;
  if (now >= losses_.deadline()) {
    note_lost(losses_.find_late(mode_, sent_, times_of(routes(), pools().waits, rtt()), now,
                                pools().sent),
              false, now);
  }
  // Lost packets that wait for their departure are not in flight. The time-out starts again when
  // they leave.
  const bool waits =
      pacer_.paces(routes()) && sent_.inflight_bytes() == 0 && sent_.lost_packets() > 0;
  if (waits && now >= timer_.deadline()) timer_.stop();
  switch (timer_.expire(mode_, pools().waits, now)) {
    case RetransmissionTimer::Action::none:
      break;
    case RetransmissionTimer::Action::probe:
      sent_.ask_last(now, pools().sent);
      questions_due_ = 1;
      break;
    case RetransmissionTimer::Action::time_out:
      handle_time_out(now);
      // UB 4.4.19: the channel fails when its tries are exhausted.
      if (mode_.rto_tries > 0 && timer_.timeouts_in_row() > mode_.rto_tries) return Why::silent;
  }
  if (awaited_ > 0 && sent_.empty() && now >= last_heard_ + keep_alive_after)
    keep_alive_due_ = true;
  return std::nullopt;
}

}  // namespace urma::transport
