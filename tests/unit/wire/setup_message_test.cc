// SPDX-License-Identifier: Apache-2.0
#include "wire/setup_message.h"

#include <vector>

#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/unit/bit_flips.h"
#include "wire/icrc.h"

namespace urma::test {
namespace {

constexpr size_t bare_bytes = SetupMessage::head_size(Carrier::unreliable) + SetupMessage::size;

// UB 4.1.3
TEST_CASE("a set-up body uses each of its bits") { check_header<SetupMessage>({}); }

TEST_CASE("a set-up body of an unknown type is refused") {
  std::array<std::byte, SetupMessage::size> wire;
  SetupMessage{}.emit(wire);
  for (unsigned type = 0; type < 256; ++type) {
    wire[0] = static_cast<std::byte>(type);
    CHECK(SetupMessage::parse(wire).has_value() == (type >= 1 && type <= 11));
  }
}

// Returns the whole packet without its ICRC.
std::vector<std::byte> packet_of(const Addresses& addresses, const SetupMessage& message,
                                 size_t padded_to, std::span<const std::byte> paths = {}) {
  drivers::FramePool pool(1);
  TxFrame* frame = nullptr;
  REQUIRE(pool.lend({&frame, 1}) == 1);
  std::fill_n(frame->head, TxFrame::head_room, std::byte{0xee});
  // Bytes that an earlier packet left in the frame.
  frame->pieces[0] = {frame->head, 10};
  frame->piece_count = 1, frame->tail_bytes = 3;
  write_setup(*frame, addresses, message, padded_to, Carrier::unreliable, paths);
  std::vector<std::byte> wire(frame->bytes());
  drivers::flatten(*frame, wire.data());
  return wire;
}

TEST_CASE("a set-up packet of any length has both addresses and its body, padded with zeros") {
  Prng prng(1);
  for (const size_t padded_to : {0, 100, 136, 137, 140, 200, 1024 + 72, 4096 + 72, 8192 + 72}) {
    INFO("padded to " << padded_to);
    const auto addresses = random_header<Addresses>(prng);
    auto message = random_header<SetupMessage>(prng);
    message.features &= ~feature_paths;
    if (message.type == SetupType::paths) message.type = SetupType::noted;
    const auto wire = packet_of(addresses, message, padded_to);
    CHECK(wire.size() % 4 == 0);
    CHECK(wire.size() >= bare_bytes);
    CHECK(wire.size() + icrc_bytes <= std::max(padded_to + 3, bare_bytes + 4));
    for (size_t i = bare_bytes; i < wire.size(); ++i) REQUIRE(wire[i] == std::byte{0});
    const auto parsed = parse_setup(wire);
    REQUIRE(parsed);
    CHECK(parsed->addresses == addresses);
    CHECK(parsed->message == message);
  }
}

TEST_CASE("an OPEN and an ACCEPT list the addresses of their sender's paths") {
  Prng prng(2);
  for (size_t count = 1; count <= most_paths; ++count) {
    for (const size_t padded_to : {0, 1024 + 72}) {
      INFO(count << " paths, padded to " << padded_to);
      auto message = random_header<SetupMessage>(prng);
      message.type = count % 2 == 0 ? SetupType::open : SetupType::accept;
      message.features |= feature_paths;
      message.paths.count = static_cast<uint8_t>(count);
      for (size_t i = 0; i < count; ++i) {
        for (std::byte& byte : message.paths.endpoints[i].address.bytes) {
          byte = static_cast<std::byte>(prng.below(256));
        }
        message.paths.endpoints[i].port = static_cast<uint16_t>(prng.below(65536));
      }
      std::array<std::byte, SetupMessage::most_paths_size> said;
      const size_t bytes = emit_paths(message.paths, said);
      auto wire = packet_of({}, message, padded_to, std::span(said).first(bytes));
      CHECK(wire.size() % 4 == 0);
      const auto parsed = parse_setup(wire);
      REQUIRE(parsed);
      CHECK(parsed->message == message);
      // The list claims fewer or more paths than allowed, or than there is room for.
      for (const unsigned wrong : {0, 9, 255}) {
        wire[bare_bytes] = static_cast<std::byte>(wrong);
        CHECK_FALSE(parse_setup(wire));
      }
      wire[bare_bytes] = static_cast<std::byte>(count);
      CHECK_FALSE(parse_setup(std::span(wire).first(bare_bytes + bytes - 4)));
    }
  }
}

TEST_CASE("a list of paths has a number, and an empty entry for a removed path") {
  PathList paths;
  paths.number = 0xabcdef;
  paths.set(2, {ipv4(10, 0, 0, 3), 4792});
  paths.set(5, {ipv4(10, 0, 0, 6), 4792});
  SetupMessage message{.type = SetupType::paths, .features = feature_paths};
  message.paths = paths;
  std::array<std::byte, SetupMessage::most_paths_size> said;
  const size_t bytes = emit_paths(paths, said);
  CHECK(bytes == SetupMessage::paths_size(6));
  const auto wire = packet_of({}, message, 0, std::span(said).first(bytes));
  const auto parsed = parse_setup(wire);
  REQUIRE(parsed);
  CHECK(parsed->message.paths == paths);
  CHECK(parsed->message.paths.first() == 2);
  // An empty list is refused, and PATHS without a list.
  auto nothing = wire;
  std::fill(nothing.begin() + bare_bytes + 4, nothing.end(), std::byte{0});
  CHECK_FALSE(parse_setup(nothing));
  message.features = 0;
  CHECK_FALSE(parse_setup(packet_of({}, message, 0)));
}

// OPEN shows that the path carries the longest packet: a full packet of the MTU, with all headers.
TEST_CASE("an OPEN is as long as the longest data packet of its MTU") {
  for (const size_t mtu : {1024, 2048, 4096, 8192}) {
    const size_t longest = mtu + Rtph::size + TaRequest::max_size + 4;
    CHECK(packet_of({}, {}, longest).size() + icrc_bytes == longest);
  }
}

TEST_CASE("a set-up packet has at least the length that it is padded to") {
  for (size_t padded_to = 130; padded_to < 150; ++padded_to) {
    INFO("padded to " << padded_to);
    CHECK(packet_of({}, {}, padded_to).size() + icrc_bytes >= padded_to);
  }
}

TEST_CASE("a set-up packet that is cut off, or is another Send, is refused") {
  // The features look like a type if a token moves the body by four bytes.
  const auto wire = packet_of({}, {.features = 0x01000000}, 200);
  REQUIRE(parse_setup(wire));
  for (size_t size = 0; size < bare_bytes; ++size) {
    REQUIRE_FALSE(parse_setup(std::span(wire).first(size)));
  }
  constexpr size_t btah = Utph::size + Addresses::size;
  const struct {
    size_t byte;
    std::byte bits;
    const char* why;
  } changes[] = {
      {0, std::byte{1}, "RTP, not UTP"},
      {1, std::byte{1}, "no addresses follow"},
      {1, std::byte{0x40}, "another TPVer"},
      {btah, std::byte{1}, "a Send_imm"},
      {btah, std::byte{3}, "a Write"},
      {btah + 1, std::byte{0x40}, "another TAver"},
      {btah + 1, std::byte{0x08}, "a token"},
      {btah + 1, std::byte{0x01}, "user data"},
      {btah + 4, std::byte{0x08}, "no MTETAH"},
      {btah + 11, std::byte{1}, "another Jetty"},
      {btah + 9, std::byte{8}, "another Jetty, high bits"},
      {btah + 16, std::byte{0x80}, "an unknown type"},
  };
  for (const auto& change : changes) {
    INFO(change.why);
    auto changed = wire;
    changed[change.byte] ^= change.bits;
    CHECK_FALSE(parse_setup(changed));
  }
}

// A peer that does not know retransmission modes sends 1, ignores these bits, and receives as
// sel-rack needs it.
TEST_CASE("the mode in `features` is read, and an older peer is asked for the default mode") {
  for (const NamedRetransmission& named : named_retransmissions()) {
    INFO(named.name);
    const uint32_t features = feature_filler | features_of(named.mode);
    CHECK(asked_by(features) == named.mode);
    CHECK(followed_by(named.mode, features) == named.mode);
    const Retransmission alone = followed_by(named.mode, feature_filler);
    CHECK(name(alone) == "sel-rack");
    CHECK(alone.window_packets == named.mode.window_packets);
  }
  CHECK(features_of(sel_rack) == feature_retransmission);
  CHECK(asked_by(feature_filler) == sel_rack);
  // A trigger that is unknown, and bits that have no meaning.
  CHECK(asked_by(features_of(sel_fast) | 3u << 9) == sel_rack);
  CHECK(asked_by(features_of(gbn_fast) | 0xffff0000) == gbn_fast);
}

TEST_CASE("each offer of reports is read as it was written, beside any retransmission mode") {
  for (unsigned gives = 0; gives < 256; ++gives) {
    for (unsigned wants = 0; wants <= number(ReportForm::rate); ++wants) {
      const ReportOffer offer{.gives = {static_cast<uint8_t>(gives)},
                              .wants = static_cast<ReportForm>(wants)};
      const uint32_t features = features_of(gbn_fast) | feature_filler | features_of(offer);
      REQUIRE(offered_by(features) == offer);
      REQUIRE(asked_by(features) == gbn_fast);
    }
  }
  constexpr uint32_t offered = feature_reports | 0x0f00'0000u | 0x00ff'0000u;
  CHECK(features_of({.gives = {0xff}, .wants = static_cast<ReportForm>(15)}) == offered);
  // The bits of docs/protocol.md, and of the OPEN in tests/golden/wire_vectors.txt.
  const ReportForms gives =
      ReportForms{}.with(ReportForm::ldcp).with(ReportForm::caqm).with(ReportForm::rate);
  CHECK(features_of({.gives = gives, .wants = ReportForm::rate}) == 0x040d0020);
  CHECK(features_of({.gives = ReportForms{}.with(ReportForm::cnp)}) == 0x00020020);
  CHECK(features_of({.gives = {}, .wants = ReportForm::ldcp}) == 0x01000020);
}

TEST_CASE("an end that reports nothing and reacts to loss alone sends what older versions send") {
  CHECK(features_of(ReportOffer{}) == 0);
  CHECK(offered_by(0) == ReportOffer{});
  // Without its feature bit nothing is an offer.
  CHECK(offered_by(~feature_reports) == ReportOffer{});
}

TEST_CASE("a wanted form of reports that is unknown counts as none") {
  for (uint32_t wants = 5; wants < 16; ++wants) {
    CHECK(offered_by(feature_reports | wants << 24).wants == ReportForm::none);
  }
}

TEST_CASE("the directions of a channel agree on their reports independently") {
  const ReportOffer old;
  const ReportOffer reports{.gives = ReportForms{}.with(ReportForm::caqm).with(ReportForm::ldcp)};
  const ReportOffer caqm{.gives = ReportForms{}.with(ReportForm::rate), .wants = ReportForm::caqm};
  CHECK(agreed_form(caqm, old) == ReportForm::none);
  CHECK(agreed_form(old, caqm) == ReportForm::none);
  CHECK(agreed_form(caqm, reports) == ReportForm::caqm);
  CHECK(agreed_form(reports, caqm) == ReportForm::none);
  CHECK(agreed_form(caqm, caqm) == ReportForm::none);
  // The receiver lacks what the sender wants, and both have another form.
  const ReportOffer marks{.gives = ReportForms{}.with(ReportForm::ldcp)};
  const ReportOffer notes{.gives = marks.gives.with(ReportForm::cnp), .wants = ReportForm::cnp};
  CHECK(agreed_form(notes, marks) == ReportForm::ldcp);
  CHECK(agreed_form(marks, notes) == ReportForm::none);
  CHECK(agreed_form(notes, notes) == ReportForm::cnp);
}

}  // namespace
}  // namespace urma::test
