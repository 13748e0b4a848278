// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/random_headers.h"
#include "wire/ta_chain.h"

namespace urma::test {
namespace {

// The bytes that UB 5.3 puts behind the BTAH or ATAH of each opcode, without TVETAH.
const std::map<TaOpcode, size_t> chain_bytes = {
    {TaOpcode::send, 4 + 4},                   // MTETAH OFSTETAH
    {TaOpcode::send_immediate, 4 + 4 + 16},    // MTETAH OFSTETAH IMMETAH
    {TaOpcode::write, 16},                     // MAETAH
    {TaOpcode::write_immediate, 4 + 16 + 16},  // MTETAH MAETAH IMMETAH
    {TaOpcode::write_notify, 16 + 24},         // MAETAH NTFETAH
    {TaOpcode::read, 16},                      // MAETAH
    {TaOpcode::answer, 0},
    {TaOpcode::read_response, 4},  // OFSTETAH
    {TaOpcode::compare_swap, 16},  // MAETAH
    {TaOpcode::swap, 16},
    {TaOpcode::atomic_store, 4 + 16},  // UDETAH MAETAH
    {TaOpcode::atomic_load, 4 + 16},
    {TaOpcode::fetch_add, 16},
    {TaOpcode::fetch_sub, 16},
    {TaOpcode::fetch_and, 16},
    {TaOpcode::fetch_or, 16},
    {TaOpcode::fetch_xor, 16},
    {TaOpcode::atomic_response, 0},
};

TaRequest random_request(TaOpcode opcode, Prng& prng) {
  TaRequest request{.base = random_header<Btah>(prng),
                    .update = random_header<Udetah>(prng),
                    .target = random_header<Mtetah>(prng),
                    .memory = random_header<Maetah>(prng),
                    .offset = random_header<Ofstetah>(prng),
                    .notify = random_header<Ntfetah>(prng),
                    .immediate = random_header<Immetah>(prng),
                    .token = random_header<Tvetah>(prng)};
  request.base.opcode = static_cast<uint8_t>(opcode);
  request.base.user_data = false;
  return request;
}

std::vector<std::byte> emitted(TaRequest& request, size_t data = 0) {
  std::vector<std::byte> wire(TaRequest::max_size);
  wire.resize(request.emit(wire));
  for (size_t i = 0; i < data; ++i) wire.push_back(static_cast<std::byte>(i));
  return wire;
}

template <class Function>
void for_all_requests(Function&& function) {
  Prng prng(1);
  for (const OpcodeInfo& info : opcodes) {
    if (!info.request) continue;
    INFO(info.name);
    for (int round = 0; round < 50; ++round) {
      TaRequest request = random_request(info.opcode, prng);
      function(info, request);
    }
  }
}

TEST_CASE("reading only the headers of a message agrees with reading its whole chain") {
  for_all_requests([](const OpcodeInfo& info, TaRequest& request) {
    const auto wire = emitted(request, 5);
    const bool message = info.to_jetty && info.offset && request.base.token_present;
    const size_t chain = Btah::size + test::chain_bytes.at(info.opcode) + Tvetah::size;
    for (size_t cut = 0; cut <= wire.size(); ++cut) {
      const auto packet = std::span<const std::byte>(wire).first(cut);
      MessageHeaders headers;
      REQUIRE(headers.assign(packet) == (message && cut >= chain));
      if (!message || cut < chain) continue;
      const auto parsed = parse_request(packet);
      REQUIRE(parsed);
      CHECK(headers.bytes == cut - parsed->data.size());
      CHECK(headers.with_immediate == info.immediate);
      CHECK(headers.base == parsed->headers.base);
      CHECK(headers.target == parsed->headers.target);
      CHECK(headers.offset == parsed->headers.offset);
      CHECK(headers.immediate == parsed->headers.immediate);
      CHECK(headers.token == parsed->headers.token);
    }
  });
}

TEST_CASE("the chain of a request has the specified length and can be read back with its data") {
  for_all_requests([](const OpcodeInfo& info, TaRequest& request) {
    const size_t data = info.data ? 33 : 0;
    const auto wire = emitted(request, data);
    const size_t headers = 8 + chain_bytes.at(info.opcode) + (request.base.token_present ? 4 : 0);
    REQUIRE(wire.size() == headers + data);
    const auto parsed = parse_request(wire);
    REQUIRE(parsed);
    REQUIRE(parsed->info == &info);
    REQUIRE(parsed->headers.base == request.base);
    REQUIRE(parsed->headers.update == (info.user_data ? request.update : Udetah{}));
    REQUIRE(parsed->headers.target == (info.to_jetty ? request.target : Mtetah{}));
    REQUIRE(parsed->headers.memory == (info.to_memory ? request.memory : Maetah{}));
    REQUIRE(parsed->headers.offset == (info.offset ? request.offset : Ofstetah{}));
    REQUIRE(parsed->headers.notify == (info.notify ? request.notify : Ntfetah{}));
    REQUIRE(parsed->headers.immediate == (info.immediate ? request.immediate : Immetah{}));
    REQUIRE(parsed->headers.token == (request.base.token_present ? request.token : Tvetah{}));
    REQUIRE(parsed->data.data() == wire.data() + headers);
    REQUIRE(parsed->data.size() == data);
  });
}

// U for UDETAH, T for MTETAH, M for MAETAH, O for OFSTETAH, N for NTFETAH, I for IMMETAH.
const std::map<TaOpcode, std::string_view> chain_order = {
    {TaOpcode::send, "TO"},         {TaOpcode::send_immediate, "TOI"},
    {TaOpcode::write, "M"},         {TaOpcode::write_immediate, "TMI"},
    {TaOpcode::write_notify, "MN"}, {TaOpcode::read, "M"},
    {TaOpcode::compare_swap, "M"},  {TaOpcode::swap, "M"},
    {TaOpcode::atomic_store, "UM"}, {TaOpcode::atomic_load, "UM"},
    {TaOpcode::fetch_add, "M"},     {TaOpcode::fetch_sub, "M"},
    {TaOpcode::fetch_and, "M"},     {TaOpcode::fetch_or, "M"},
    {TaOpcode::fetch_xor, "M"}};

template <class Header>
void append(std::vector<std::byte>& wire, const Header& header) {
  std::array<std::byte, Header::size> bytes;
  header.emit(bytes);
  wire.insert(wire.end(), bytes.begin(), bytes.end());
}

TEST_CASE("the headers of a request are in the specified order, with the token last") {
  for_all_requests([](const OpcodeInfo& info, TaRequest& request) {
    const auto wire = emitted(request);
    std::vector<std::byte> expected;
    append(expected, request.base);
    for (const char header : chain_order.at(info.opcode)) {
      if (header == 'U') append(expected, request.update);
      if (header == 'T') append(expected, request.target);
      if (header == 'M') append(expected, request.memory);
      if (header == 'O') append(expected, request.offset);
      if (header == 'N') append(expected, request.notify);
      if (header == 'I') append(expected, request.immediate);
    }
    if (request.base.token_present) append(expected, request.token);
    REQUIRE(wire == expected);
    REQUIRE(request.base.target_present == info.to_jetty);
  });
}

TEST_CASE("the room reserved for headers is the size of the longest chain") {
  size_t longest = 0;
  for_all_requests([&](const OpcodeInfo&, TaRequest& request) {
    longest = std::max(longest, emitted(request).size());
  });
  CHECK(longest == TaRequest::max_size);
  CHECK(TaRequest::max_size == 52);  // docs/protocol.md: OPEN is padded to MTU + 72
}

TEST_CASE("a request cut off anywhere inside its headers is refused") {
  for_all_requests([](const OpcodeInfo&, TaRequest& request) {
    const auto wire = emitted(request);
    for (size_t size = 0; size < wire.size(); ++size) {
      INFO("cut to " << size);
      REQUIRE_FALSE(parse_request(std::span(wire).first(size)));
    }
    REQUIRE(parse_request(wire)->data.empty());
  });
}

TEST_CASE("a request of an opcode without data is refused if data follows") {
  Prng prng(2);
  TaRequest read = random_request(TaOpcode::read, prng);
  CHECK(parse_request(emitted(read)));
  CHECK_FALSE(parse_request(emitted(read, 1)));
}

TEST_CASE("a packet is malformed if its target header is missing or is not allowed") {
  for_all_requests([](const OpcodeInfo&, TaRequest& request) {
    auto wire = emitted(request);
    wire[4] ^= std::byte{0x08};  // MT_EN
    REQUIRE_FALSE(parse_request(wire));
  });
}

TEST_CASE("the BTAH of an unknown request can be read, so that the request can be refused") {
  Prng prng(3);
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    Btah base = random_header<Btah>(prng);
    base.opcode = static_cast<uint8_t>(opcode);
    const OpcodeInfo* info = find_opcode(base.opcode);
    if (info != nullptr && !info->request) continue;
    // A header that the opcode does not allow, or a missing one, is treated like an unknown opcode.
    if (info != nullptr) base.user_data = !info->user_data;
    std::vector<std::byte> wire(Btah::size);
    base.emit(std::span(wire).first<Btah::size>());
    const auto parsed = parse_request(wire);
    INFO("opcode " << opcode);
    REQUIRE(parsed);
    REQUIRE(parsed->info == nullptr);
    REQUIRE(parsed->headers.base == base);
    wire.resize(200);
    REQUIRE(parse_request(wire)->info == nullptr);
    REQUIRE_FALSE(parse_request(std::span(wire).first(Btah::size - 1)));
  }
}

TEST_CASE("a packet that begins like a response is not a request") {
  for (const TaOpcode opcode :
       {TaOpcode::answer, TaOpcode::read_response, TaOpcode::atomic_response}) {
    std::vector<std::byte> wire(8 + chain_bytes.at(opcode));
    Btah{.opcode = static_cast<uint8_t>(opcode)}.emit(std::span(wire).first<Btah::size>());
    CHECK_FALSE(parse_request(wire));
  }
}

TEST_CASE(
    "a response can be read back with its data; cut off, or with forbidden data, it is refused") {
  Prng prng(4);
  for (const OpcodeInfo& info : opcodes) {
    INFO(info.name);
    TaResponse response{.base = random_header<Atah>(prng), .offset = random_header<Ofstetah>(prng)};
    response.base.opcode = static_cast<uint8_t>(info.opcode);
    std::vector<std::byte> wire(TaResponse::max_size);
    wire.resize(response.emit(wire));
    if (info.request) {
      CHECK_FALSE(parse_response(wire));
      continue;
    }
    REQUIRE(wire.size() == 8 + chain_bytes.at(info.opcode));
    for (size_t size = 0; size < wire.size(); ++size) {
      REQUIRE_FALSE(parse_response(std::span(wire).first(size)));
    }
    REQUIRE(parse_response(wire)->info == &info);
    REQUIRE(parse_response(wire)->headers.base == response.base);
    if (info.offset) REQUIRE(parse_response(wire)->headers.offset == response.offset);
    wire.push_back(std::byte{5});
    REQUIRE(parse_response(wire).has_value() == info.data);
    if (info.data) REQUIRE(parse_response(wire)->data.size() == 1);
    CHECK_FALSE(parse_request(wire));
  }
}

}  // namespace
}  // namespace urma::test
