// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/reports.h"

#include <algorithm>
#include <utility>

namespace urma::transport {
namespace {

constexpr unsigned unit_shift = 10;  // of the time of the last CNP

uint32_t units(Time now) {
  return static_cast<uint32_t>(static_cast<uint64_t>(now.time_since_epoch().count()) >> unit_shift);
}

// Returns the needs of a sender with reports of form caqm or rate.
congestion::Needs needs_of(ReportForm form) {
  return form == ReportForm::rate ? congestion::Needs::rates : congestion::Needs::increases;
}

// Switches of other vendors and marks of ECN set C without S. The guard then reduces as for ECN.
congestion::Feedback feedback_of(const CaqmCetph& report, uint32_t packet_bytes) {
  if (report.switch_queue == 0) return {.marked_bytes = uint64_t{report.marked} * packet_bytes};
  return {.marked_packets = report.marked,
          .increase = report.increase,
          .last_hop = report.last_hop,
          .switched = true,
          .hint = report.hint,
          .switch_queue = report.switch_queue};
}

// All marks are of ECN if no packet with C named a rate. If both kinds arrived, both count: the hop
// that marks is another one than the switch that names a rate.
congestion::Feedback feedback_of(const RateCetph& report, uint32_t packet_bytes) {
  const bool named = report.marked > 0 && report.rate_code() != 0;
  const uint64_t ecn_marks = named && report.switched ? report.ecn_marks() : report.marked;
  const uint64_t marked_bytes = ecn_marks * packet_bytes;
  if (!report.switched) return {.marked_bytes = marked_bytes};
  return {.marked_packets = named ? report.marked : 0u,
          .marked_bytes = marked_bytes,
          .increase = report.increase,
          .last_hop = report.last_hop,
          .switched = true,
          .hint = report.marked > 0 ? uint16_t{report.rate_code()} : report.hint,
          .switch_queue = report.switch_queue};
}

}  // namespace

ReportForm form_for(congestion::Needs needs) {
  switch (needs) {
    case congestion::Needs::marks:
      return ReportForm::ldcp;
    case congestion::Needs::notifications:
      return ReportForm::cnp;
    case congestion::Needs::increases:
      return ReportForm::caqm;
    case congestion::Needs::rates:
      return ReportForm::rate;
    case congestion::Needs::nothing:
      break;
  }
  return ReportForm::none;
}

void ReportsGiven::add(uint32_t bytes, Ecn ecn, Time now, const congestion::Signal& signal) {
  const bool marked = ecn == Ecn::ce;
  received_.add_packet(bytes);
  if (unreported_ < UINT8_MAX) ++unreported_;
  if (form_ == ReportForm::cnp) {
    constexpr auto apart = static_cast<uint32_t>(between_notifications.count() >> unit_shift);
    // The first mark is always reported.
    if (!marked || (congested_ && units(now) - count() <= apart)) return;
    congested_ = notification_due_ = true;
    set_count(units(now));
    return;
  }
  if (form_ != ReportForm::ldcp) return add_signal(bytes, marked, signal);
  if (marked) {
    ByteCount sum(count());
    sum.add_packet(bytes);
    set_count(static_cast<uint32_t>(uint64_t{sum}));
  }
  note_change(marked);
}

void ReportsGiven::add_signal(uint32_t bytes, bool ecn_marked, congestion::Signal signal) {
  if (ecn_marked && !signal.congested) {
    signal.congested = true;
    signal.hint = 0;
  }
  echo_.add(signal, bytes, needs_of(form_));
  if (ecn_marked) echo_.add_ecn_mark();
  if (echo_.full()) ack_due_ = true;
  note_change(signal.congested);
}

void ReportsGiven::note_change(bool congested) {
  const bool first = uint64_t{received_} * ByteCount::unit_bytes <= first_bytes;
  if (congested != congested_ || first) ack_due_ = true;
  congested_ = congested;
}

void ReportsGiven::write(HeaderBytes<LdcpCetph::size> out) {
  ack_due_ = false;
  unreported_ = 0;
  if (form_ == ReportForm::ldcp) {
    LdcpCetph{.ack_seq = received_, .ce_seq = ByteCount(count())}.emit(out);
    return;
  }
  const unsigned ecn_marks = echo_.ecn_marks();
  const congestion::Feedback news = echo_.take(needs_of(form_));
  const auto marked = static_cast<uint8_t>(news.marked_packets);
  if (form_ == ReportForm::rate) {
    const auto least_code = static_cast<uint8_t>(news.hint);
    RateCetph{.ack_seq = received_,
              .switch_queue = news.switch_queue,
              .last_hop = news.last_hop,
              .increase = news.increase,
              .marked = marked,
              .switched = news.switched,
              .hint = marked > 0 ? RateCetph::marked_hint(least_code, ecn_marks) : news.hint}
        .emit(out);
    return;
  }
  const uint8_t queue = news.switched ? std::max<uint8_t>(news.switch_queue, 1) : 0;
  CaqmCetph{.ack_seq = received_,
            .switch_queue = queue,
            .last_hop = news.last_hop,
            .increase = news.increase,
            .marked = marked,
            .hint = news.hint}
      .emit(out);
}

size_t ReportsGiven::write_notification(Rtph header, std::span<std::byte> out) {
  header.opcode = static_cast<uint8_t>(TpOpcode::congestion);
  header.emit(out.first<Rtph::size>());
  CnpCetph{.congestion = CnpCetph::Congestion::severe}.emit(
      out.subspan<Rtph::size, CnpCetph::size>());
  notification_due_ = false;
  return Rtph::size + CnpCetph::size;
}

std::optional<congestion::Feedback> ReportsTaken::take(HeaderView<LdcpCetph::size> report,
                                                       uint32_t packet_bytes) {
  const auto ldcp = LdcpCetph::parse(report);
  const int64_t arrived = ldcp.ack_seq - received_;
  if (arrived < 0) {
    overtaken_in_row_ = static_cast<uint8_t>(overtaken_in_row_ % most_overtaken + 1);
    if (overtaken_in_row_ == most_overtaken) {
      received_ = ldcp.ack_seq;
      marked_ = ldcp.ce_seq;
    }
    return std::nullopt;
  }
  overtaken_in_row_ = 0;
  if (arrived == 0) return std::nullopt;
  received_ = ldcp.ack_seq;
  const auto most = static_cast<uint64_t>(arrived);
  if (form_ != ReportForm::ldcp) {
    congestion::Feedback news = form_ == ReportForm::rate
                                    ? feedback_of(RateCetph::parse(report), packet_bytes)
                                    : feedback_of(CaqmCetph::parse(report), packet_bytes);
    news.marked_bytes = std::min(news.marked_bytes, most);
    return news;
  }
  const int64_t marked = ldcp.ce_seq - marked_;
  marked_ = ldcp.ce_seq;
  return congestion::Feedback{
      .marked_bytes = std::min(static_cast<uint64_t>(std::max<int64_t>(marked, 0)), most)};
}

}  // namespace urma::transport
