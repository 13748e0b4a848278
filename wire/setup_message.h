#pragma once

#include <optional>
#include <span>

#include "urma/core/retransmission.h"
#include "wire/frame.h"
#include "wire/path_list.h"
#include "wire/ta_chain.h"
#include "wire/tp_headers.h"

namespace urma::transport {

// How channels are made and ended (docs/protocol.md, OURS): a UTP Send to the well-known Jetty 0,
// UTPH | UPIH32 | EIDH256 | BTAH | MTETAH | OFSTETAH | body | padding | ICRC.
enum class SetupType : uint8_t {
  open = 1,   // make a channel
  retry = 2,  // prove that you hear me: send this cookie back
  accept = 3,
  refuse = 4,  // `reason` says why
  reset = 5,   // I know no such channel
  close = 6,   // `reason` says whether this life ends
  closed = 7,
  question = 8,  // is this path there? `attempt` is its number, `cookie` what nobody can guess
  answer = 9,    // both again, on the path on which they came
  paths = 10,    // its sender is reached at these places from now on
  noted = 11,    // I know: the cookie again
};

enum class SetupReason : uint8_t {
  none = 0,
  version = 1,       // refuse: I speak `version`
  restarted = 2,     // refuse: I am not the life you ask for
  no_resources = 3,  // refuse: ask again later
  leaving = 4,       // close: this life is over
  idle = 5,          // close: the channel has carried nothing for long; may it go?
};

inline constexpr uint8_t setup_version = 1;

// Features: what both ends name, both use.
inline constexpr uint32_t feature_filler = 1 << 0;
// Its sender receives as the peer asks below; who does not say so keeps what comes out of order and
// tells of it by TPSACK at once, which is what all zeros ask for.
inline constexpr uint32_t feature_retransmission = 1 << 1;

// Open, accept, paths: behind the body is where its sender can be reached over each of its paths.
inline constexpr uint32_t feature_paths = 1 << 2;

// Its sender understands `paths`.
inline constexpr uint32_t feature_new_paths = 1 << 4;

// Its sender keeps the order of queues that ask for a sequence context (UB 7.3).
inline constexpr uint32_t feature_sequences = 1 << 3;

// What the sender of such a message asks of who receives its packets, as bits of `features`.
uint32_t features_of(const Retransmission& mode);
// The other way round. What is not known here asks for nothing.
Retransmission asked_by(uint32_t features);
// Our mode, if the peer's features say that it follows; else the one that needs nothing of it.
Retransmission followed_by(Retransmission ours, uint32_t features);

// What a set-up message rides on: UTP where packets may be lost, CTP where they are not.
// UB 4.1.3
enum class Carrier : uint8_t { unreliable, compact };

struct SetupMessage {
  static constexpr size_t size = 64;
  // Behind it, if it names paths: their count, three bytes of the list's number, for each 16 bytes
  // of address and 2 of port, and padding to four bytes.
  static constexpr size_t paths_size(size_t count) { return (4 + 18 * count + 3) & ~size_t{3}; }
  static constexpr size_t most_paths_size = 148;
  // In front of the body: UTPH or CTPH, addresses, BTAH, MTETAH, OFSTETAH.
  static constexpr size_t head_size(Carrier carrier) {
    return (carrier == Carrier::unreliable ? Utph::size : Ctph::size) + Addresses::size +
           Btah::size + Mtetah::size + Ofstetah::size;
  }

  SetupType type = SetupType::open;
  uint8_t version = setup_version;
  SetupReason reason = SetupReason::none;
  uint8_t mtu_log2 = 0;
  uint32_t features = feature_filler;
  uint64_t from_life = 0;
  uint64_t to_life = 0;  // zero: whichever
  uint32_t from_tpn = 0;
  uint32_t to_tpn = 0;  // open: see known_as
  uint32_t first_psn = 0;
  uint32_t attempt = 0;  // of its sender; an answer repeats it
  uint16_t receive_window = 0;
  uint16_t tassn_window = 0;    // W
  uint16_t atomic_results = 0;  // R
  uint16_t reads = 0;
  uint32_t buffer_bytes = 0;
  uint32_t echoed_psn = 0;  // reset: of the packet that it answers; else see acquaintance
  uint64_t cookie = 0;
  PathList paths{};  // none without feature_paths

  // Open, accept: how its sender numbers what it knows of the receiver; another number each time
  // when it begins with nothing. Open: how the receiver does, if it has said so.
  uint32_t acquaintance() const { return echoed_psn; }
  uint32_t known_as() const { return to_tpn; }

  static std::optional<SetupMessage> parse(HeaderView<size> in);  // nothing: an unknown type
  void emit(HeaderBytes<size> out) const;
  friend bool operator==(const SetupMessage&, const SetupMessage&) = default;
};

// A whole set-up packet. `packet` has been stripped of its ICRC. Nothing: not one of these.
struct ReceivedSetup {
  Addresses addresses;
  SetupMessage message;
};
std::optional<ReceivedSetup> parse_setup(std::span<const std::byte> packet,
                                         Carrier carrier = Carrier::unreliable);

// Writes what stands behind the body. Returns its length, 0 if there are no paths.
size_t emit_paths(const PathList& paths, std::span<std::byte, SetupMessage::most_paths_size> out);

// Fills `frame` up to its ICRC. `paths`: as `emit_paths` wrote it, where it stays until the frame
// is settled. `padded_to`: bytes of the whole packet with its ICRC, at least.
void write_setup(TxFrame& frame, const Addresses& addresses, const SetupMessage& message,
                 size_t padded_to, Carrier carrier = Carrier::unreliable,
                 std::span<const std::byte> paths = {});

}  // namespace urma::transport
