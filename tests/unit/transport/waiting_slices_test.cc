// SPDX-License-Identifier: Apache-2.0
#include "transport/waiting_slices.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"

namespace urma::test {
namespace {

using transport::Class;
using transport::WaitingSlices;

constexpr uint32_t slices_packet_bytes = 1024;
constexpr uint32_t mib = 1 << 20;

// The slices of a channel that always has room: all leave in one burst.
class SlicesInLine {
 public:
  void push(uint32_t slot, Class traffic, uint32_t bytes = 100) {
    REQUIRE(slices_.push(pool_, traffic, {.slice = {slot, 1}, .bytes = bytes}));
  }
  // Returns the number of the slice that leaves next.
  uint32_t take() {
    const auto from = slices_.next_class(pool_, requests_, slices_packet_bytes);
    REQUIRE(from);
    const transport::OfferedSlice next = slices_.next_of(pool_, *from);
    if (*from != Class::answer) {
      requests_ += transport::packets_of(next.bytes, slices_packet_bytes);
    }
    slices_.take(pool_, *from);
    return next.slice.slot;
  }
  std::vector<uint32_t> take_all() {
    std::vector<uint32_t> out;
    while (!slices_.empty()) out.push_back(take());
    CHECK_FALSE(slices_.next_class(pool_, 0, slices_packet_bytes));
    return out;
  }

 private:
  WaitingSlices::Pool pool_{64};
  WaitingSlices slices_;
  uint32_t requests_ = 0;  // packets, in this burst
};

using Slots = std::vector<uint32_t>;

TEST_CASE("answers leave first, then urgent slices, and each kind in the order of its offers") {
  SlicesInLine waiting;
  waiting.push(0, Class::request, 65536);
  waiting.push(1, Class::urgent, 65536);
  waiting.push(2, Class::answer);
  waiting.push(3, Class::request);
  waiting.push(4, Class::urgent);
  waiting.push(5, Class::answer);
  CHECK(waiting.take_all() == Slots{2, 5, 1, 4, 0, 3});
}

TEST_CASE("eight packets of requests may leave before answers") {
  for (const Class request : {Class::urgent, Class::request}) {
    SlicesInLine waiting;
    waiting.push(0, request, 5 * slices_packet_bytes);
    waiting.push(1, request, 3 * slices_packet_bytes);
    waiting.push(2, request);
    waiting.push(3, Class::answer);
    CHECK(waiting.take_all() == Slots{0, 1, 3, 2});
  }
}

TEST_CASE("one usual slice leaves after each MiB of urgent ones, or sooner if several wait") {
  for (const uint32_t bytes : {100u, 2048u, 4096u, 65536u}) {
    for (const uint32_t usual : {1u, 2u, 4u, 16u, 50u}) {
      CAPTURE(bytes, usual);
      SlicesInLine waiting;
      for (uint32_t i = 0; i < usual; ++i) waiting.push(i, Class::request);
      const uint32_t in_row = mib / std::min(usual, 16u) / std::max(bytes, 2048u);
      Slots usual_at;
      for (uint32_t i = 0; i < 2 * in_row + 2; ++i) {
        waiting.push(100 + i, Class::urgent, bytes);
        if (waiting.take() >= 100) continue;
        usual_at.push_back(i);
        waiting.push(0, Class::request);
      }
      CHECK(usual_at == Slots{in_row, 2 * in_row + 1});
    }
  }
}

TEST_CASE("urgent slices are counted while a usual one waits, whatever is answered meanwhile") {
  SlicesInLine waiting;
  for (uint32_t i = 0; i < 40; ++i) {
    waiting.push(i, Class::urgent, 65536);
    CHECK(waiting.take() == i);
  }
  waiting.push(0, Class::request);
  waiting.push(1, Class::urgent, mib);
  waiting.push(2, Class::urgent);
  CHECK(waiting.take() == 1);
  waiting.push(3, Class::answer);
  CHECK(waiting.take_all() == Slots{3, 0, 2});
}

}  // namespace
}  // namespace urma::test
