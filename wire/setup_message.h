// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "urma/core/retransmission.h"
#include "wire/cetph.h"
#include "wire/frame.h"
#include "wire/path_list.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma {

// The messages that make and end channels (docs/protocol.md, OURS). Each is a Send over UTP to the
// well-known Jetty 0:
// UTPH | UPIH32 | EIDH256 | BTAH | MTETAH | OFSTETAH | body | padding | ICRC.
enum class SetupType : uint8_t {
  open = 1,      // asks for a channel
  retry = 2,     // answers an open: repeat it with this cookie, to prove the source address
  accept = 3,    // answers an open: the channel is made
  refuse = 4,    // answers an open: it is not; `reason` says why
  reset = 5,     // answers a packet of a channel that its sender does not have
  close = 6,     // ends a channel; `reason` says whether the sender's incarnation ends, too
  closed = 7,    // answers a close
  question = 8,  // probes a path: `attempt` is the path's number, `cookie` cannot be guessed
  answer = 9,    // answers a question on the path on which it came, with the same two values
  paths = 10,    // from now on the sender has the listed addresses
  noted = 11,    // answers paths, with its cookie
};

enum class SetupReason : uint8_t {
  none = 0,
  version = 1,       // refuse: the sender only understands `version`
  restarted = 2,     // refuse: the sender is not the incarnation that the open names
  no_resources = 3,  // refuse: the peer may try again later
  leaving = 4,       // close: the sender's incarnation ends
  idle = 5,          // close: the channel has been idle for long; the peer may object
};

inline constexpr uint8_t setup_version = 1;

// Features. A channel uses those that both of its ends name.
inline constexpr uint32_t feature_filler = 1 << 0;
// The sender receives packets as the peer asks in the bits below (`asked_by`). An end without this
// feature keeps packets that arrive out of order and sends a TPSACK immediately, which is also what
// all zeros ask for.
inline constexpr uint32_t feature_retransmission = 1 << 1;
// Open, accept, paths: a list of the sender's addresses, one for each path, follows the body.
inline constexpr uint32_t feature_paths = 1 << 2;
// The sender keeps the order of queues that ask for a sequence context (UB 7.3).
inline constexpr uint32_t feature_sequences = 1 << 3;
// The sender understands messages of type `paths`.
inline constexpr uint32_t feature_new_paths = 1 << 4;
// Open, accept: the sender understands CETPH, and makes the offer in the bits below (`offered_by`).
// An accept has it only if the open had it.
inline constexpr uint32_t feature_reports = 1 << 5;

// Returns how the peer is to receive the sender's packets in this mode, as bits of `features`.
uint32_t features_of(const Retransmission& mode);
// The inverse of features_of. A mode that this version does not know counts as the default mode.
Retransmission asked_by(uint32_t features);
// Returns `ours` if the peer has feature_retransmission; else a mode that requires nothing of the
// peer.
Retransmission followed_by(Retransmission ours, uint32_t features);

// How one end takes part in reports of congestion.
struct ReportOffer {
  ReportForms gives;                    // the forms in which it can report about data it receives
  ReportForm wants = ReportForm::none;  // the form that it needs for the data it sends

  friend bool operator==(const ReportOffer&, const ReportOffer&) = default;
};
// Returns the offer as bits of `features`; 0 for the default offer, so that such an end sends what
// versions without reports send.
uint32_t features_of(const ReportOffer& offer);
// The inverse of features_of. A form that this version does not know counts as none.
ReportOffer offered_by(uint32_t features);
// Returns the form in which data from `sender` to `receiver` is reported: the one that the sender
// wants; or else ldcp, if the sender wants a form at all and both ends give ldcp. The directions of
// a channel agree independently. If the result is none, the sender must react to loss alone.
ReportForm agreed_form(const ReportOffer& sender, const ReportOffer& receiver);

// The transport that carries a set-up message (UB 4.1.3): UTP where packets may be lost, CTP where
// they are not.
enum class Carrier : uint8_t { unreliable, compact };

// The body of a set-up message. Which members a type uses is in docs/protocol.md; others are zero.
struct SetupMessage {
  static constexpr size_t size = 64;
  // The list of paths behind the body: count (1 byte), number of the list (3), for each path an
  // address (16) and a port (2), and padding to a multiple of four bytes.
  static constexpr size_t paths_size(size_t count) { return (4 + 18 * count + 3) & ~size_t{3}; }
  static constexpr size_t most_paths_size = 148;
  // Returns the size of the headers in front of the body: UTPH or CTPH, addresses, BTAH, MTETAH,
  // OFSTETAH.
  static constexpr size_t head_size(Carrier carrier) {
    return (carrier == Carrier::unreliable ? Utph::size : Ctph::size) + Addresses::size +
           Btah::size + Mtetah::size + Ofstetah::size;
  }

  SetupType type = SetupType::open;
  uint8_t version = setup_version;         // checked in open only
  SetupReason reason = SetupReason::none;  // why a refuse or a close was sent
  uint8_t mtu_log2 = 0;                // open: the MTU that is asked for; accept: the agreed one
  uint32_t features = feature_filler;  // what the sender can do, and asks of the receiver
  uint64_t from_life = 0;              // incarnation of the sender
  uint64_t to_life = 0;                // zero for any incarnation
  uint32_t from_tpn = 0;               // the number under which the sender has the channel
  uint32_t to_tpn = 0;                 // open: see known_as
  uint32_t first_psn = 0;              // of the sender's first data packet
  uint32_t attempt = 0;                // counted by the sender of a request; its answer repeats it
  uint16_t receive_window = 0;         // packets that may arrive out of order at the sender
  uint16_t tassn_window = 0;           // W: slices that a queue may have outstanding at the sender
  uint16_t atomic_results = 0;  // R: results that the sender keeps; 0: it executes no atomics
  uint16_t reads = 0;           // that the sender answers at a time
  uint32_t buffer_bytes = 0;    // that the sender can hold unread
  uint32_t echoed_psn = 0;      // reset: PSN of the packet that it answers; else see acquaintance
  uint64_t cookie = 0;          // a proof of the address: what was received is sent back
  PathList paths{};             // empty without feature_paths

  // Open, accept: the number under which the sender keeps its state about the receiver. It changes
  // whenever the sender has forgotten that state. Open: `known_as` is the receiver's number for the
  // sender, if the receiver has sent one.
  uint32_t acquaintance() const { return echoed_psn; }
  uint32_t known_as() const { return to_tpn; }

  using Layout = HeaderLayout<
      size, Member<&SetupMessage::type, 0, 8>, Member<&SetupMessage::version, 8, 8>,
      Member<&SetupMessage::reason, 16, 8>, Member<&SetupMessage::mtu_log2, 24, 8>,
      Member<&SetupMessage::features, 32, 32>, Member<&SetupMessage::from_life, 64, 64>,
      Member<&SetupMessage::to_life, 128, 64>, Member<&SetupMessage::from_tpn, 192, 32>,
      Member<&SetupMessage::to_tpn, 224, 32>, Member<&SetupMessage::first_psn, 256, 32>,
      Member<&SetupMessage::attempt, 288, 32>, Member<&SetupMessage::receive_window, 320, 16>,
      Member<&SetupMessage::tassn_window, 336, 16>, Member<&SetupMessage::atomic_results, 352, 16>,
      Member<&SetupMessage::reads, 368, 16>, Member<&SetupMessage::buffer_bytes, 384, 32>,
      Member<&SetupMessage::echoed_psn, 416, 32>, Member<&SetupMessage::cookie, 448, 64>>;

  // Returns the body without its paths. Returns nothing if the type is unknown.
  static std::optional<SetupMessage> parse(HeaderView<size> in);
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const SetupMessage&, const SetupMessage&) = default;
};

// A whole set-up packet.
struct ReceivedSetup {
  Addresses addresses;
  SetupMessage message;
};
// Returns nothing if `packet`, which has been stripped of its ICRC, is not a set-up packet.
std::optional<ReceivedSetup> parse_setup(std::span<const std::byte> packet,
                                         Carrier carrier = Carrier::unreliable);

// Writes the list of paths behind the body. Returns its length, 0 if there are no paths.
size_t emit_paths(const PathList& paths, std::span<std::byte, SetupMessage::most_paths_size> out);

// Fills `frame` up to its ICRC. `paths` is what `emit_paths` wrote; the frame refers to it, so it
// must stay unchanged until the frame is settled. The packet, with its ICRC, has at least
// `padded_to` bytes.
void write_setup(TxFrame& frame, const Addresses& addresses, const SetupMessage& message,
                 size_t padded_to, Carrier carrier = Carrier::unreliable,
                 std::span<const std::byte> paths = {});

}  // namespace urma
