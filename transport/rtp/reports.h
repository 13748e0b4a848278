// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <optional>
#include <span>

#include "congestion/controller.h"
#include "congestion/echo.h"
#include "urma/core/time.h"
#include "wire/cetph.h"
#include "wire/frame.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// Returns the form of the reports that a controller with these needs reads.
ReportForm form_for(congestion::Needs needs);

// Returns whether reports of this form contain what switches have answered.
constexpr bool has_answers(ReportForm form) {
  return form == ReportForm::caqm || form == ReportForm::rate;
}

// The report of congestion that the receiver of a channel owes to the sender (UB 4.2.6), in the
// form that set-up has agreed on: about all packets, or about those of one route. It does not know
// for which packets an acknowledgement is owed, or how a frame is addressed. `Tp` owns it, or
// `RouteReports` if there are several routes. Only the thread that runs the engine calls it.
class ReportsGiven {
 public:
  ReportsGiven() : ReportsGiven(ReportForm::none) {}
  explicit ReportsGiven(ReportForm form) : form_(form) {
    if (has_answers(form)) new (&echo_) congestion::Echo;
  }

  ReportForm form() const { return form_; }
  bool any() const { return form_ != ReportForm::none; }
  // Returns how many bytes each acknowledgement has for the report.
  size_t bytes_in_acks() const {
    const bool in_acks = any() && form_ != ReportForm::cnp;
    return in_acks ? LdcpCetph::size : 0;
  }
  // Counts a packet that has arrived for the first time. `bytes`: from its RTPH to its ICRC.
  // `signal`: what switches said on it. There must be a form.
  void add(uint32_t bytes, Ecn ecn, Time now, const congestion::Signal& signal = {});
  // Writes the report of the next acknowledgement. `bytes_in_acks` must not return 0.
  void write(HeaderBytes<LdcpCetph::size> out);

  // Returns whether an acknowledgement or a CNP has to leave now: the way has become congested, or
  // is not congested any more, or the packets are the first ones, whose answers tell the sender
  // what the way holds.
  bool due() const { return ack_due_ || notification_due_; }
  // Returns how many packets no report has counted yet, at most 255.
  uint8_t unreported() const { return unreported_; }
  // Returns whether a CNP (UB 4.6.4) has to leave now.
  bool notification_due() const { return notification_due_; }
  // Writes it behind this header, whose opcode it sets. Returns how many bytes it wrote.
  [[gnu::cold]] size_t write_notification(Rtph header, std::span<std::byte> out);

 private:
  // At most one CNP leaves in so much time (DCQCN).
  static constexpr Duration between_notifications = std::chrono::microseconds(50);

  // The packets of so many bytes are acknowledged one by one: what a round trip of 8 us at 256 Gb/s
  // holds. Since the count wraps, those of each further 8 GiB are, too.
  static constexpr uint64_t first_bytes = 256 << 10;

  void add_signal(uint32_t bytes, bool ecn_marked, congestion::Signal signal);
  void note_change(bool congested);

  // ldcp (UB 4.6.3): of packets that were marked. cnp: when the last CNP became due, in units of
  // 1024 ns that wrap.
  uint32_t count() const { return uint32_t{marked_.high} << 16 | marked_.low; }
  void set_count(uint32_t count) {
    marked_ = {static_cast<uint16_t>(count >> 16), static_cast<uint16_t>(count)};
  }

  struct Halves {  // of a number, which would need more room if it were aligned
    uint16_t high = 0;
    uint16_t low = 0;
  };

  ByteCount received_;
  union {
    Halves marked_ = {};
    congestion::Echo echo_;  // caqm, rate: since the last report
  };
  uint8_t unreported_ = 0;
  ReportForm form_ : 4 = ReportForm::none;
  bool congested_ : 1 = false;  // the last packet was marked
  bool ack_due_ : 1 = false;
  bool notification_due_ : 1 = false;
};
static_assert(sizeof(ReportsGiven) == 12);

// Reads the reports that the sender of a channel receives. A report may arrive late, twice, or with
// values that its sender has made up: it never says that more bytes were marked than arrived since
// the report before. `Tp` owns it, or `RouteReports` if there are several routes. Only the thread
// that runs the engine calls it.
class ReportsTaken {
 public:
  ReportsTaken() = default;
  explicit ReportsTaken(ReportForm form) : form_(form) {}

  ReportForm form() const { return form_; }
  // Returns whether acknowledgements of the peer may have a report.
  bool in_acknowledgements() const { return form_ != ReportForm::none && form_ != ReportForm::cnp; }
  // Returns the news of a report, `packet_bytes`: the size of a full packet. Returns nothing if no
  // packet has arrived since the latest report, as when that one is repeated, or if a later report
  // has arrived before. Several overtaken reports in a row show that the one which seemed later was
  // forged, or that the receiver counts anew: then the sums continue from these.
  std::optional<congestion::Feedback> take(HeaderView<LdcpCetph::size> report,
                                           uint32_t packet_bytes);
  // Returns whether a later report had arrived before the last one that `take` was called for.
  bool overtaken() const { return overtaken_in_row_ > 0; }

 private:
  static constexpr uint8_t most_overtaken = 16;

  ByteCount received_;  // of the latest report
  ByteCount marked_;    // likewise; form ldcp
  ReportForm form_ = ReportForm::none;
  uint8_t overtaken_in_row_ = 0;
};
static_assert(sizeof(ReportsTaken) == 12);

}  // namespace urma::transport
