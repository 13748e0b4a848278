// SPDX-License-Identifier: Apache-2.0
#include "transport/utp.h"

#include <deque>
#include <vector>

#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/unit/transport/parts.h"

namespace urma::test {
namespace {

using transport::Utp;
using Bytes = std::vector<std::byte>;

// A Utp, and a driver that keeps frames until they are settled.
struct FilledDatagrams {
  static constexpr uint32_t capacity = 64;  // of a Utp

  transport::Counters counters;
  Utp utp;
  drivers::FramePool frames{128};
  uint64_t left = 0;

  explicit FilledDatagrams(Carrier carrier = Carrier::unreliable, uint32_t mtu = 1024)
      : utp(mtu, carrier, counters) {}

  bool write(const Bytes& body, uint8_t to = 2) {
    utp.aim({.to = host(to),
             .path = to,
             .addresses = {.source = host(1).address, .destination = host(to).address}});
    std::byte* const memory = utp.begin(static_cast<uint32_t>(body.size()));
    if (memory == nullptr) return false;
    std::ranges::copy(body, memory);
    utp.end();
    return true;
  }
  TxFrame* fill() {
    TxFrame* frame = nullptr;
    REQUIRE(frames.lend({&frame, 1}) == 1);
    utp.fill(*frame);
    utp.left(++left);
    return frame;
  }
  static Bytes flat(const TxFrame& frame) {
    Bytes out(frame.bytes());
    drivers::flatten(frame, out.data());
    return out;
  }
};

Bytes body_of(size_t bytes, uint8_t first) {
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(first + i);
  return out;
}

TEST_CASE("utp: packets leave in order, each to the peer that it was aimed at") {
  FilledDatagrams net;
  CHECK_FALSE(net.utp.waits());
  for (uint8_t to = 2; to < 5; ++to) REQUIRE(net.write(body_of(to, to), to));
  for (uint8_t to = 2; to < 5; ++to) {
    REQUIRE(net.utp.waits());
    TxFrame* const frame = net.fill();
    CHECK(frame->to == host(to));
    CHECK(frame->path == to);
    CHECK(frame->ecn == Ecn::not_ect);
    const Bytes packet = FilledDatagrams::flat(*frame);
    const auto addresses =
        Addresses::parse(std::span(packet).subspan<Utph::size, Addresses::size>());
    CHECK(addresses.destination == host(to).address);
    const Bytes body = body_of(to, to);
    CHECK(std::ranges::equal(std::span(packet).subspan(Utph::size + Addresses::size, body.size()),
                             body));
    net.frames.take_back(frame);
  }
  CHECK_FALSE(net.utp.waits());
  CHECK(net.counters.datagrams_sent == 3);
}

TEST_CASE("utp: padding makes the packet a multiple of four bytes, and the header names it") {
  for (size_t bytes = 1; bytes <= 8; ++bytes) {
    FilledDatagrams net;
    REQUIRE(net.write(body_of(bytes, 1)));
    TxFrame* const frame = net.fill();
    const Bytes packet = FilledDatagrams::flat(*frame);
    CHECK(packet.size() % 4 == 0);
    const auto header = Utph::parse(std::span(packet).first<Utph::size>());
    REQUIRE(header);
    CHECK(packet.size() - header->padding == Utph::size + Addresses::size + bytes);
    for (size_t i = packet.size() - header->padding; i < packet.size(); ++i) {
      CHECK(packet[i] == std::byte{0});
    }
    net.frames.take_back(frame);
  }
}

TEST_CASE("utp: over a medium that loses nothing the header is that of CTP, without padding") {
  FilledDatagrams net(Carrier::compact);
  REQUIRE(net.write(body_of(3, 1)));
  TxFrame* const frame = net.fill();
  const Bytes packet = FilledDatagrams::flat(*frame);
  CHECK(packet.size() == Ctph::size + Addresses::size + 3);
  const auto header = Ctph::parse(std::span(packet).first<Ctph::size>());
  REQUIRE(header);
  CHECK(header->next == NextHeader::full_addresses);
  net.frames.take_back(frame);
}

TEST_CASE("utp: memory is used again only when the frame that reads it has settled") {
  FilledDatagrams net;
  for (uint32_t i = 0; i < FilledDatagrams::capacity; ++i) REQUIRE(net.write(body_of(4, 0)));
  CHECK_FALSE(net.write(body_of(4, 0)));
  std::deque<TxFrame*> sent;
  for (uint32_t i = 0; i < FilledDatagrams::capacity; ++i) sent.push_back(net.fill());
  CHECK_FALSE(net.write(body_of(4, 0)));
  const Bytes oldest = FilledDatagrams::flat(*sent.front());
  net.utp.settled(0);
  CHECK_FALSE(net.write(body_of(4, 9)));
  CHECK(FilledDatagrams::flat(*sent.front()) == oldest);
  net.utp.settled(2);
  CHECK(net.write(body_of(4, 9)));
  CHECK(net.write(body_of(4, 9)));
  CHECK_FALSE(net.write(body_of(4, 9)));
  net.utp.settled(net.left);
  for (uint32_t i = 2; i < FilledDatagrams::capacity; ++i) REQUIRE(net.write(body_of(4, 9)));
  CHECK_FALSE(net.write(body_of(4, 9)));
  for (TxFrame* const frame : sent) net.frames.take_back(frame);
}

TEST_CASE(
    "utp: a packet that is too large is not begun, and one of the largest size leaves whole") {
  FilledDatagrams net(Carrier::unreliable, 512);
  const uint32_t most = net.utp.facts().packet_bytes + static_cast<uint32_t>(TaRequest::max_size);
  CHECK_FALSE(net.write(Bytes(most + 1)));
  const Bytes body = body_of(most, 7);
  REQUIRE(net.write(body));
  TxFrame* const frame = net.fill();
  const Bytes packet = FilledDatagrams::flat(*frame);
  CHECK(std::ranges::equal(std::span(packet).subspan(Utph::size + Addresses::size, most), body));
  net.frames.take_back(frame);
}

}  // namespace
}  // namespace urma::test
