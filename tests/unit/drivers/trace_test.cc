// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/trace.h"

#include <array>

#include "tests/catch.h"

namespace urma::drivers::sim {
namespace {

constexpr std::array<std::byte, 3> some_bytes{std::byte{1}, std::byte{2}, std::byte{3}};

struct Delivery {
  int64_t nanoseconds = 5;
  uint8_t network = 0;  // the first byte of the sender's address, which may be random
  uint8_t sender = 1;
  uint32_t length = 100;
  size_t bytes = 3;

  uint64_t hash() const {
    Endpoint from, to;
    from.address.bytes[0] = std::byte{network};
    from.address.bytes[15] = std::byte{sender};
    Trace trace;
    trace.add(Time(Duration(nanoseconds)), from, to, length, std::span(some_bytes).first(bytes));
    return trace.hash();
  }
};

TEST_CASE("a trace depends on when, between which hosts and what is delivered, and on the order") {
  const uint64_t hash = Delivery{}.hash();
  CHECK(hash == Delivery{}.hash());
  CHECK(hash == Delivery{.network = 9}.hash());
  CHECK(hash != Delivery{.nanoseconds = 6}.hash());
  CHECK(hash != Delivery{.sender = 2}.hash());
  CHECK(hash != Delivery{.length = 101}.hash());
  CHECK(hash != Delivery{.bytes = 2}.hash());

  Trace forth, back;
  forth.add_number(1);
  forth.add_number(2);
  back.add_number(2);
  back.add_number(1);
  CHECK(forth.hash() != back.hash());
}

}  // namespace
}  // namespace urma::drivers::sim
