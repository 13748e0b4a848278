// SPDX-License-Identifier: Apache-2.0
// Peers that do not know reports of congestion: a version before them had the conversation below
// with itself, and the packets were recorded. Each end, with any control, must still say its part
// byte for byte when it is told the other one.

#include <array>
#include <string>

#include "congestion/controller.h"
#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/fuzz/tp_end.h"
#include "tests/golden/hex.h"

namespace urma::test {
namespace {

using namespace std::chrono_literals;
using fuzz::End;

struct Recorded {
  char from;              // L: the end that opened the channel, R: the other one
  std::string_view text;  // hexadecimal; 0*N stands for N zeros
};

constexpr Recorded conversation[] = {
    {'L',
     "0001 0*17 01 0*10 ffff7f000001 0*10 ffff7f0000020010000008 0*11 "
     "0101000a0000001b000000000000000a 0*9 "
     "642e1c0000000000b27a48000000010800040000000040003d090092f89756 0*968 fce7e337"},
    {'R',
     "0001 0*17 01 0*10 ffff7f000002 0*10 ffff7f0000010010000008 0*11 "
     "0301000a0000001b000000000000000b000000000000000a00bf733e00642e1c "
     "00afa782000000010800040000000040003d09002f1829af0000000000000000 f17ff985"},
    {'L', "0100642e1cbf733e00b27a4800b27a480000000000005eed73b1a570"},
    {'L', "8100642e1cbf733e00b27a4900b27a480000000000015eedabf748e1"},
    {'R', "0200bf733e642e1c00b27a4900000000ff9e32c5"},
    {'L', "0130642e1cbf733e00b27a4a00b27a490000000100005eed00000000aeffd88f"},
    {'L', "0130642e1cbf733e00b27a4b00b27a490000000100015eed00000000593f09ae"},
    {'L', "8130642e1cbf733e00b27a4c00b27a490000000100025eed000000000fd78d65"},
    {'R', "0500bf733e642e1c00b27a490000000000b27a4c0d0000000000000022c684ab"},
    {'L', "0130642e1cbf733e80b27a4a00b27a490000000100005eed0000000082bf29e4"},
    {'R', "0200bf733e642e1c00b27a4c000000008f11d20d"},
    {'R', "8100bf733e642e1c00afa78200afa7820000000000005eed422467ca"},
    {'L', "0200642e1cbf733e00afa782000000002dadc4fe"},
};

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> out;
  while (!text.empty()) {
    const std::string word(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.starts_with("0*")) {
      out.resize(out.size() + std::stoul(word.substr(2)));
    } else {
      const auto more = from_hex(word);
      out.insert(out.end(), more.begin(), more.end());
    }
  }
  return out;
}

transport::Settings recorded_end(char side, std::string_view control) {
  const uint8_t number = side == 'L' ? 0 : 1;
  const Eid eid = ipv4(127, 0, 0, static_cast<uint8_t>(1 + number));
  return {.self = {eid, ub_port},
          .eid = eid,
          .life = Incarnation(10u + number),
          .mtu = 1024,
          .buffer_bytes = 4'000'000,
          .controller = congestion::find_controller(control),
          .reports = {.bits = 0xff},
          .peers = 3,
          .packets = 2048,
          .slices = 2048};
}

// One end of the conversation; the other one is the recording.
class Replay {
 public:
  Replay(char side, std::string_view control)
      : side_(side),
        end_(recorded_end(side, control), side == 'L' ? 1 : 2, false),
        other_(recorded_end(side == 'L' ? 'R' : 'L', "aimd").self) {
    end_.other = &end_;
    pool_.lend(frames_);
  }

  // Returns the number of recorded packets that this end sent otherwise. Each fact that no byte
  // shows must be as before, too.
  int run() {
    if (side_ == 'L') end_.connect(other_, now_);
    turn('L', 1);  // OPEN
    turn('R', 1);  // ACCEPT
    offer('L', 2048);
    turn('L', 2);
    now_ += 1ms;
    turn('R', 1);  // TPACK
    offer('L', 3072);
    turn('L', 3, true);
    now_ += 1ms;
    turn('R', 1);  // TPSACK
    now_ += 5ms;
    if (side_ == 'L') end_.transport.handle_timers(now_);
    turn('L', 1);  // again
    now_ += 1ms;
    turn('R', 1);
    offer('R', 100);
    turn('R', 1);
    now_ += 1ms;
    turn('L', 1);
    CHECK(next_ == std::size(conversation));
    CHECK(end_.finished());
    return different_;
  }

 private:
  void offer(char side, uint32_t bytes) {
    if (side == side_) end_.offer(transport::Class::request, bytes);
  }
  // The next packets are of this end, or arrive at it; the first of them may be lost.
  void turn(char side, size_t count, bool first_is_lost = false) {
    const size_t sent = side == side_ ? end_.transport.fill(end_, frames_, now_) : count;
    REQUIRE(sent == count);
    for (size_t i = 0; i < count; ++i) {
      const Recorded& recorded = conversation[next_++];
      REQUIRE(recorded.from == side);
      const fuzz::Packet packet{bytes_of(recorded.text), other_, end_.self};
      if (side != side_) {
        const RxFrame frame = fuzz::received(packet);
        if (!first_is_lost || i > 0) end_.transport.receive({&frame, 1}, now_);
        continue;
      }
      const TxFrame& frame = *frames_[i];
      CHECK(frame.ecn == Ecn::not_ect);
      CHECK(frame.cci == 0);
      different_ += fuzz::gathered(frame, end_.self).bytes != packet.bytes;
    }
  }

  const char side_;
  End end_;
  const Endpoint other_;
  drivers::FramePool pool_{64};
  std::array<TxFrame*, 64> frames_{};
  Time now_{1s};
  size_t next_ = 0;
  int different_ = 0;
};

TEST_CASE("a peer without reports is answered byte for byte as before, whatever the control") {
  for (const congestion::ControllerKind& kind : congestion::controllers()) {
    INFO(kind.name);
    CHECK(Replay('R', kind.name).run() == 0);
  }
}

TEST_CASE(
    "a peer without reports is asked byte for byte as before, but for the offer in the OPEN") {
  CHECK(Replay('L', "aimd").run() == 0);
  for (const char* control : {"ldcp", "dcqcn", "caqm_w", "caqm_r"}) {
    INFO(control);
    CHECK(Replay('L', control).run() == 1);
  }
}

}  // namespace
}  // namespace urma::test
