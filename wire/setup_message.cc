// SPDX-License-Identifier: Apache-2.0
#include "wire/setup_message.h"

#include <algorithm>

#include "wire/icrc.h"

namespace urma {
namespace {

// Bits of `features`, from the least significant one.
constexpr uint32_t asks_go_back_n = 1 << 8;
constexpr unsigned trigger_shift = 9;
constexpr uint32_t trigger_mask = 3;
constexpr uint32_t asks_to_drop = 1 << 11;
constexpr uint32_t last_trigger = 2;
constexpr unsigned gives_shift = 16;
constexpr uint32_t gives_mask = 0xff;
constexpr unsigned wants_shift = 24;
constexpr uint32_t wants_mask = 0xf;

// Padding that makes a packet large; the receiver ignores its value.
alignas(64) constexpr std::array<std::byte, 9216> zeros{};

}  // namespace

uint32_t features_of(const Retransmission& mode) {
  uint32_t features = feature_retransmission;
  if (mode.scope == Retransmission::Scope::go_back_n) features |= asks_go_back_n;
  if (!mode.keeps_out_of_order) features |= asks_to_drop;
  return features | static_cast<uint32_t>(mode.trigger) << trigger_shift;
}

Retransmission asked_by(uint32_t features) {
  const uint32_t trigger = features >> trigger_shift & trigger_mask;
  if ((features & feature_retransmission) == 0 || trigger > last_trigger) return {};
  return {.scope = (features & asks_go_back_n) != 0 ? Retransmission::Scope::go_back_n
                                                    : Retransmission::Scope::selective,
          .trigger = static_cast<Retransmission::Trigger>(trigger),
          .keeps_out_of_order = (features & asks_to_drop) == 0};
}

Retransmission followed_by(Retransmission ours, uint32_t features) {
  if ((features & feature_retransmission) != 0) return ours;
  ours.scope = Retransmission::Scope::selective;
  ours.trigger = Retransmission::Trigger::rack;
  ours.keeps_out_of_order = true;
  return ours;
}

uint32_t features_of(const ReportOffer& offer) {
  if (offer == ReportOffer{}) return 0;
  return feature_reports | uint32_t{offer.gives.bits} << gives_shift |
         uint32_t{number(offer.wants)} << wants_shift;
}

ReportOffer offered_by(uint32_t features) {
  if ((features & feature_reports) == 0) return {};
  const auto wants = static_cast<ReportForm>(features >> wants_shift & wants_mask);
  return {.gives = {static_cast<uint8_t>(features >> gives_shift & gives_mask)},
          .wants = wants <= ReportForm::rate ? wants : ReportForm::none};
}

ReportForm agreed_form(const ReportOffer& sender, const ReportOffer& receiver) {
  if (receiver.gives.contain(sender.wants)) return sender.wants;
  constexpr ReportForm other = ReportForm::ldcp;
  const bool both = sender.gives.contain(other) && receiver.gives.contain(other);
  return both && sender.wants != ReportForm::none ? other : ReportForm::none;
}

std::optional<SetupMessage> SetupMessage::parse(HeaderView<size> in) {
  std::optional<SetupMessage> message = parse_header<SetupMessage>(in);
  if (message->type < SetupType::open || message->type > SetupType::noted) message.reset();
  return message;
}

namespace {

// A list of paths is this, then `count` endpoints, then zeros up to a multiple of four bytes.
struct PathsHead {
  static constexpr size_t size = 4;

  uint32_t count = 0;
  uint32_t number = 0;

  using Layout =
      HeaderLayout<size, Member<&PathsHead::count, 0, 8>, Member<&PathsHead::number, 8, 24>>;
};

struct PathEntry {
  static constexpr size_t size = 18;
  using Layout =
      HeaderLayout<size, AddressMember<&Endpoint::address, 0>, Member<&Endpoint::port, 128, 16>>;
};
static_assert(SetupMessage::paths_size(1) == (PathsHead::size + PathEntry::size + 3) / 4 * 4);

constexpr size_t entry_at(size_t i) { return PathsHead::size + i * PathEntry::size; }

std::optional<PathList> parse_paths(std::span<const std::byte> in) {
  if (in.size() < PathsHead::size) return std::nullopt;
  const auto head = read_header<PathsHead>(in.first<PathsHead::size>());
  if (head.count == 0 || head.count > most_paths ||
      in.size() < SetupMessage::paths_size(head.count)) {
    return std::nullopt;
  }
  PathList out;
  out.number = head.number;
  for (unsigned i = 0; i < head.count; ++i) {
    Endpoint endpoint;
    PathEntry::Layout::read(in.subspan(entry_at(i)).first<PathEntry::size>(), endpoint);
    out.set(i, endpoint);
  }
  if (out.count == 0) return std::nullopt;
  return out;
}

}  // namespace

size_t emit_paths(const PathList& paths, std::span<std::byte, SetupMessage::most_paths_size> out) {
  static_assert(SetupMessage::paths_size(most_paths) == SetupMessage::most_paths_size);
  if (paths.count == 0) return 0;
  std::fill(out.begin(), out.end(), std::byte{0});
  const unsigned count = std::min<unsigned>(paths.count, most_paths);
  PathsHead::Layout::write(PathsHead{.count = count, .number = paths.number},
                           out.first<PathsHead::size>());
  for (unsigned i = 0; i < count; ++i) {
    PathEntry::Layout::write(paths.endpoints[i], out.subspan(entry_at(i)).first<PathEntry::size>());
  }
  return SetupMessage::paths_size(count);
}

std::optional<ReceivedSetup> parse_setup(std::span<const std::byte> packet, Carrier carrier) {
  if (packet.size() < SetupMessage::head_size(carrier) + SetupMessage::size) return std::nullopt;
  size_t addresses_at = Ctph::size;
  if (carrier == Carrier::unreliable) {
    const auto utph = Utph::parse(packet.first<Utph::size>());
    if (!utph || utph->next != NextHeader::full_addresses) return std::nullopt;
    addresses_at = Utph::size;
  } else {
    const auto ctph = Ctph::parse(packet.first<Ctph::size>());
    if (!ctph || *ctph != Ctph{.next = NextHeader::full_addresses}) return std::nullopt;
  }
  const auto request = parse_request(packet.subspan(addresses_at + Addresses::size));
  if (!request || request->info == nullptr || request->info->opcode != TaOpcode::send ||
      request->headers.base.token_present ||
      request->headers.target.target != number(setup_jetty)) {
    return std::nullopt;
  }
  auto message = SetupMessage::parse(request->data.first<SetupMessage::size>());
  if (!message) return std::nullopt;
  const bool must = message->type == SetupType::paths;
  const bool may = must || message->type == SetupType::open || message->type == SetupType::accept;
  const bool names_paths = may && (message->features & feature_paths) != 0;
  if (must && !names_paths) return std::nullopt;
  if (names_paths) {
    const auto paths = parse_paths(request->data.subspan(SetupMessage::size));
    if (!paths) return std::nullopt;
    message->paths = *paths;
  }
  const auto addresses = packet.subspan(addresses_at).first<Addresses::size>();
  return ReceivedSetup{Addresses::parse(addresses), *message};
}

void write_setup(TxFrame& frame, const Addresses& addresses, const SetupMessage& message,
                 size_t padded_to, Carrier carrier, std::span<const std::byte> paths) {
  static_assert(SetupMessage::head_size(Carrier::unreliable) + SetupMessage::size <=
                TxFrame::head_room);
  std::span<std::byte> head(frame.head, TxFrame::head_room);
  size_t at = Ctph::size;
  if (carrier == Carrier::unreliable) {
    Utph{}.emit(head.first<Utph::size>());
    at = Utph::size;
  } else {
    Ctph{.next = NextHeader::full_addresses}.emit(head.first<Ctph::size>());
  }
  addresses.emit(head.subspan(at).first<Addresses::size>());
  TaRequest send;
  send.base.opcode = static_cast<uint8_t>(TaOpcode::send);
  send.target.target = number(setup_jetty);
  send.emit(head.subspan(at + Addresses::size));
  at = SetupMessage::head_size(carrier);
  message.emit(head.subspan(at).first<SetupMessage::size>());

  frame.ecn = Ecn::not_ect;
  frame.cci = 0;
  frame.head_bytes = static_cast<uint8_t>(at + SetupMessage::size);
  frame.piece_count = 0;
  frame.tail_bytes = 0;
  if ((message.features & feature_paths) != 0 && !paths.empty()) {
    frame.pieces[frame.piece_count++] = {paths.data(), static_cast<uint32_t>(paths.size())};
  }
  const size_t without_padding = frame.bytes();
  if (padded_to > without_padding + icrc_bytes) {
    const size_t missing = (padded_to - without_padding - icrc_bytes + 3) & ~size_t{3};
    frame.pieces[frame.piece_count++] = {zeros.data(),
                                         static_cast<uint32_t>(std::min(missing, zeros.size()))};
  }
}

}  // namespace urma
