// SPDX-License-Identifier: Apache-2.0
// Tests how the ends of a channel report congestion: the sums of each end, and two transports whose
// packets the test carries, marks, changes and repeats.

#include "transport/rtp/reports.h"

#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include "base/prng.h"
#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/fuzz/packet.h"
#include "tests/fuzz/tp_end.h"
#include "wire/cci.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using fuzz::End;
using transport::ReportsGiven;
using transport::ReportsTaken;

using ReportBytes = std::array<std::byte, LdcpCetph::size>;

ReportBytes report_of(ReportsGiven& given) {
  ReportBytes bytes{};
  given.write(bytes);
  return bytes;
}

ReportBytes ldcp_report(uint64_t arrived_bytes, uint64_t marked_bytes) {
  ReportBytes bytes{};
  LdcpCetph{.ack_seq = ByteCount(arrived_bytes / 2), .ce_seq = ByteCount(marked_bytes / 2)}.emit(
      bytes);
  return bytes;
}

TEST_CASE("reports of form ldcp tell the sender of all marked bytes, whichever are lost or late") {
  Prng prng(1);
  ReportsGiven given(ReportForm::ldcp);
  ReportsTaken taken(ReportForm::ldcp);
  uint64_t marked = 0;
  uint64_t told = 0;
  std::array<ReportBytes, 2> latest{};
  for (int i = 0; i < 200'000; ++i) {
    // Sums of 32 bits wrap about once.
    const auto bytes = static_cast<uint32_t>(20 + prng.below(90'000));
    const bool ce = prng.below(3) == 0;
    given.add(bytes, ce ? Ecn::ce : Ecn::ect0, Time(Duration(i)));
    if (ce) marked += bytes + bytes % 2;
    if (prng.below(4) != 0) continue;
    const ReportBytes report = report_of(given);
    if (prng.below(8) == 0) continue;  // lost
    const auto news = taken.take(report, 1024);
    REQUIRE(news);
    told += news->marked_bytes;
    CHECK(told == marked);
    CHECK_FALSE(taken.take(report, 1024).has_value());  // repeated
    CHECK_FALSE(taken.overtaken());
    if (!(latest[1] == report)) CHECK_FALSE(taken.take(latest[1], 1024).has_value());
    latest = {latest[1], report};
  }
}

TEST_CASE("the first mark and the first packet without one are reported immediately") {
  for (const ReportForm form : {ReportForm::ldcp, ReportForm::caqm, ReportForm::rate}) {
    ReportsGiven given(form);
    // Adds a packet. Returns whether a report has to leave now, and lets it leave.
    const auto reports = [&](Ecn ecn) {
      given.add(4096, ecn, Time{});
      const bool due = given.due();
      if (due) report_of(given);
      return due;
    };
    // The packets of the first 256 KiB are acknowledged one by one.
    for (int i = 0; i < 64; ++i) CHECK(reports(Ecn::ect0));
    CHECK_FALSE(reports(Ecn::ect0));
    CHECK(reports(Ecn::ce));
    CHECK_FALSE(reports(Ecn::ce));
    CHECK_FALSE(reports(Ecn::ce));
    CHECK(given.unreported() == 2);
    CHECK(reports(Ecn::not_ect));
    CHECK(given.unreported() == 0);
    for (int i = 0; i < 300; ++i) CHECK_FALSE(reports(Ecn::not_ect));
    CHECK(given.unreported() == 255);
  }
}

// A double with defect (f): it counts bytes instead of units, so a step of 2^31 looks like one
// back.
class BytesTaken {
 public:
  explicit BytesTaken(ReportForm) {}
  std::optional<congestion::Feedback> take(HeaderView<LdcpCetph::size> report, uint32_t) {
    const auto parsed = LdcpCetph::parse(report);
    const uint32_t arrived = bytes(parsed.ack_seq) - received_;
    if (static_cast<int32_t>(arrived) < 0) return std::nullopt;
    const uint32_t marked = bytes(parsed.ce_seq) - marked_;
    received_ += arrived;
    marked_ += marked;
    return congestion::Feedback{.marked_bytes = marked};
  }

 private:
  static uint32_t bytes(ByteCount count) { return 2 * static_cast<uint32_t>(uint64_t{count}); }

  uint32_t received_ = 0;
  uint32_t marked_ = 0;
};

// The sums wrap at 8 GiB. Losses of reports may leave gaps of up to 4 GiB between them.
template <class Taken>
bool counts_across_wraps(uint64_t step) {
  Taken taken(ReportForm::ldcp);
  for (uint64_t arrived = step; arrived < uint64_t{40} << 30; arrived += step) {
    const auto news = taken.take(ldcp_report(arrived, arrived / 2), 1024);
    if (!news || news->marked_bytes != step / 2) return false;
  }
  return true;
}

TEST_CASE("defect (f): reports count bytes across the wrap, and over more than 2^31 bytes") {
  for (const uint64_t step : {uint64_t{1} << 30, uint64_t{3} << 30}) {
    CHECK(counts_across_wraps<ReportsTaken>(step));
  }
  CHECK(counts_across_wraps<BytesTaken>(uint64_t{1} << 30));
  CHECK_FALSE(counts_across_wraps<BytesTaken>(uint64_t{3} << 30));
}

TEST_CASE("reports that seem to be overtaken one after another are believed in the end") {
  ReportsTaken taken(ReportForm::ldcp);
  REQUIRE(taken.take(ldcp_report(1 << 30, 1 << 20), 1024));
  uint64_t arrived = 4000;
  for (int i = 0; i < 16; ++i) CHECK_FALSE(taken.take(ldcp_report(arrived += 2000, 1000), 1024));
  const auto news = taken.take(ldcp_report(arrived + 2000, 2600), 1024);
  REQUIRE(news);
  CHECK(news->marked_bytes == 1600);
  // One late report in between begins the count anew.
  REQUIRE(taken.take(ldcp_report(1 << 28, 2600), 1024));
  for (int i = 0; i < 40; ++i) {
    CHECK_FALSE(taken.take(ldcp_report(2000, 0), 1024));
    CHECK(taken.overtaken());
    if (i % 10 != 9) continue;
    CHECK_FALSE(taken.take(ldcp_report(1 << 28, 2600), 1024));
    CHECK_FALSE(taken.overtaken());
  }
}

TEST_CASE("a report that its sender has made up marks no more bytes than it says have arrived") {
  Prng prng(2);
  for (const ReportForm form : {ReportForm::ldcp, ReportForm::caqm, ReportForm::rate}) {
    ReportsTaken taken(form);
    uint64_t at = 0;
    for (int i = 0; i < 10'000; ++i) {
      const uint64_t step = prng.below(1 << 20) * 2;
      at += step;
      ReportBytes bytes = ldcp_report(at, 0);
      for (size_t b = 4; b < bytes.size(); ++b) {
        const uint64_t kind = prng.below(3);
        const uint64_t any = kind == 0 ? 0 : kind == 1 ? 0xff : prng.below(256);
        bytes[b] = static_cast<std::byte>(any);
      }
      const auto news = taken.take(bytes, 1120);
      REQUIRE(news.has_value() == (step > 0));
      if (!news) continue;
      CHECK(news->marked_bytes <= step);
      if (news->switched) continue;
      CHECK(news->marked_packets == 0);
      CHECK(news->hint == 0);
      CHECK_FALSE(news->increase);
    }
  }
}

constexpr congestion::Signal grants{.increase = true, .switched = true, .hint = 4};
constexpr congestion::Signal marks{
    .congested = true, .last_hop = true, .switched = true, .hint = 70, .switch_queue = 9};

// Returns what the sender learns if packets of 1024 bytes arrive with these signals.
congestion::Feedback reported(ReportForm form, std::initializer_list<congestion::Signal> signals,
                              Ecn ecn = Ecn::ect0) {
  ReportsGiven given(form);
  ReportsTaken taken(form);
  for (const auto& signal : signals) given.add(1024, ecn, Time{}, signal);
  return taken.take(report_of(given), 1024).value();
}

TEST_CASE("the answers of switches reach the sender, as sums since the last report") {
  const auto granted = reported(ReportForm::caqm, {grants, grants});
  CHECK(granted.switched);
  CHECK(granted.increase);
  CHECK(granted.hint == 8);
  const auto marked = reported(ReportForm::caqm, {grants, marks, marks});
  CHECK(marked.marked_packets == 2);
  CHECK(marked.last_hop);
  CHECK(marked.switch_queue == 9);
  CHECK(marked.hint == 4);
  CHECK(marked.marked_bytes == 0);
  const auto named = reported(ReportForm::rate, {grants, marks});
  CHECK(named.switched);
  CHECK(named.marked_packets == 1);
  CHECK(named.hint == 70);
  CHECK(named.switch_queue == 9);
  CHECK(reported(ReportForm::rate, {grants, grants}).hint == 2 * 1024 / 32);
}

// Neither marks nor grants count again, nor that switches took part, nor that they refused.
TEST_CASE("a report that arrives twice has an effect once") {
  for (const ReportForm form : {ReportForm::caqm, ReportForm::rate}) {
    for (const auto& signal : {grants, marks}) {
      ReportsGiven given(form);
      ReportsTaken taken(form);
      for (int i = 0; i < 3; ++i) given.add(1024, Ecn::ect0, Time{}, signal);
      const ReportBytes report = report_of(given);
      const auto first = taken.take(report, 1024).value();
      CHECK(first.marked_packets == (signal.congested ? 3 : 0));
      CHECK((first.hint > 0 || form == ReportForm::caqm));
      CHECK_FALSE(taken.take(report, 1024).has_value());
      CHECK_FALSE(taken.overtaken());
    }
  }
}

TEST_CASE("a report without new packets does not change the sum of marked bytes") {
  ReportsTaken taken(ReportForm::ldcp);
  CHECK(taken.take(ldcp_report(4000, 2000), 1024)->marked_bytes == 2000);
  CHECK_FALSE(taken.take(ldcp_report(4000, 0), 1024).has_value());
  CHECK(taken.take(ldcp_report(8000, 3000), 1024)->marked_bytes == 1000);
}

TEST_CASE("marks of ECN reach the sender beside the rate that a switch names") {
  const auto both = [](std::initializer_list<std::pair<congestion::Signal, Ecn>> packets) {
    ReportsGiven given(ReportForm::rate);
    ReportsTaken taken(ReportForm::rate);
    for (const auto& [signal, ecn] : packets) given.add(1024, ecn, Time{}, signal);
    return taken.take(report_of(given), 1024).value();
  };
  const auto apart = both({{marks, Ecn::ect0}, {grants, Ecn::ce}, {grants, Ecn::ce}});
  CHECK(apart.marked_packets == 3);
  CHECK(apart.marked_bytes == 2 * 1024);
  CHECK(apart.hint == 70);
  const auto together = both({{marks, Ecn::ce}});
  CHECK(together.marked_packets == 1);
  CHECK(together.marked_bytes == 1024);
  CHECK(together.hint == 70);

  // The sender reduces for the marks, although it already sends at the rate that the switch names.
  const auto rate_after = [](const congestion::Feedback& feedback) {
    const congestion::ControllerKind& kind = *congestion::find_controller("caqm_r");
    alignas(std::max_align_t) std::array<std::byte, congestion::Controller::storage> storage{};
    congestion::Controller* controller = kind.make(
        storage.data(), {.packet_bytes = 1024, .bytes_per_second = 1e9, .base_rtt = 100us});
    controller->handle(congestion::Acknowledged{.now = Time(1ms),
                                                .rtt = 100us,
                                                .bytes = 1024,
                                                .inflight_bytes = 1024,
                                                .sample = 100us,
                                                .least_rtt = 100us,
                                                .feedback = &feedback});
    const double rate = controller->bytes_per_second();
    std::destroy_at(controller);
    return rate;
  };
  auto without = apart;
  without.marked_bytes = 0;
  CHECK(rate_after(apart) < rate_after(without));
}

TEST_CASE("without a switch nothing was granted, and only marks of ECN count") {
  congestion::Signal unanswered{.increase = true, .hint = 4};
  for (const ReportForm form : {ReportForm::caqm, ReportForm::rate}) {
    const auto news = reported(form, {unanswered, unanswered});
    CHECK_FALSE(news.switched);
    CHECK_FALSE(news.increase);
    CHECK(news.hint == 0);
  }
  // A hop without a port meter marks.
  for (const ReportForm form : {ReportForm::caqm, ReportForm::rate}) {
    const auto news = reported(form, {unanswered, {}}, Ecn::ce);
    CHECK_FALSE(news.switched);
    CHECK_FALSE(news.increase);
    CHECK(news.marked_packets == 0);
    CHECK(news.marked_bytes == 2 * 1024);
  }
  // It does so behind a switch that has granted. Form caqm does not tell its marks from C.
  CHECK(reported(ReportForm::caqm, {grants, grants}, Ecn::ce).marked_packets == 2);
  const auto marked = reported(ReportForm::rate, {grants, grants}, Ecn::ce);
  CHECK(marked.switched);
  CHECK(marked.marked_packets == 0);
  CHECK(marked.marked_bytes == 2 * 1024);
}

TEST_CASE(
    "form caqm: the C of ends and switches that do not know S reduces, their I grants nothing") {
  // UBQ is reserved in UB, so another vendor's receiver sends 0.
  std::array<std::byte, CaqmCetph::size> report{};
  CaqmCetph{.ack_seq = ByteCount(100'000), .increase = true, .marked = 3, .hint = 200}.emit(report);
  const auto foreign = ReportsTaken(ReportForm::caqm).take(report, 1024).value();
  CHECK_FALSE(foreign.switched);
  CHECK_FALSE(foreign.increase);
  CHECK(foreign.hint == 0);
  CHECK(foreign.marked_packets == 0);
  CHECK(foreign.marked_bytes == 3 * 1024);
  // A switch of another vendor in front of this receiver.
  constexpr congestion::Signal refuses{.congested = true, .last_hop = true};
  const auto refused = reported(ReportForm::caqm, {refuses, refuses});
  CHECK_FALSE(refused.switched);
  CHECK(refused.marked_bytes == 2 * 1024);

  const congestion::ControllerKind& kind = *congestion::find_controller("caqm_w");
  alignas(std::max_align_t) std::array<std::byte, congestion::Controller::storage> storage{};
  congestion::Controller* controller =
      kind.make(storage.data(), {.packet_bytes = 1024, .bytes_per_second = 1e9, .base_rtt = 100us});
  const auto acknowledge = [&](Time now, const congestion::Feedback& feedback) {
    controller->handle(congestion::Acknowledged{.now = now,
                                                .rtt = 100us,
                                                .bytes = 16 * 1024,
                                                .inflight_bytes = controller->window_bytes(),
                                                .sample = 100us,
                                                .least_rtt = 100us,
                                                .feedback = &feedback});
  };
  for (int i = 0; i < 8; ++i) acknowledge(Time(i * 100us), {});
  const uint64_t grown = controller->window_bytes();
  CHECK(grown > 16 * 1024);
  acknowledge(Time(1ms), foreign);
  CHECK(controller->window_bytes() < grown);
  std::destroy_at(controller);
}

TEST_CASE("CNPs of a channel are at least 50 us apart") {
  ReportsGiven given(ReportForm::cnp);
  int sent = 0;
  for (int us = 0; us < 1000; ++us) {
    given.add(1000, Ecn::ce, Time(std::chrono::microseconds(us)));
    if (!given.notification_due()) continue;
    std::array<std::byte, Rtph::size + CnpCetph::size> bytes{};
    REQUIRE(given.write_notification({}, bytes) == bytes.size());
    const auto header = Rtph::parse(std::span(bytes).first<Rtph::size>());
    REQUIRE(header);
    CHECK(header->opcode == static_cast<uint8_t>(TpOpcode::congestion));
    const auto cnp = CnpCetph::parse(std::span(bytes).subspan<Rtph::size, CnpCetph::size>());
    CHECK(cnp.congestion == CnpCetph::Congestion::severe);
    ++sent;
  }
  CHECK(sent >= 18);
  CHECK(sent <= 20);
  CHECK(given.bytes_in_acks() == 0);
}

// ---- two transports

// The calls that the controllers of a test have received, and their answers.
struct Told {
  int made = 0;
  int acknowledged = 0;
  int with_feedback = 0;
  uint64_t marked_bytes = 0;
  uint64_t marked_packets = 0;
  uint64_t hints = 0;
  uint8_t ack_queue = 0;
  int notified = 0;
  int requests = 0;
  uint64_t window_bytes = 1 << 20;
  Time not_before = Time::min();
};
Told told;

class Recorder final : public congestion::Controller {
 public:
  congestion::Signal request(const congestion::Sent& event) override {
    ++told.requests;
    return {.increase = !event.again, .hint = 5};
  }
  void handle(const congestion::Acknowledged& event) override {
    ++told.acknowledged;
    if (event.feedback == nullptr) return;
    ++told.with_feedback;
    told.hints += event.feedback->hint;
    told.ack_queue = event.feedback->ack_queue;
    told.marked_packets += event.feedback->marked_packets;
    told.marked_bytes += event.feedback->marked_bytes;
  }
  void handle(const congestion::Lost&) override {}
  void handle(const congestion::Notified&) override { ++told.notified; }
  void handle(const congestion::Spurious&) override {}
  congestion::Allowance allowance(Time) const override {
    return {told.window_bytes, told.not_before};
  }
  uint64_t window_bytes() const override { return told.window_bytes; }
};

congestion::Controller* make_recorder(void* storage, const congestion::Settings&) {
  ++told.made;
  return new (storage) Recorder;
}

constexpr congestion::ControllerKind reads_marks{"reads_marks", "", make_recorder,
                                                 congestion::Needs::marks};
constexpr congestion::ControllerKind reads_notes{"reads_notes", "", make_recorder,
                                                 congestion::Needs::notifications, true};
constexpr congestion::ControllerKind reads_increases{"reads_increases", "", make_recorder,
                                                     congestion::Needs::increases, true};
const congestion::ControllerKind& reads_loss = congestion::controllers().front();

constexpr ReportForms all_forms = ReportForms{}
                                      .with(ReportForm::ldcp)
                                      .with(ReportForm::cnp)
                                      .with(ReportForm::caqm)
                                      .with(ReportForm::rate);

transport::Settings reporting_end(uint8_t side, const congestion::ControllerKind& kind,
                                  ReportForms reports = all_forms) {
  const Eid eid = ipv4(127, 0, 0, static_cast<uint8_t>(1 + side));
  return {.self = {eid, ub_port},
          .eid = eid,
          .life = Incarnation(10u + side),
          .mtu = 1024,
          .buffer_bytes = 4'000'000,
          .controller = &kind,
          .reports = reports,
          .peers = 3,
          .packets = 2048,
          .slices = 2048};
}

struct Carried {
  fuzz::Packet packet;
  Ecn ecn;
  uint16_t cci;
  uint8_t switch_queue = 0;
  unsigned opcode() const { return static_cast<unsigned>(packet.bytes[0]) & 0x7f; }
};

// Two transports with a channel that the left one has opened.
struct ReportingPair {
  End left;
  End right;
  drivers::FramePool pool{64};
  std::array<TxFrame*, 64> frames{};
  Time now{1s};

  ReportingPair(const transport::Settings& first, const transport::Settings& second)
      : left(first, 1, true), right(second, 2, true) {
    told = {};
    left.other = &right;
    right.other = &left;
    pool.lend(frames);
    left.connect(right.self, now);
    for (int rounds = 0; rounds < 10 && left.channel == nullptr; ++rounds) exchange();
    REQUIRE(left.channel != nullptr);
    REQUIRE(right.channel != nullptr);
  }

  std::vector<Carried> sent_by(End& end) {
    std::vector<Carried> out;
    const size_t filled = end.transport.fill(end, frames, now);
    for (TxFrame* frame : std::span(frames).first(filled)) {
      out.push_back({fuzz::gathered(*frame, end.self), frame->ecn, frame->cci, 0});
    }
    return out;
  }
  void arrive(End& at, const Carried& carried) {
    RxFrame frame = fuzz::received(carried.packet);
    frame.ecn = carried.ecn;
    frame.cci = carried.cci;
    frame.switch_queue = carried.switch_queue;
    at.transport.receive({&frame, 1}, now);
  }
  void exchange() {
    for (const Carried& one : sent_by(left)) arrive(right, one);
    for (const Carried& one : sent_by(right)) arrive(left, one);
  }
  // The left end sends `packets` packets, of which the last `marked` arrive with a mark. Returns
  // what the right end sends.
  std::vector<Carried> send(uint32_t packets, uint32_t marked) {
    left.offer(transport::Class::request, packets * 1024);
    auto burst = sent_by(left);
    REQUIRE(burst.size() == packets);
    for (size_t i = 0; i < burst.size(); ++i) {
      CHECK(burst[i].ecn == (told.made > 0 ? Ecn::ect0 : Ecn::not_ect));
      if (i + marked >= burst.size()) burst[i].ecn = urma::marked(burst[i].ecn);
      arrive(right, burst[i]);
    }
    now += 1ms;
    return sent_by(right);
  }
};

TEST_CASE("a channel reports in the directions whose sender asks for it") {
  // The default controller answers an OPEN that asks.
  ReportingPair pair(reporting_end(0, reads_marks), reporting_end(1, reads_loss));
  CHECK(told.made == 1);
  const auto acks = pair.send(4, 1);
  REQUIRE(acks.size() == 1);
  CHECK(acks[0].opcode() == 3);
  CHECK(acks[0].ecn == Ecn::not_ect);
  pair.arrive(pair.left, acks[0]);
  CHECK(told.with_feedback == 1);
  CHECK(told.marked_bytes > 0);
  CHECK(pair.left.finished());
  // The other direction has no reports.
  pair.right.offer(transport::Class::request, 100);
  for (const Carried& one : pair.sent_by(pair.right)) {
    CHECK(one.ecn == Ecn::not_ect);
    pair.arrive(pair.left, one);
  }
  pair.now += 1ms;
  const auto back = pair.sent_by(pair.left);
  REQUIRE(back.size() == 1);
  CHECK(back[0].opcode() == 2);
}

TEST_CASE("without an agreement the default controller sends what ends without reports send") {
  const ReportForms none;
  const auto only_ldcp = ReportForms{}.with(ReportForm::ldcp);
  struct Case {
    const congestion::ControllerKind& left;
    ReportForms left_reports;
    ReportForms right_reports;
    uint64_t without;  // channels that lack reports
  };
  for (const Case& one : {Case{reads_marks, all_forms, none, 1}, Case{reads_marks, none, none, 1},
                          Case{reads_notes, ReportForms{}.with(ReportForm::cnp), only_ldcp, 1},
                          Case{reads_loss, all_forms, all_forms, 0}}) {
    ReportingPair pair(reporting_end(0, one.left, one.left_reports),
                       reporting_end(1, reads_loss, one.right_reports));
    CHECK(told.made == 0);
    CHECK(pair.left.transport.counters().channels_without_reports == one.without);
    const auto acks = pair.send(4, 1);
    REQUIRE(acks.size() == 1);
    CHECK(acks[0].opcode() == 2);
  }
  // An end that asks uses no form on a channel that an end with the default controller opens.
  ReportingPair pair(reporting_end(0, reads_loss), reporting_end(1, reads_marks));
  CHECK(told.made == 0);
  CHECK(pair.right.transport.counters().channels_without_reports == 1);
}

TEST_CASE("a sender that asks switches and has no way to them keeps its guard") {
  for (const char* control : {"caqm_w", "caqm_r"}) {
    INFO(control);
    ReportingPair pair(reporting_end(0, *congestion::find_controller(control), ReportForms{}),
                       reporting_end(1, reads_loss));
    CHECK(pair.left.transport.counters().channels_without_reports == 0);
    pair.left.offer(transport::Class::request, 4 * 1024);
    // It begins with one packet, which asks for nothing, and is dropped instead of marked.
    const auto burst = pair.sent_by(pair.left);
    REQUIRE(burst.size() == 1);
    CHECK(burst[0].ecn == Ecn::not_ect);
    CHECK(burst[0].cci == 0);
    pair.arrive(pair.right, burst[0]);
    const auto acks = pair.sent_by(pair.right);
    REQUIRE(acks.size() == 1);
    CHECK(acks[0].opcode() == 2);
  }
}

TEST_CASE("a sender whose form the peer lacks uses the reports that both have, and it is counted") {
  const auto only_ldcp = ReportForms{}.with(ReportForm::ldcp);
  for (const char* control : {"dcqcn", "caqm_w", "caqm_r"}) {
    INFO(control);
    ReportingPair pair(reporting_end(0, *congestion::find_controller(control)),
                       reporting_end(1, reads_loss, only_ldcp));
    CHECK(pair.left.transport.counters().channels_without_reports == 1);
    pair.left.offer(transport::Class::request, 4 * 1024);
    // ldcp does not pace, and asks no switch: the four packets leave together.
    auto burst = pair.sent_by(pair.left);
    REQUIRE(burst.size() == 4);
    for (const Carried& one : burst) {
      CHECK(one.ecn == Ecn::ect0);
      CHECK(one.cci == 0);
      pair.arrive(pair.right, one);
    }
    const auto acks = pair.sent_by(pair.right);
    REQUIRE(acks.size() == 1);
    CHECK(acks[0].opcode() == 3);
    pair.arrive(pair.left, acks[0]);
    CHECK(pair.left.finished());
  }
}

// Gives the packet another opcode, with a report behind its RTPH.
Carried with_report(Carried ack, TpOpcode opcode, std::span<const std::byte> report) {
  auto& bytes = ack.packet.bytes;
  bytes[0] = static_cast<std::byte>(opcode);
  bytes.insert(bytes.begin() + Rtph::size, report.begin(), report.end());
  fuzz::seal_again(ack.packet);
  return ack;
}

TEST_CASE("reports and CNPs that were not agreed on count as malformed and have no effect") {
  ReportingPair pair(reporting_end(0, reads_loss), reporting_end(1, reads_loss));
  const Carried ack = pair.send(4, 0).at(0);
  const auto& counters = pair.left.transport.counters();
  pair.arrive(pair.left, with_report(ack, TpOpcode::ack_cc, ldcp_report(4000, 4000)));
  pair.arrive(pair.left, with_report(ack, TpOpcode::selective_ack_cc, ldcp_report(4000, 4000)));
  pair.arrive(pair.left, with_report(ack, TpOpcode::congestion, std::array<std::byte, 16>{}));
  CHECK(counters.malformed == 3);
  CHECK_FALSE(pair.left.finished());
  pair.arrive(pair.left, ack);
  CHECK(pair.left.finished());
  CHECK(counters.acks_received == 1);
}

TEST_CASE("short, overtaken, impossible and misdirected reports are counted and have no effect") {
  ReportingPair pair(reporting_end(0, reads_marks), reporting_end(1, reads_loss));
  const auto& counters = pair.left.transport.counters();
  Carried first = pair.send(4, 0).at(0);
  Carried second = pair.send(4, 4).at(0);
  Carried short_one = first;
  short_one.packet.bytes.erase(short_one.packet.bytes.begin() + Rtph::size,
                               short_one.packet.bytes.begin() + Rtph::size + 4);
  fuzz::seal_again(short_one.packet);
  pair.arrive(pair.left, short_one);
  CHECK(counters.malformed == 1);
  Carried elsewhere = second;
  elsewhere.packet.from.address = ipv4(127, 0, 0, 9);
  fuzz::seal_again(elsewhere.packet);
  pair.arrive(pair.left, elsewhere);
  CHECK(counters.wrong_source == 1);
  Carried cnp = with_report(first, TpOpcode::congestion, std::array<std::byte, 8>{});
  pair.arrive(pair.left, cnp);
  CHECK(counters.malformed == 2);
  CHECK(told.acknowledged == 0);
  pair.arrive(pair.left, second);
  const uint64_t marked = told.marked_bytes;
  CHECK(marked > 0);
  CHECK(counters.overtaken_reports == 0);
  pair.arrive(pair.left, first);
  CHECK(counters.overtaken_reports == 1);
  CHECK(told.marked_bytes == marked);
  CHECK(told.notified == 0);
}

TEST_CASE("an acknowledgement without news but with a newer report reaches the controller") {
  ReportingPair pair(reporting_end(0, reads_marks), reporting_end(1, reads_loss));
  const Carried ack = pair.send(4, 0).at(0);
  pair.arrive(pair.left, ack);
  CHECK(told.acknowledged == 1);
  Carried again = ack;
  const ReportBytes newer = ldcp_report(1'000'000, 1000);
  std::copy(newer.begin(), newer.end(), again.packet.bytes.begin() + Rtph::size);
  fuzz::seal_again(again.packet);
  pair.arrive(pair.left, again);
  CHECK(told.acknowledged == 2);
  CHECK(told.marked_bytes == 1000);
}

TEST_CASE("a CNP leaves before the acknowledgement, and reaches the controller") {
  ReportingPair pair(reporting_end(0, reads_notes), reporting_end(1, reads_loss));
  const auto answers = pair.send(4, 2);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].opcode() == 8);
  pair.arrive(pair.left, answers[0]);
  CHECK(told.notified == 1);
  CHECK(pair.left.transport.counters().notifications == 1);
  const auto acks = pair.sent_by(pair.right);
  REQUIRE(acks.size() == 1);
  CHECK(acks[0].opcode() == 2);
}

TEST_CASE("a packet asks the switches in its CCI, and their answers return in the report") {
  ReportingPair pair(reporting_end(0, reads_increases), reporting_end(1, reads_loss));
  pair.left.offer(transport::Class::request, 3 * 1024);
  auto burst = pair.sent_by(pair.left);
  REQUIRE(burst.size() == 3);
  for (const Carried& one : burst) {
    CHECK(one.cci == cci_of(CaqmCci{.enabled = true, .increase = true, .hint = 5}));
  }
  burst[0].cci = cci_with(congestion::Signal{.increase = true, .switched = true, .hint = 5});
  burst[1].cci = cci_with(congestion::Signal{.congested = true, .switched = true});
  burst[2].cci = cci_of(CaqmCci{.switched = true, .congested = true});  // not enabled
  for (const Carried& one : burst) pair.arrive(pair.right, one);
  pair.now += 1ms;
  const auto acks = pair.sent_by(pair.right);
  REQUIRE(acks.size() == 1);
  CHECK(acks[0].cci == cci_of(CaqmCci{.enabled = true}));
  pair.arrive(pair.left, acks[0]);
  CHECK(told.hints == 5);
  CHECK(told.marked_packets == 1);
}

TEST_CASE("an acknowledgement that arrives twice brings its answers once") {
  ReportingPair pair(reporting_end(0, reads_increases), reporting_end(1, reads_loss));
  pair.left.offer(transport::Class::request, 2 * 1024);
  auto burst = pair.sent_by(pair.left);
  REQUIRE(burst.size() == 2);
  burst[0].cci = cci_with(congestion::Signal{.increase = true, .switched = true, .hint = 5});
  burst[1].cci = cci_with(congestion::Signal{.congested = true, .switched = true});
  for (const Carried& one : burst) pair.arrive(pair.right, one);
  pair.now += 1ms;
  const Carried ack = pair.sent_by(pair.right).at(0);
  for (int i = 0; i < 5; ++i) pair.arrive(pair.left, ack);
  CHECK(told.acknowledged == 1);
  CHECK(told.hints == 5);
  CHECK(told.marked_packets == 1);
  CHECK(pair.left.transport.counters().overtaken_reports == 0);
}

TEST_CASE("the queue that an acknowledgement met reaches the controller") {
  for (const bool asked : {true, false}) {
    ReportingPair pair(reporting_end(0, reads_increases), reporting_end(1, reads_loss));
    Carried ack = pair.send(3, 0).at(0);
    ack.switch_queue = 9;
    if (!asked) ack.cci = 0;  // as that of an older version
    pair.arrive(pair.left, ack);
    CHECK(told.with_feedback == 1);
    CHECK(told.ack_queue == (asked ? 9 : 0));
  }
}

TEST_CASE("an acknowledgement asks switches for nothing unless its receiver reads their answers") {
  for (const auto* kind : {&reads_marks, &reads_notes, &reads_loss}) {
    ReportingPair pair(reporting_end(0, *kind), reporting_end(1, reads_loss));
    CHECK(pair.send(3, 0).at(0).cci == 0);
  }
}

// No control of these, on data or on what answers it, reads a CCI.
TEST_CASE("a CCI that was not agreed on is counted, and has no effect") {
  constexpr uint16_t answer = 0x0780;
  for (const auto* kind : {&reads_loss, &reads_marks, &reads_notes}) {
    INFO(kind->name);
    ReportingPair pair(reporting_end(0, *kind), reporting_end(1, reads_loss));
    pair.left.offer(transport::Class::request, 1024);
    auto burst = pair.sent_by(pair.left);
    CHECK(burst.at(0).cci == 0);
    burst[0].cci = answer;
    burst[0].ecn = urma::marked(burst[0].ecn);
    pair.arrive(pair.right, burst[0]);
    CHECK(pair.right.transport.counters().malformed == 1);
    pair.arrive(pair.right, burst[0]);  // counted as a duplicate
    CHECK(pair.right.transport.counters().malformed == 1);
    pair.now += 1ms;
    auto answers = pair.sent_by(pair.right);
    const bool notifies = kind == &reads_notes;
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].opcode() == (notifies ? 8 : kind == &reads_loss ? 2 : 3));
    if (notifies) answers.push_back(pair.sent_by(pair.right).at(0));
    for (Carried& one : answers) {
      one.cci = answer;
      one.switch_queue = 63;
      pair.arrive(pair.left, one);
    }
    CHECK(pair.left.transport.counters().malformed == answers.size());
    CHECK(pair.left.finished());
    CHECK(told.ack_queue == 0);
  }
}

TEST_CASE("a CCI of another mode, or which no switch may edit, is counted, and has no effect") {
  ReportingPair pair(reporting_end(0, reads_increases), reporting_end(1, reads_loss));
  pair.left.offer(transport::Class::request, 3 * 1024);
  auto burst = pair.sent_by(pair.left);
  REQUIRE(burst.size() == 3);
  burst[0].cci = cci_of(FecnCci{.fecn = Fecn::severe});
  burst[1].cci = cci_of(CaqmCci{.switched = true, .congested = true});
  burst[2].cci = 0;  // as behind a link that carries none
  for (const Carried& one : burst) pair.arrive(pair.right, one);
  CHECK(pair.right.transport.counters().malformed == 2);
  pair.now += 1ms;
  Carried ack = pair.sent_by(pair.right).at(0);
  ack.cci = cci_of(FecnRttCci{.timestamp = 1023, .fecn = Fecn::severe});
  ack.switch_queue = 9;
  pair.arrive(pair.left, ack);
  CHECK(pair.left.transport.counters().malformed == 1);
  CHECK(pair.left.finished());
  CHECK(told.marked_packets == 0);
  CHECK(told.ack_queue == 0);
}

// Runs the timers of the left end until its next packets leave. Returns how many leave, and fails
// if that takes more than `most` timers.
size_t wait_for_packets(ReportingPair& pair, int most) {
  for (int i = 0; i < most; ++i) {
    pair.now = std::max(pair.now, pair.left.transport.next_deadline());
    pair.left.transport.handle_timers(pair.now);
    if (const size_t sent = pair.sent_by(pair.left).size()) return sent;
    CHECK_FALSE(pair.left.transport.wants_to_send());
  }
  FAIL("no packet leaves");
  return 0;
}

TEST_CASE("a channel that is paced sends nothing before its time, and does not ask to be filled") {
  ReportingPair pair(reporting_end(0, reads_notes), reporting_end(1, reads_loss));
  told.not_before = pair.now + 300us;
  pair.left.offer(transport::Class::request, 4 * 1024);
  CHECK(pair.sent_by(pair.left).empty());
  CHECK_FALSE(pair.left.transport.wants_to_send());
  CHECK(wait_for_packets(pair, 5) == 4);
  CHECK(pair.now >= told.not_before);
  CHECK(pair.now <= told.not_before + 3us);
  CHECK(told.requests == 4);
  // Probes and questions wait, too.
  told.not_before = pair.now + 500ms;
  CHECK(wait_for_packets(pair, 60) > 0);
  CHECK(pair.now >= told.not_before);
  CHECK(pair.now <= told.not_before + 3us);
}

TEST_CASE("a packet that waits for its departure causes no time-out until it has left") {
  ReportingPair pair(reporting_end(0, reads_notes), reporting_end(1, reads_loss));
  pair.left.offer(transport::Class::request, 1024);
  CHECK(pair.sent_by(pair.left).size() == 1);  // and is lost
  told.not_before = pair.now + 500ms;
  const auto& timeouts = pair.left.transport.counters().timeouts;
  const auto before = timeouts;
  CHECK(wait_for_packets(pair, 60) > 0);
  CHECK(pair.now >= told.not_before);
  CHECK(timeouts <= before + 1);
  // The time-out runs from the departure on.
  const Time left = pair.now;
  const auto meanwhile = timeouts;
  while (timeouts == meanwhile) {
    pair.now = std::max(pair.now, pair.left.transport.next_deadline());
    pair.left.transport.handle_timers(pair.now);
    (void)pair.sent_by(pair.left);
    REQUIRE(pair.now < left + 400ms);
  }
  CHECK(pair.now >= left + 1ms);
}

TEST_CASE("a keep-alive that waits for its departure costs no timer") {
  ReportingPair pair(reporting_end(0, reads_notes), reporting_end(1, reads_loss));
  told.not_before = pair.now + 900ms;
  pair.left.expect_answers(true, pair.now);
  int timers = 0;
  for (; pair.now < told.not_before && timers < 100; ++timers) {
    pair.now = std::max(pair.now, pair.left.transport.next_deadline());
    pair.left.transport.handle_timers(pair.now);
    CHECK((pair.sent_by(pair.left).empty() || pair.now >= told.not_before));
  }
  CHECK(timers < 20);
  pair.left.expect_answers(false, pair.now);
}

}  // namespace
}  // namespace urma::test
