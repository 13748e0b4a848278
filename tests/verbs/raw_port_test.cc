// SPDX-License-Identifier: Apache-2.0
// The bare datagrams that `urma_perf --limit` measures.

#include "drivers/verbs/raw_port.h"

#include "base/prng.h"
#include "tests/bytes.h"
#include "tests/catch.h"
#include "tests/unit/mentions.h"
#include "tests/verbs/soft_adapters.h"

namespace urma::test {
namespace {

using drivers::verbs::open_raw_port;
using drivers::verbs::RawDatagramPort;

// Two ports that are connected with each other.
struct TwoRawPorts {
  soft::OnlyAdapter adapter;
  std::unique_ptr<RawDatagramPort> a = open_raw_port("verbs:soft0").value();
  std::unique_ptr<RawDatagramPort> b = open_raw_port("verbs:soft0?gather=no").value();

  TwoRawPorts() {
    CHECK_FALSE(a->is_up());
    REQUIRE(a->connect(b->address()));
    REQUIRE(b->connect(a->address()));
    CHECK(a->is_up());
  }
};

TEST_CASE("bare datagrams carry all bytes in order, whatever their sizes") {
  TwoRawPorts ports;
  Prng prng(1);
  for (int round = 0; round < 200; ++round) {
    const auto data = bytes_like(1 + prng.below(200'000), static_cast<unsigned>(round));
    const size_t frame = 1 + prng.below(ports.a->frame_bytes());
    std::vector<std::byte> arrived;
    std::vector<std::byte> some(300'000);
    for (size_t sent = 0; arrived.size() < data.size();) {
      // No more than the buffers of the other end hold.
      const auto next = std::span(data).subspan(sent, std::min(data.size() - sent, 64 * frame));
      sent += ports.a->send(next, frame);
      const size_t got = ports.b->receive(some);
      arrived.insert(arrived.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(got));
    }
    REQUIRE(std::ranges::equal(arrived, data));
  }
  CHECK(ports.a->receive(std::span<std::byte>()) == 0);
}

TEST_CASE("a datagram without room is dropped, and later ones arrive") {
  TwoRawPorts ports;
  const auto large = bytes_like(1000, 1), small = bytes_like(100, 2);
  REQUIRE(ports.a->send(large, 1000) == 1000);
  REQUIRE(ports.a->send(small, 1000) == 100);
  std::vector<std::byte> room(500);
  size_t got = 0;
  while (got == 0) got = ports.b->receive(room);
  CHECK(got == 100);
  CHECK(std::ranges::equal(std::span(room).first(100), small));
}

TEST_CASE("a raw port refuses what does not name another one, and an adapter that does not exist") {
  const soft::OnlyAdapter adapter;
  const auto port = open_raw_port("verbs:soft0").value();
  for (const char* text :
       {"", "7", "7 0", "7 0 ", "7 70000 10.9.0.1", "x 0 10.9.0.1", "7 0 word"}) {
    const auto refused = port->connect(text);
    REQUIRE_FALSE(refused);
    CHECK(refused.status() == Status::invalid_argument);
    CHECK(mentions(refused.error().message, "Fix: "));
  }
  CHECK_FALSE(port->is_up());
  CHECK_FALSE(open_raw_port("verbs:soft7"));
  CHECK_FALSE(open_raw_port("verbs:soft0?colour=red"));
}

TEST_CASE("after its queue pair has failed a raw port takes everything, and receives nothing") {
  TwoRawPorts ports;
  CHECK(soft::fail_queue_pairs("soft0", soft::Failure::reported) == 2);
  const auto data = bytes_like(100'000, 1);
  std::vector<std::byte> room(1000);
  for (int i = 0; i < 100; ++i) {
    ports.a->send(data, 1000);
    CHECK(ports.b->receive(room) == 0);
  }
  CHECK(ports.a->send(data, 1000) == data.size());
}

TEST_CASE("raw ports leave no object of the adapter") {
  {
    const TwoRawPorts ports;
    CHECK(soft::objects() > 0);
  }
  CHECK(soft::objects() == 0);
}

}  // namespace
}  // namespace urma::test
