// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "congestion/signal.h"
#include "wire/layout.h"

namespace urma {

// CCI, 16 bits of an NTH (wire/nth.h): a sender asks here, and the switches on the way answer (UB
// 5, 6.6). Its first three bits are its mode; each mode has a form of its own below, whose `parse`
// returns nothing if the CCI has another mode.
enum class CciMode : uint8_t { caqm = 0, fecn_rtt = 2, fecn = 4 };

// How congested the way is. The numbers are those of the ECN field of an IP header, which has it
// beyond the UB network (INFERRED): Not-ECT, ECT(1), ECT(0), CE.
enum class Fecn : uint8_t { unmarkable = 0, minor = 1, none = 2, severe = 3 };

// C-AQM: the sender asks for `hint` with C = 0 and I = 1. A switch may set C, clear I and change
// the Hint.
struct CaqmCci {
  static constexpr size_t size = 2;
  static constexpr CciMode mode = CciMode::caqm;

  bool last_hop = false;  // Loc: the last switch set C, at its port to the receiver
  // S (OURS, docs/protocol.md): a switch that takes part in C-AQM forwarded the packet. It is the
  // reserved bit, and means something only to ends that have agreed on it.
  bool switched = false;
  bool enabled = false;    // switches may edit the fields below
  bool congested = false;  // C
  bool increase = false;   // I
  // In units of 32 bytes (INFERRED), or a rate code if that was agreed (OURS, docs/protocol.md).
  uint8_t hint = 0;

  using Layout = HeaderLayout<size, Required<0, 3, static_cast<uint64_t>(mode)>,
                              Member<&CaqmCci::last_hop, 3, 1>, Member<&CaqmCci::switched, 4, 1>,
                              Member<&CaqmCci::enabled, 5, 1>, Member<&CaqmCci::congested, 6, 1>,
                              Member<&CaqmCci::increase, 7, 1>, Member<&CaqmCci::hint, 8, 8>>;

  static std::optional<CaqmCci> parse(HeaderView<size> in) { return parse_header<CaqmCci>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const CaqmCci&, const CaqmCci&) = default;
};

// FECN and a timestamp of 10 bits, whose unit is not known to us.
struct FecnRttCci {
  static constexpr size_t size = 2;
  static constexpr CciMode mode = CciMode::fecn_rtt;

  bool last_hop = false;  // Loc
  uint16_t timestamp = 0;
  Fecn fecn = Fecn::unmarkable;

  using Layout =
      HeaderLayout<size, Required<0, 3, static_cast<uint64_t>(mode)>,
                   Member<&FecnRttCci::last_hop, 3, 1>, Member<&FecnRttCci::timestamp, 4, 10>,
                   Member<&FecnRttCci::fecn, 14, 2>>;

  static std::optional<FecnRttCci> parse(HeaderView<size> in) {
    return parse_header<FecnRttCci>(in);
  }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const FecnRttCci&, const FecnRttCci&) = default;
};

// FECN alone.
struct FecnCci {
  static constexpr size_t size = 2;
  static constexpr CciMode mode = CciMode::fecn;

  bool last_hop = false;  // Loc
  Fecn fecn = Fecn::unmarkable;

  using Layout = HeaderLayout<size, Required<0, 3, static_cast<uint64_t>(mode)>,
                              Member<&FecnCci::last_hop, 3, 1>, Member<&FecnCci::fecn, 14, 2>>;

  static std::optional<FecnCci> parse(HeaderView<size> in) { return parse_header<FecnCci>(in); }
  void emit(HeaderBytes<size> out) const { Layout::write(*this, out); }
  friend bool operator==(const FecnCci&, const FecnCci&) = default;
};

// The number that an NTH has for this CCI.
template <class Form>
uint16_t cci_of(const Form& form) {
  std::array<std::byte, Form::size> bytes;
  form.emit(bytes);
  return static_cast<uint16_t>(load_be<Form::size>(bytes.data()));
}
// The inverse of cci_of. Returns nothing if the CCI has another mode.
template <class Form>
std::optional<Form> parse_cci(uint16_t cci) {
  std::array<std::byte, Form::size> bytes;
  store_be<Form::size>(bytes.data(), cci);
  return Form::parse(bytes);
}

// A CCI as controllers and switches have it, without the rules of its layout. UBQ, which has no
// bits in a CCI, is one of the fields of a Signal.

// Returns the CCI with these fields.
inline uint16_t cci_with(const congestion::Signal& signal) {
  return cci_of(CaqmCci{.last_hop = signal.last_hop,
                        .switched = signal.switched,
                        .enabled = true,
                        .congested = signal.congested,
                        .increase = signal.increase,
                        .hint = signal.hint});
}
// Returns nothing if no switch may edit the CCI.
inline std::optional<congestion::Signal> signal_of(uint16_t cci, uint8_t switch_queue) {
  const auto caqm = parse_cci<CaqmCci>(cci);
  if (!caqm || !caqm->enabled) return std::nullopt;
  return congestion::Signal{.congested = caqm->congested,
                            .increase = caqm->increase,
                            .last_hop = caqm->last_hop,
                            .switched = caqm->switched,
                            .hint = caqm->hint,
                            .switch_queue = switch_queue};
}

}  // namespace urma
