// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/wire_vectors.h"

#include <algorithm>
#include <set>

#include "base/crc32.h"
#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/golden/field_text.h"
#include "wire/icrc.h"

namespace urma::test {
namespace {

const std::vector<WireVector>& vectors() {
  static const auto all = read_wire_vectors(URMA_WIRE_VECTORS);
  return all;
}

template <class Header>
std::optional<Header> parsed(std::span<const std::byte> wire) {
  if constexpr (std::is_same_v<Header, Saetph>) {
    return Header::parse(wire);
  } else {
    REQUIRE(wire.size() == Header::size);
    return Header::parse(HeaderView<Header::size>(wire.data(), Header::size));
  }
}

template <class Header>
std::vector<std::byte> emitted(const Header& header) {
  std::vector<std::byte> wire(256, std::byte{0xee});
  if constexpr (std::is_same_v<Header, Saetph>) {
    wire.resize(header.emit(wire));
  } else {
    header.emit(HeaderBytes<Header::size>(wire.data(), Header::size));
    wire.resize(Header::size);
  }
  return wire;
}

// Returns a header with all fields zero, whatever the library's defaults are.
template <class Header>
Header nothing_said() {
  Header header{};
  visit_fields(header, [](const char*, auto& value) { value = {}; });
  return header;
}

template <class Header>
void check(const WireVector& vector) {
  const auto wire = from_hex(vector.hex);
  const std::optional<Header> found = parsed<Header>(wire);
  REQUIRE(found.has_value() == !vector.reject);
  if (vector.reject) return;
  auto expected = nothing_said<Header>();
  FieldReader reader(vector.fields);
  visit_fields(expected, reader);
  for (const auto& [name, value] : reader.unread())
    FAIL(name << "is not a field of" << vector.header);
  CHECK(fields_text(*found) == fields_text(expected));
  CHECK(*found == expected);
  if (!vector.ignored) CHECK(to_hex(emitted(expected)) == to_hex(wire));
  if (vector.ignored) CHECK(to_hex(emitted(expected)) != to_hex(wire));
}

using Check = void (*)(const WireVector&);
const std::map<std::string, Check> checks = {
    {"rtph", check<Rtph>},
    {"utph", check<Utph>},
    {"ctph", check<Ctph>},
    {"addresses", check<Addresses>},
    {"saetph", check<Saetph>},
    {"btah", check<Btah>},
    {"atah", check<Atah>},
    {"maetah", check<Maetah>},
    {"mtetah", check<Mtetah>},
    {"tvetah", check<Tvetah>},
    {"ofstetah", check<Ofstetah>},
    {"immetah", check<Immetah>},
    {"ntfetah", check<Ntfetah>},
    {"udetah", check<Udetah>},
    {"setup", check<SetupMessage>},
    {"cetph_ldcp", check<LdcpCetph>},
    {"cetph_caqm", check<CaqmCetph>},
    {"cetph_rate", check<RateCetph>},
    {"cetph_cnp", check<CnpCetph>},
    {"cci_caqm", check<CaqmCci>},
    {"cci_fecn_rtt", check<FecnRttCci>},
    {"cci_fecn", check<FecnCci>},
    {"nth_cna16", check<Cna16Nth>},
    {"nth_cna24", check<Cna24Nth>},
    {"nth_ip", check<IpNth>},
    {"link_word", check<LinkWord>},
    {"link_control", check<LinkControl>},
};

// UB 4.2.1, UB 4.2.5
TEST_CASE(
    "the golden bytes are read as the golden fields, and the fields are written as the bytes") {
  std::set<std::string> seen;
  for (const WireVector& vector : vectors()) {
    if (vector.header == "icrc") continue;
    INFO("line " << vector.line << " [" << vector.header << "] " << vector.name);
    const auto at = checks.find(vector.header);
    REQUIRE(at != checks.end());
    at->second(vector);
    if (!vector.reject && !vector.ignored) seen.insert(vector.header);
  }
  CHECK(seen.size() == checks.size());
}

TEST_CASE("the golden ICRCs cover the golden headers, and the library sends and accepts them") {
  int four = 0, six = 0, switched = 0;
  for (const WireVector& vector : vectors()) {
    if (vector.header != "icrc") continue;
    INFO("line " << vector.line << " " << vector.name);
    Endpoint from, to;
    FieldReader reader(vector.fields);
    reader("source", from.address);
    reader("source_port", from.port);
    reader("destination", to.address);
    reader("destination_port", to.port);
    const auto canonical = from_hex(vector.fields.at("canonical"));
    auto packet = from_hex(vector.fields.at("body"));
    const auto icrc = from_hex(vector.fields.at("icrc"));

    IcrcPrefix prefix;
    uint32_t crc = crc32_update(crc32_start, canonical.data(), canonical.size());
    CHECK(prefix(from, to, packet.size() + icrc.size()) == crc);
    crc = crc32_finish(crc32_update(crc, packet.data(), packet.size()));
    for (size_t i = 0; i < 4; ++i) CHECK(icrc[i] == static_cast<std::byte>(crc >> 8 * i));

    drivers::FramePool pool(1);
    TxFrame* frame = nullptr;
    REQUIRE(pool.lend({&frame, 1}) == 1);
    std::copy(packet.begin(), packet.end(), frame->head);
    frame->head_bytes = static_cast<uint8_t>(packet.size());
    frame->to = to;
    seal(*frame, from, prefix);
    CHECK(to_hex(std::span(frame->tail).first(frame->tail_bytes)) == to_hex(icrc));

    packet.insert(packet.end(), icrc.begin(), icrc.end());
    CHECK(verify(packet, from, to, prefix));
    ++(to.is_ipv4() ? four : is_switched(to.address) ? switched : six);
  }
  CHECK(four >= 2);
  CHECK(six >= 2);
  CHECK(switched >= 2);
}

}  // namespace
}  // namespace urma::test
