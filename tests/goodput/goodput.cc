// SPDX-License-Identifier: Apache-2.0
// Measures the share of a line that each mode of retransmission uses, for bench/retransmission:
// reads rows from standard input, each a list of KEY=VALUE, and prints a line of JSON for each.
//
//   mode=sel-fast keeps=yes window=98 round_trip=49 rto=245 loss=0.01 jitter=0 packets=100000
//   seed=1
//
// There are two Transports, one of which always has more to send. The line carries one packet at a
// time, and takes the next packet from the sender when it is idle, so no packet queues. A packet
// that is not lost arrives half a round trip after it has left, or up to `jitter` later. Each
// packet is acknowledged immediately, and acknowledgements are never lost. All times are in packet
// times; an `rto` of 0 means that the time-out is measured.

#include <charconv>
#include <cstdio>
#include <iostream>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/prng.h"
#include "tests/fuzz/packet.h"
#include "transport/transport.h"

namespace urma::test {
namespace {

constexpr Duration packet_time = std::chrono::microseconds(10);
constexpr uint32_t mtu = 4096;
constexpr uint32_t slice_bytes = 64 * 1024;
constexpr uint64_t most_slots_per_packet = 2000;

struct Row {
  Retransmission mode = sel_rack;
  double round_trip = 49;
  double loss = 0;
  double jitter = 0;
  uint64_t packets = 100'000;
  uint64_t seed = 1;
};

Duration slots(double count) {
  return Duration(static_cast<int64_t>(count * static_cast<double>(packet_time.count())));
}

Row read_row(const std::string& text) {
  Row row;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "mode") {
      const NamedRetransmission* named = find_retransmission(value);
      if (named == nullptr) throw std::runtime_error("no mode: " + word);
      const Retransmission before = row.mode;
      row.mode = named->mode;
      row.mode.window_packets = before.window_packets;
    } else if (key == "keeps") {
      row.mode.keeps_out_of_order = value == "yes";
    } else if (key == "window") {
      row.mode.window_packets = static_cast<uint32_t>(std::stoul(value));
    } else if (key == "rto") {
      row.mode.rto = value == "0" ? Retransmission::Rto::measured : Retransmission::Rto::doubled;
      row.mode.rto_base = slots(std::stod(value));
    } else if (key == "round_trip") {
      row.round_trip = std::stod(value);
    } else if (key == "loss") {
      row.loss = std::stod(value);
    } else if (key == "jitter") {
      row.jitter = std::stod(value);
    } else if (key == "packets") {
      row.packets = std::stoull(value);
    } else if (key == "seed") {
      row.seed = std::stoull(value);
    } else {
      throw std::runtime_error("no such key: " + word);
    }
  }
  row.mode.ack_packets = 1;
  return row;
}

// One end, and the layer above it, which offers slices without end and counts arrivals.
class End final : public transport::PacketSource, public transport::PacketSink {
 public:
  End(uint8_t number, const Retransmission& mode)
      : entropy_(number), transport(settings(number, mode), entropy_, *this) {}

  // Offers enough that there is always something to send.
  void offer(uint32_t slices) {
    while (offered_ < slices) {
      if (!channel->offer({offered_ % slices, 0}, transport::Class::request, slice_bytes)) return;
      ++offered_;
    }
  }

  void write(std::span<transport::PacketSlot> packets) override {
    for (transport::PacketSlot& packet : packets) {
      if (packet.slice == transport::SliceRef{}) continue;
      std::memset(packet.frame->head + packet.frame->head_bytes, 0, 16);
      packet.frame->head_bytes = static_cast<uint8_t>(packet.frame->head_bytes + 16);
      ++written;
    }
  }
  bool admits(const transport::Received&) override { return true; }
  void accept(const transport::Received&, Time) override { ++arrived; }
  void delivered(PeerId, std::span<const transport::SliceRef> slices, Time) override {
    offered_ -= static_cast<uint32_t>(slices.size());
  }
  void up(PeerId, transport::Channel& made, Time) override { channel = &made; }
  void down(PeerId, transport::Why, Time) override { throw std::runtime_error("channel lost"); }

 private:
  static transport::Settings settings(uint8_t number, const Retransmission& mode) {
    const Eid eid = ipv4(10, 0, 0, number);
    return {.self = {eid, ub_port},
            .eid = eid,
            .life = Incarnation(number),
            .mtu = mtu,
            .retransmission = mode,
            .buffer_bytes = 1u << 30,
            .controller = congestion::find_controller("fixed"),
            .peers = 3,
            .packets = 8192,
            .slices = 8192};
  }
  SeededEntropy entropy_;
  uint32_t offered_ = 0;

 public:
  transport::Transport transport;
  transport::Channel* channel = nullptr;
  uint64_t written = 0;
  uint64_t arrived = 0;
};

class Line {
 public:
  explicit Line(const Row& row)
      : row_(row), prng_(row.seed), from_(1, row.mode), to_(2, row.mode) {}

  void run() {
    const PeerId peer =
        from_.transport.know(to_.transport.self().address, to_.transport.self(), {});
    from_.transport.channel(peer, now_);
    while (from_.channel == nullptr || to_.channel == nullptr) slot(0);
    const uint64_t written = from_.written;
    const uint64_t arrived = to_.arrived;
    const Time begun = now_;
    const Time limit = begun + packet_time * (most_slots_per_packet * row_.packets);
    while (to_.arrived - arrived < row_.packets && now_ < limit) {
      from_.offer(512);
      slot(row_.loss);
    }
    const auto done = static_cast<double>(to_.arrived - arrived);
    const auto passed = static_cast<double>((now_ - begun) / packet_time);
    std::printf("{\"goodput\": %.5f, \"sends\": %.5f}\n", done / passed,
                static_cast<double>(from_.written - written) / done);
    std::fflush(stdout);
  }

 private:
  struct Flight {
    Time at;
    uint64_t order;
    End* end;
    fuzz::Packet packet;
    bool operator<(const Flight& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  // Simulates one packet time on the line.
  void slot(double loss) {
    const Duration one_way = slots(row_.round_trip) / 2;
    take(from_, [&](fuzz::Packet packet) {
      if (prng_.unit() < loss) return;
      const Duration more = slots(row_.jitter * prng_.unit());
      fly(to_, std::move(packet), packet_time + one_way + more);
    });
    const Time end = now_ + packet_time;
    while (!flights_.empty() && flights_.top().at <= end) {
      const Flight flight = flights_.top();
      flights_.pop();
      pass(flight.at);
      const RxFrame frame = fuzz::received(flight.packet);
      flight.end->transport.receive({&frame, 1}, now_);
      acknowledge(one_way);
    }
    pass(end);
    acknowledge(one_way);
  }

  void pass(Time to) {
    now_ = to;
    from_.transport.handle_timers(now_);
    to_.transport.handle_timers(now_);
  }
  void acknowledge(Duration after) {
    while (take(to_, [&](fuzz::Packet packet) { fly(from_, std::move(packet), after); })) {
    }
  }
  void fly(End& end, fuzz::Packet packet, Duration after) {
    flights_.push({now_ + after, ++order_, &end, std::move(packet)});
  }
  template <class Function>
  bool take(End& end, Function&& send) {
    if (!end.transport.wants_to_send()) return false;
    TxFrame* frame = nullptr;
    pool_.lend({&frame, 1});
    const bool any = end.transport.fill(end, {&frame, 1}, now_) == 1;
    if (any) send(fuzz::gathered(*frame, end.transport.self()));
    pool_.take_back(frame);
    return any;
  }

  const Row row_;
  Prng prng_;
  Time now_{std::chrono::seconds(1)};
  drivers::FramePool pool_{4};
  End from_;
  End to_;
  std::priority_queue<Flight> flights_;
  uint64_t order_ = 0;
};

}  // namespace
}  // namespace urma::test

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    try {
      urma::test::Line(urma::test::read_row(text)).run();
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "goodput: \"%s\": %s\n", text.c_str(), failure.what());
      return 1;
    }
  }
}
