#include "wire/setup_message.h"

#include <algorithm>

#include "wire/icrc.h"

namespace urma::transport {
namespace {

namespace body {
using Type = Field<0, 8>;
using Version = Field<8, 8>;
using Reason = Field<16, 8>;
using MtuLog2 = Field<24, 8>;
using Features = Field<32, 32>;
using FromLife = Field<64, 64>;
using ToLife = Field<128, 64>;
using FromTpn = Field<192, 32>;
using ToTpn = Field<224, 32>;
using FirstPsn = Field<256, 32>;
using Attempt = Field<288, 32>;
using ReceiveWindow = Field<320, 16>;
using TassnWindow = Field<336, 16>;
using AtomicResults = Field<352, 16>;
using Reads = Field<368, 16>;
using BufferBytes = Field<384, 32>;
using EchoedPsn = Field<416, 32>;
using Cookie = Field<448, 64>;
}  // namespace body

// In `features`, bits from the least significant one.
constexpr uint32_t asks_go_back_n = 1 << 8;
constexpr unsigned trigger_shift = 9;
constexpr uint32_t trigger_mask = 3;
constexpr uint32_t asks_to_drop = 1 << 11;
constexpr uint32_t last_trigger = 2;

// Padding that makes a large packet; never read for its value.
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

std::optional<SetupMessage> SetupMessage::parse(HeaderView<size> in) {
  const auto type = body::Type::get(in);
  if (type < static_cast<uint64_t>(SetupType::open) ||
      type > static_cast<uint64_t>(SetupType::noted)) {
    return std::nullopt;
  }
  return SetupMessage{
      .type = static_cast<SetupType>(type),
      .version = static_cast<uint8_t>(body::Version::get(in)),
      .reason = static_cast<SetupReason>(body::Reason::get(in)),
      .mtu_log2 = static_cast<uint8_t>(body::MtuLog2::get(in)),
      .features = static_cast<uint32_t>(body::Features::get(in)),
      .from_life = body::FromLife::get(in),
      .to_life = body::ToLife::get(in),
      .from_tpn = static_cast<uint32_t>(body::FromTpn::get(in)),
      .to_tpn = static_cast<uint32_t>(body::ToTpn::get(in)),
      .first_psn = static_cast<uint32_t>(body::FirstPsn::get(in)),
      .attempt = static_cast<uint32_t>(body::Attempt::get(in)),
      .receive_window = static_cast<uint16_t>(body::ReceiveWindow::get(in)),
      .tassn_window = static_cast<uint16_t>(body::TassnWindow::get(in)),
      .atomic_results = static_cast<uint16_t>(body::AtomicResults::get(in)),
      .reads = static_cast<uint16_t>(body::Reads::get(in)),
      .buffer_bytes = static_cast<uint32_t>(body::BufferBytes::get(in)),
      .echoed_psn = static_cast<uint32_t>(body::EchoedPsn::get(in)),
      .cookie = body::Cookie::get(in),
      .paths = {},
  };
}

void SetupMessage::emit(HeaderBytes<size> out) const {
  body::Type::set(out, static_cast<uint64_t>(type));
  body::Version::set(out, version);
  body::Reason::set(out, static_cast<uint64_t>(reason));
  body::MtuLog2::set(out, mtu_log2);
  body::Features::set(out, features);
  body::FromLife::set(out, from_life);
  body::ToLife::set(out, to_life);
  body::FromTpn::set(out, from_tpn);
  body::ToTpn::set(out, to_tpn);
  body::FirstPsn::set(out, first_psn);
  body::Attempt::set(out, attempt);
  body::ReceiveWindow::set(out, receive_window);
  body::TassnWindow::set(out, tassn_window);
  body::AtomicResults::set(out, atomic_results);
  body::Reads::set(out, reads);
  body::BufferBytes::set(out, buffer_bytes);
  body::EchoedPsn::set(out, echoed_psn);
  body::Cookie::set(out, cookie);
}

namespace {

std::optional<PathList> parse_paths(std::span<const std::byte> in) {
  const auto count = in.empty() ? 0u : std::to_integer<unsigned>(in[0]);
  if (count == 0 || count > most_paths || in.size() < SetupMessage::paths_size(count)) {
    return std::nullopt;
  }
  PathList out;
  out.number = static_cast<uint32_t>(load_be<3>(in.data() + 1));
  for (unsigned i = 0; i < count; ++i) {
    const std::byte* const at = in.data() + 4 + 18 * i;
    Endpoint place;
    place.port = static_cast<uint16_t>(load_be<2>(at + 16));
    std::copy_n(at, 16, place.address.bytes.begin());
    out.set(i, place);
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
  out[0] = static_cast<std::byte>(count);
  store_be<3>(out.data() + 1, paths.number & PathList::number_mask);
  for (unsigned i = 0; i < count; ++i) {
    std::byte* const at = out.data() + 4 + 18 * i;
    std::copy_n(paths.endpoints[i].address.bytes.begin(), 16, at);
    store_be<2>(at + 16, paths.endpoints[i].port);
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

  frame.head_bytes = static_cast<uint16_t>(at + SetupMessage::size);
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

}  // namespace urma::transport
