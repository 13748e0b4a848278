#include "transport/rtp/reports.h"

#include <algorithm>

namespace urma::transport {
namespace {

constexpr unsigned unit_shift = 10;  // of the time of the last CNP

uint32_t units(Time now) {
  return static_cast<uint32_t>(static_cast<uint64_t>(now.time_since_epoch().count()) >> unit_shift);
}

}  // namespace

bool ReportsGiven::add(uint32_t bytes, Ecn ecn, Time now) {
  const bool marked = ecn == Ecn::ce;
  received_.add_packet(bytes);
  if (form_ == ReportForm::cnp) {
    constexpr auto apart = static_cast<uint32_t>(between_notifications.count() >> unit_shift);
    // The first mark is always reported.
    if (!marked || (congested_ && units(now) - marked_ <= apart)) return false;
    congested_ = notification_due_ = true;
    marked_ = units(now);
    return false;
  }
  if (marked && form_ == ReportForm::ldcp) {
    ByteCount sum(marked_);
    sum.add_packet(bytes);
    marked_ = static_cast<uint32_t>(uint64_t{sum});
  } else if (marked) {
    marked_ = std::min<uint32_t>(marked_ + 1, UINT8_MAX);
  }
  const bool changed = marked != congested_;
  congested_ = marked;
  return changed;
}

void ReportsGiven::write(HeaderBytes<LdcpCetph::size> out) {
  if (form_ == ReportForm::ldcp) {
    LdcpCetph{.ack_seq = received_, .ce_seq = ByteCount(marked_)}.emit(out);
    return;
  }
  RateCetph{.ack_seq = received_, .marked = static_cast<uint8_t>(marked_)}.emit(out);
  marked_ = 0;
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
  if (arrived < 0) return std::nullopt;
  received_ = ldcp.ack_seq;
  int64_t marked = 0;
  if (form_ == ReportForm::ldcp) {
    marked = ldcp.ce_seq - marked_;
    marked_ = ldcp.ce_seq;
  } else {
    // No port of this version carries CCI, so all marks are of ECN, and the fields about switches
    // have no meaning.
    marked = int64_t{RateCetph::parse(report).marked} * packet_bytes;
  }
  return congestion::Feedback{.marked_bytes =
                                  static_cast<uint64_t>(std::clamp<int64_t>(marked, 0, arrived))};
}

}  // namespace urma::transport
