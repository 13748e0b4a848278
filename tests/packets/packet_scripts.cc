// SPDX-License-Identifier: Apache-2.0
// Runs packet scripts: which packets arrive and leave at one end of a channel, and when. README.md
// describes the language. The program uses one real Tp and virtual time. It reads and writes
// headers bit by bit, so that it finds a codec whose reader and writer have the same error.

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/timer_wheel.h"
#include "drivers/frame_pool.h"
#include "tests/packets/congestion_words.h"
#include "transport/rtp/tp.h"

namespace urma::test {
namespace {

// ---- words

Duration duration_of(const std::string& text) {
  const size_t unit = text.find_first_not_of("0123456789");
  if (unit == 0 || unit == std::string::npos)
    fail("\"" + text + "\" is not a time, such as 5us or 3ms");
  const auto count = static_cast<int64_t>(number_of(text.substr(0, unit)));
  for (const auto& [name, factor] :
       {std::pair("ns", 1L), {"us", 1'000L}, {"ms", 1'000'000L}, {"s", 1'000'000'000L}}) {
    if (text.substr(unit) == name) return Duration(count * factor);
  }
  fail("\"" + text + "\" has no unit of time");
}

std::string text_of(Time time) {
  const int64_t ns = time.time_since_epoch().count();
  if (ns % 1000 != 0) return std::to_string(ns) + "ns";
  return std::to_string(ns / 1000) + "us";
}

// Reads "3" or "3-7".
std::pair<uint64_t, uint64_t> range_of(const std::string& text) {
  const size_t dash = text.find('-');
  const uint64_t first = number_of(text.substr(0, dash));
  return {first, dash == std::string::npos ? first : number_of(text.substr(dash + 1))};
}

std::string text_of(uint64_t first, uint64_t last) {
  return std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
}

// ---- a script

struct Line {
  Time at{};
  std::vector<std::string> words;  // the event and its arguments
  int number = 0;
};

struct Script {
  Retransmission mode;   // of this end of the channel
  Retransmission peers;  // of the other end
  uint32_t first_psn = 0x123456;
  uint32_t send_window = 2048;
  Duration rtt = std::chrono::milliseconds(1);
  uint64_t bytes = 0;              // of each data packet that leaves, from RTPH to ICRC
  uint64_t limit_bytes = 1 << 30;  // that may be in flight
  const congestion::ControllerKind* controller = congestion::find_controller("fixed");
  ReportForm reports = ReportForm::none;  // in both directions
  uint64_t line_bytes_per_second = 0;     // of the link
  std::vector<std::string> counted;       // the counters whose growth is an event
  bool memory = true;                     // to keep packets that arrive out of order
  Time end{};
  std::vector<Line> inputs;
  std::vector<std::string> expected;  // "at 5us out data 0-3"
};

void set_option(Retransmission& mode, const std::string& word) {
  const size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  const auto number = [&] { return static_cast<uint32_t>(number_of(value)); };
  if (key == "drops") {
    mode.keeps_out_of_order = false;
  } else if (key == "keeps") {
    mode.keeps_out_of_order = true;
  } else if (key == "fixed") {
    mode.rto = Retransmission::Rto::fixed;
    mode.rto_base = duration_of(value);
  } else if (key == "doubled") {
    mode.rto = Retransmission::Rto::doubled;
    mode.rto_base = duration_of(value);
  } else if (key == "exponent") {
    mode.rto_exponent = static_cast<uint8_t>(number());
  } else if (key == "tries") {
    mode.rto_tries = static_cast<uint8_t>(number());
  } else if (key == "window") {
    mode.window_packets = number();
  } else if (key == "bitmap") {
    mode.bitmap_bits = number();
  } else if (key == "acks") {
    mode.ack_packets = number();
  } else if (key == "ack_delay") {
    mode.ack_delay = duration_of(value);
  } else {
    fail("\"" + word + "\" is not an option of a mode");
  }
}

Retransmission mode_of(const std::vector<std::string>& words) {
  const NamedRetransmission* named = find_retransmission(words.at(1));
  if (named == nullptr) fail("there is no mode \"" + words[1] + "\"");
  Retransmission mode = named->mode;
  for (size_t i = 2; i < words.size(); ++i) set_option(mode, words[i]);
  return mode;
}

ReportForm form_of(const std::string& name) {
  for (const auto& [known, form] : {std::pair("ldcp", ReportForm::ldcp),
                                    {"cnp", ReportForm::cnp},
                                    {"caqm", ReportForm::caqm},
                                    {"rate", ReportForm::rate}}) {
    if (name == known) return form;
  }
  fail("\"" + name + "\" is not a form of reports. Fix: ldcp, cnp, caqm or rate");
}

constexpr std::pair<const char*, uint64_t transport::Counters::*> counters[] = {
    {"malformed", &transport::Counters::malformed},
    {"overtaken_reports", &transport::Counters::overtaken_reports},
    {"notifications", &transport::Counters::notifications},
};

// Reads the names of counters.
std::vector<std::string> counters_of(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const auto known = [&](const auto& counter) { return words[i] == counter.first; };
    if (std::none_of(std::begin(counters), std::end(counters), known)) {
      fail("\"" + words[i] +
           "\" is not a counter. Fix: malformed, overtaken_reports or notifications");
    }
  }
  return {words.begin() + 1, words.end()};
}

void read_setting(const std::vector<std::string>& words, Script& script) {
  const std::string& what = words[0];
  if (what == "rule") return;  // for rules_test.py
  if (what == "no_memory") {
    script.memory = false;
  } else if (words.size() < 2) {
    fail("\"" + what + "\" needs a value");
  } else if (what == "mode") {
    script.mode = script.peers = mode_of(words);
  } else if (what == "peer") {
    script.peers = mode_of(words);
  } else if (what == "psn") {
    script.first_psn = static_cast<uint32_t>(number_of(words[1], 16));
  } else if (what == "send_window") {
    script.send_window = static_cast<uint32_t>(number_of(words[1]));
  } else if (what == "bytes") {
    script.bytes = number_of(words[1]);
    if (script.bytes > 1052) fail("the packets would be too large. Fix: at most 1052");
  } else if (what == "limit_bytes") {
    script.limit_bytes = number_of(words[1]);
  } else if (what == "rtt") {
    script.rtt = duration_of(words[1]);
  } else if (what == "reports") {
    script.reports = form_of(words[1]);
  } else if (what == "line") {
    script.line_bytes_per_second = number_of(words[1]);
  } else if (what == "count") {
    script.counted = counters_of(words);
  } else if (what == "controller") {
    script.controller = congestion::find_controller(words[1]);
    if (script.controller == nullptr) fail("there is no controller \"" + words[1] + "\"");
  } else {
    fail("\"" + what + "\" is not a setting");
  }
}

Script read_script(std::istream& in) {
  Script script;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    std::istringstream stream(text.substr(0, text.find('#')));
    std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    if (words.empty()) continue;
    try {
      if (words[0] != "at") {
        read_setting(words, script);
        continue;
      }
      if (words.size() < 3)
        fail("\"at TIME\" needs an event: in, offer, out, up, done, dead or end");
      const Time at{duration_of(words[1])};
      if (at < script.end) fail("the time is before that of the line above");
      script.end = at;
      words.erase(words.begin(), words.begin() + 2);
      if (words[0] == "in" || words[0] == "offer") {
        script.inputs.push_back({at, words, number});
      } else if (words[0] != "end") {
        std::string line = "at " + text_of(at);
        for (const std::string& word : words) line += " " + word;
        script.expected.push_back(line);
      }
    } catch (const std::exception& error) {
      fail("line " + std::to_string(number) + ": " + error.what());
    }
  }
  return script;
}

// ---- the channel

class Run final : public transport::PacketSource, public transport::PacketSink {
 public:
  explicit Run(const Script& script) : script_(script) {
    if (!script.memory) pools_.bitmaps.create();
    pool_.lend(frames_);
  }

  std::vector<std::string> run() {
    // The last line of a script ends the run: time-outs would go on without end.
    size_t next = 0;
    for (int steps = 0; now_ <= script_.end; ++steps) {
      if (steps > 100'000) fail("virtual time does not advance");
      for (; next < script_.inputs.size() && script_.inputs[next].at <= now_; ++next) {
        happen(script_.inputs[next]);
        note_counters();
      }
      send();
      if (next < script_.inputs.size() && script_.inputs[next].at <= now_) continue;
      Time then = dead_ ? script_.end + Duration(1) : tp_.next_deadline();
      if (next < script_.inputs.size()) then = std::min(then, script_.inputs[next].at);
      if (then <= now_) then = now_ + Duration(1000);
      now_ = std::min(then, script_.end + Duration(1));
      if (now_ > script_.end) break;
      if (!dead_ && tp_.next_deadline() <= now_) dead_ = tp_.handle_timer(now_).has_value();
      if (dead_ && !told_) note("dead");
      told_ = dead_;
    }
    flush();
    return trace_;
  }

  // PacketSource
  void write(std::span<transport::PacketSlot> packets) override {
    for (transport::PacketSlot& packet : packets) {
      packet.frame->head_bytes = static_cast<uint8_t>(packet.frame->head_bytes + 8);
      if (payload_.empty()) continue;
      packet.frame->pieces[0] = {payload_.data(), static_cast<uint32_t>(payload_.size())};
      packet.frame->piece_count = 1;
    }
  }
  // PacketSink
  bool admits(const transport::Received&) override { return true; }
  void accept(const transport::Received&, Time) override {}
  void delivered(PeerId, std::span<const transport::SliceRef> slices, Time) override {
    for (const transport::SliceRef slice : slices) {
      if (!(slice == transport::SliceRef{})) note("done " + std::to_string(slice.slot));
    }
  }
  void up(PeerId, transport::Channel&, Time) override {}
  void down(PeerId, transport::Why, Time) override {}

 private:
  static constexpr uint32_t packet_bytes = 1024;
  static constexpr uint32_t arriving_bytes = 1000;  // of each data packet, from RTPH to ICRC
  static constexpr size_t rtph_bytes = 16;
  static constexpr size_t least_bytes =
      rtph_bytes + 8 + icrc_bytes;  // of a data packet that leaves

  const PathList paths_{.count = 1, .endpoints = {{{ipv4(127, 0, 0, 1), ub_port}}}};

  transport::TpSettings settings() const {
    return {.ends = {.peer = {},
                     .local = Tpn(7),
                     .remote = Tpn(8),
                     .to = {ipv4(127, 0, 0, 2), ub_port},
                     .facts = {.packet_bytes = packet_bytes, .tassn_window = 1024, .reads = 64}},
            .first_sent = Psn::first(script_.first_psn),
            .first_received = Psn::first(script_.first_psn),
            .send_window = script_.send_window,
            .limit_bytes = script_.limit_bytes,
            .first_rtt = script_.rtt,
            .mode = &script_.mode,
            .peers_mode = script_.peers,
            .controller = script_.controller,
            .gives = script_.reports,
            .takes = script_.reports,
            .pacing = {.bytes_per_second = static_cast<double>(script_.line_bytes_per_second),
                       .lateness = TimerWheel::tick},
            .paths = &paths_};
  }

  uint32_t wire(uint64_t psn) const { return (script_.first_psn + psn) & 0xffffff; }
  uint64_t relative(uint64_t psn) const { return (psn - script_.first_psn) & 0xffffff; }

  // ---- packets that arrive

  void happen(const Line& line) {
    try {
      if (line.words[0] == "offer") return offer(line.words);
      if (line.words.size() < 3) {
        fail("\"in\" needs a packet. Fix: data, ack, nak or sack and a PSN, or cnp severe");
      }
      const std::string& what = line.words[1];
      if (what == "data") return take_data(line.words);
      if (what == "cnp") return take_notification(line.words);
      if (what == "ack" || what == "nak" || what == "sack") return take_ack(line.words);
      fail("\"" + what + "\" is not a packet. Fix: data, ack, nak, sack or cnp");
    } catch (const std::exception& error) {
      fail("line " + std::to_string(line.number) + ": " + error.what());
    }
  }

  // Handles the line "offer 5": a slice of five packets.
  void offer(const std::vector<std::string>& words) {
    const auto packets = static_cast<uint32_t>(number_of(words.at(1)));
    if (!tp_.offer({slices_++, 1}, transport::Class::request, packets * packet_bytes)) {
      fail("no room for the slice");
    }
  }

  static bool has(const std::vector<std::string>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  // Reads the words of a packet from this one on: flags from `known`, or words about congestion.
  CongestionWords words_of(const std::vector<std::string>& words, size_t first,
                           std::initializer_list<std::string_view> known,
                           uint64_t most_hint) const {
    CongestionWords out;
    for (size_t i = first; i < words.size(); ++i) {
      if (std::find(known.begin(), known.end(), words[i]) != known.end()) continue;
      if (out.take(words[i], most_hint)) continue;
      std::string flags;
      for (const std::string_view flag : known) flags += std::string(flag) + ", ";
      fail("\"" + words[i] + "\" is not a word of this packet. Fix: " + flags +
           "C, I, S, loc, hint=N, queue=N");
    }
    return out;
  }

  // Handles the line "in data 3-5 [last] [ask] [fake] [ce] [C] [I] [S] [loc] [hint=N] [queue=N]".
  void take_data(const std::vector<std::string>& words) {
    const CongestionWords congestion = words_of(words, 3, {"last", "ask", "fake", "ce"}, 0xff);
    const auto [first, last] = range_of(words[2]);
    for (uint64_t psn = first; psn <= last; ++psn) {
      std::array<std::byte, rtph_bytes> bytes{};
      bytes[0] = static_cast<std::byte>(has(words, "last") << 7 | 1);
      bytes[8] = static_cast<std::byte>(has(words, "ask") << 7 | has(words, "fake") << 6);
      put(&bytes[9], 3, wire(psn));
      const auto header = Rtph::parse(bytes);
      const RxFrame frame{.data = bytes.data(),
                          .bytes = arriving_bytes,
                          .ecn = has(words, "ce") ? Ecn::ce : Ecn::ect0,
                          .cci = congestion.cci(),
                          .switch_queue = static_cast<uint8_t>(congestion.queue)};
      if (tp_.handle_data(*header, frame, now_)) note_number("up", psn, "");
    }
  }

  // Handles the lines "in ack 3", "in nak 4" and "in sack 3 max 9 bits 64 5 7-9". With the words
  // "report BYTES MARKED" and those about congestion, the packet has a CETPH; with "short", half of
  // one. "cci" and words about congestion at the end are the CCI of the packet itself.
  void take_ack(std::vector<std::string> words) {
    const RxFrame frame = take_cci(words);
    const auto at = std::find(words.begin(), words.end(), "report");
    std::vector<std::byte> rest;
    const bool reports = at != words.end();
    if (reports) {
      rest = cetph({at, words.end()});
      words.erase(at, words.end());
    }
    // -1: no packet has arrived in order.
    const bool none = words[2] == "-1";
    const uint64_t psn = none ? UINT64_MAX : number_of(words[2]);
    std::array<std::byte, rtph_bytes> bytes{};
    bytes[0] = static_cast<std::byte>((words[1] == "sack" ? 5 : 2) + reports);
    put(&bytes[9], 3, wire(psn));
    if (words[1] == "nak") bytes[12] = static_cast<std::byte>(3 << 5);
    if (words[1] == "sack") {
      const std::vector<std::byte> bitmap = saetph(words, psn);
      rest.insert(rest.end(), bitmap.begin(), bitmap.end());
    }
    // As RtpIngress does.
    if (reports && !tp_.reports_taken().in_acknowledgements()) {
      ++counters_.malformed;
      return;
    }
    tp_.handle_ack(*Rtph::parse(bytes), rest, frame, now_, *this);
  }

  // Removes the word "cci" and those behind it. Returns what a switch has written on a packet with
  // this CCI.
  RxFrame take_cci(std::vector<std::string>& words) const {
    const auto at = std::find(words.begin(), words.end(), "cci");
    if (at == words.end()) return {};
    CongestionWords cci = words_of(words, static_cast<size_t>(at - words.begin()) + 1, {}, 0xff);
    cci.any = true;
    words.erase(at, words.end());
    return {.cci = cci.cci(), .switch_queue = static_cast<uint8_t>(cci.queue)};
  }

  bool is_rate() const { return script_.reports == ReportForm::rate; }
  bool counts_packets() const { return is_rate() || script_.reports == ReportForm::caqm; }

  // MARKED is in packets for reports of form caqm and rate, otherwise in bytes.
  std::vector<std::byte> cetph(const std::vector<std::string>& words) const {
    std::array<std::byte, 8> bytes{};
    if (words.size() < 3) fail("a report needs values. Fix: report BYTES MARKED");
    put(bytes.data(), 4, number_of(words[1]) / 2);
    const uint64_t marked = number_of(words[2]);
    const CongestionWords congestion = words_of(words, 3, {"short"}, is_rate() ? 0x7fff : 0xffff);
    if (counts_packets()) {
      if (marked > 0xff) fail("MARKED does not fit. Fix: at most 255 packets");
      congestion.write(bytes, is_rate());
      put(&bytes[5], 1, marked);
    } else {
      if (congestion.any) fail("this form has only BYTES and MARKED. Fix: reports caqm or rate");
      put(&bytes[4], 4, marked / 2);
    }
    return {bytes.begin(), bytes.begin() + (has(words, "short") ? 4 : 8)};
  }

  // Handles the lines "in cnp severe" and "in cnp minor", each with "loc" or without, and a CCI as
  // acknowledgements have.
  void take_notification(std::vector<std::string> words) {
    const RxFrame frame = take_cci(words);
    const bool severe = words[2] == "severe";
    if (!severe && words[2] != "minor") fail("a CNP has no such mark. Fix: severe or minor");
    std::array<std::byte, 16> bytes{};
    bytes[0] = static_cast<std::byte>((severe ? 3 : 1) << 6 | has(words, "loc") << 5);
    tp_.handle_notification(bytes, frame, now_);
  }

  std::vector<std::byte> saetph(const std::vector<std::string>& words, uint64_t psn) const {
    if (words.size() < 7 || words[3] != "max" || words[5] != "bits") {
      fail("not of the form: in sack PSN max PSN bits 64 PSN...");
    }
    const uint64_t bits = number_of(words[6]);
    std::vector<std::byte> bytes(4 + bits / 8);
    for (uint8_t code = 0; 64u << code <= bits; ++code) bytes[0] = std::byte{code};
    put(&bytes[1], 3, wire(number_of(words[4])));
    bytes[4] = std::byte{1};
    for (size_t i = 7; i < words.size(); ++i) {
      const auto [first, last] = range_of(words[i]);
      for (uint64_t at = first; at <= last; ++at) {
        const uint64_t bit = at - psn;
        if (bit >= bits) fail("bit " + std::to_string(bit) + " is not in the bitmap");
        bytes[4 + bit / 8] |= static_cast<std::byte>(1 << bit % 8);
      }
    }
    return bytes;
  }

  // ---- packets that leave

  // Sends as Transport::fill does, until no packet is due.
  void send() {
    for (int rounds = 0; !dead_ && (rounds == 0 || tp_.wants_to_send(now_)); ++rounds) {
      if (rounds > 10'000) fail("the channel does not stop sending");
      const bool acks = tp_.owes_ack(now_);
      const size_t count = tp_.fill(*this, std::span(frames_).first(frames_.size() - 1), now_);
      for (TxFrame* frame : std::span(frames_).first(count)) look_at(*frame);
      if (acks) {
        tp_.fill_ack(*frames_[0]);
        look_at(*frames_[0]);
      }
      if (count == 0 && !acks) return;
    }
  }

  void look_at(const TxFrame& frame) {
    std::vector<std::byte> bytes(frame.bytes());
    drivers::flatten(frame, bytes.data());
    const auto opcode = static_cast<unsigned>(bytes[0]) & 0x7f;
    const uint64_t psn = relative(big_endian(&bytes[9], 3));
    if (opcode == 1) {
      std::string flags;
      if (big_endian(&bytes[0], 1) >> 7 != 0) flags += " last";
      if ((big_endian(&bytes[8], 1) & 0x80) != 0) flags += " ask";
      if ((big_endian(&bytes[8], 1) & 0x40) != 0) flags += " fake";
      if (frame.cci != 0) flags += CongestionWords::of_cci(frame.cci).text();
      return note_number("out data", psn, flags);
    }
    const std::string cci =
        frame.cci == 0 ? "" : " cci" + CongestionWords::of_cci(frame.cci).text();
    if (opcode == 8) return note("out cnp " + std::to_string(big_endian(&bytes[16], 1) >> 6) + cci);
    std::string report;
    if (opcode == 3 || opcode == 6) {
      report = report_of(bytes);
      bytes.erase(bytes.begin() + 16, bytes.begin() + 24);
    }
    // The number before the first one: no packet has arrived in order.
    const std::string number = psn == 0xffffff ? "-1" : std::to_string(psn);
    const uint64_t status = big_endian(&bytes[12], 1);
    if (opcode == 2 || opcode == 3) {
      return note((status == 3 << 5 ? "out nak " : "out ack ") + number + report + cci);
    }
    if (opcode != 5 && opcode != 6) fail("a packet of opcode " + std::to_string(opcode) + " left");
    note("out sack " + number + bits_of(bytes, psn) + report + cci);
  }

  std::string report_of(const std::vector<std::byte>& bytes) const {
    const std::string arrived = " report " + std::to_string(big_endian(&bytes[16], 4) * 2) + " ";
    if (!counts_packets()) return arrived + std::to_string(big_endian(&bytes[20], 4) * 2);
    const auto cetph = std::span(bytes).subspan<16, 8>();
    return arrived + std::to_string(big_endian(&bytes[21], 1)) +
           CongestionWords::of_cetph(cetph, is_rate()).text();
  }

  std::string bits_of(const std::vector<std::byte>& bytes, uint64_t psn) const {
    const uint64_t bits = 64u << (big_endian(&bytes[16], 1) & 7);
    std::string out = " max " + std::to_string(relative(big_endian(&bytes[17], 3))) + " bits " +
                      std::to_string(bits);
    if (bytes.size() < 20 + bits / 8 + 4) fail("the bitmap is cut off");
    const auto set = [&](uint64_t i) {
      return (big_endian(&bytes[20 + i / 8], 1) >> i % 8 & 1) != 0;
    };
    if (!set(0)) fail("bit 0, the last packet received in order, is not set");
    for (uint64_t i = 1; i < bits; ++i) {
      if (!set(i)) continue;
      const uint64_t first = i;
      while (i + 1 < bits && set(i + 1)) ++i;
      const uint64_t base = psn == 0xffffff ? UINT64_MAX : psn;
      out += " " + text_of(base + first, base + i);
    }
    return out;
  }

  // ---- the trace: consecutive packet numbers share one line

  void note(const std::string& what) {
    flush();
    trace_.push_back("at " + text_of(now_) + " " + what);
  }
  // Lists the counters of the script that have grown.
  void note_counters() {
    for (const auto& [name, counter] : counters) {
      const uint64_t grown = counters_.*counter - counted_.*counter;
      const auto& all = script_.counted;
      if (grown > 0 && std::find(all.begin(), all.end(), name) != all.end()) {
        note(std::string("counted ") + name);
      }
    }
    counted_ = counters_;
  }
  void note_number(const std::string& what, uint64_t number, const std::string& flags) {
    const std::string key = "at " + text_of(now_) + " " + what;
    if (key != run_key_ || number != run_last_ + 1 || !flags.empty() || !run_flags_.empty()) {
      flush();
      run_key_ = key;
      run_first_ = number;
      run_flags_ = flags;
    }
    run_last_ = number;
  }
  void flush() {
    if (!run_key_.empty()) {
      trace_.push_back(run_key_ + " " + text_of(run_first_, run_last_) + run_flags_);
    }
    run_key_.clear();
    run_flags_.clear();
  }

  const Script& script_;
  const std::vector<std::byte> payload_ =
      std::vector<std::byte>(std::max(script_.bytes, least_bytes) - least_bytes);
  transport::Counters counters_;
  transport::Counters counted_;  // as of the last event
  transport::RtpPools pools_{8192, 256, 1};
  Time now_{};
  transport::Tp tp_{0, settings(), pools_, counters_, now_};
  drivers::FramePool pool_{256};
  std::array<TxFrame*, 256> frames_{};
  uint32_t slices_ = 0;
  bool dead_ = false;
  bool told_ = false;
  std::vector<std::string> trace_;
  std::string run_key_, run_flags_;
  uint64_t run_first_ = 0;
  uint64_t run_last_ = 0;
};

bool run_file(const char* path) {
  std::vector<std::string> expected;
  std::vector<std::string> trace;
  try {
    std::ifstream in(path);
    if (!in) fail("cannot be read");
    const Script script = read_script(in);
    expected = script.expected;
    if (expected.empty()) fail("the script expects no event");
    trace = Run(script).run();
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", path, error.what());
    return false;
  }
  if (trace == expected) return true;
  std::printf("%s:\n", path);
  for (size_t i = 0; i < std::max(trace.size(), expected.size()); ++i) {
    const std::string want = i < expected.size() ? expected[i] : "nothing";
    const std::string came = i < trace.size() ? trace[i] : "nothing";
    if (want == came) {
      std::printf("    %s\n", want.c_str());
    } else {
      std::printf("  - %s\n  + %s\n", want.c_str(), came.c_str());
    }
  }
  return false;
}

// Returns why a script is refused; nothing if it is not.
std::string why_refused(const std::string& text) {
  std::istringstream in(text);
  try {
    const Script script = read_script(in);
    (void)Run(script).run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Reads rows "LINE; LINE | WHY" of scripts that must be refused with a message that contains WHY.
// Returns whether all are.
bool check_refused(const char* path) {
  std::ifstream in(path);
  bool all = in.good();
  std::string row;
  while (std::getline(in, row)) {
    const size_t bar = row.find(" | ");
    if (row.starts_with('#') || bar == std::string::npos) continue;
    std::string script = row.substr(0, bar);
    std::replace(script.begin(), script.end(), ';', '\n');
    const std::string why = why_refused(script);
    if (why.find(row.substr(bar + 3)) != std::string::npos) continue;
    std::printf("%s\n  + %s\n", row.c_str(), why.c_str());
    all = false;
  }
  return all;
}

}  // namespace
}  // namespace urma::test

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s SCRIPT... or --refused FILE\n", arguments[0]);
    return 2;
  }
  if (std::string_view(arguments[1]) == "--refused" && count == 3) {
    return urma::test::check_refused(arguments[2]) ? 0 : 1;
  }
  int failed = 0;
  for (int i = 1; i < count; ++i) failed += !urma::test::run_file(arguments[i]);
  std::printf("%d scripts, %d failed\n", count - 1, failed);
  return failed == 0 ? 0 : 1;
}
