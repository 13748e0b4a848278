// SPDX-License-Identifier: Apache-2.0
// Tests what a station on an Ethernet does with any frames, at any time: frames as other stations
// send them, with some bytes changed, and frames of any bytes. Oracle: a packet that is accepted
// lies within its frame; its sender is a host of this version of IP; the station's own messages are
// bounded, and well formed for another station; packets that stations send each other arrive.

#include <algorithm>
#include <vector>

#include "drivers/dpdk/station.h"
#include "tests/fuzz/input.h"

namespace urma::fuzz {
namespace {

using namespace drivers::dpdk;
using Kind = Station::Kind;
using Frame = std::vector<std::byte>;

Station::Settings settings_of(uint32_t number, bool v6, uint16_t vlan) {
  const auto last = static_cast<uint8_t>(number);
  const Eid six = parse_address("fd00::" + std::to_string(number)).value();
  return {.mac = {std::byte{2}, {}, {}, {}, {}, std::byte{last}},
          .address = v6 ? six : ipv4(10, 9, 0, last),
          .prefix_bits = v6 ? 64u : 24u,
          .vlan = vlan};
}

class Script {
 public:
  explicit Script(Input input)
      : input_(input),
        v6_(input_.chance(128)),
        vlan_(input_.chance(64) ? uint16_t{9} : uint16_t{0}),
        stations_{Station(settings_of(1, v6_, vlan_)), Station(settings_of(2, v6_, vlan_))} {}

  void run() {
    while (!input_.empty()) {
      now_ += Duration(int64_t{input_.below(200)} * 1'000'000);
      const uint32_t from = input_.below(2);
      if (input_.chance(64)) take(any_frame(), 1 - from);
      send_packet(from);
      carry();
    }
    // The stations work as ever.
    for (uint32_t from = 0; from < 2; ++from) {
      now_ += std::chrono::minutes(10);
      for (int tries = 0; tries < 20; ++tries) {
        stations_[from].envelope(stations_[1 - from].self(), now_);
        carry();
        now_ += std::chrono::seconds(1);
      }
      require(send_packet(from), "stations find each other");
    }
  }

 private:
  Frame any_frame() {
    const auto bytes = input_.bytes(input_.below(200));
    return Frame(bytes.begin(), bytes.end());
  }

  // Sends a packet, possibly with changed bytes. Returns whether it arrived.
  bool send_packet(uint32_t from) {
    Station& sender = stations_[from];
    const Station& receiver = stations_[1 - from];
    const Envelope* const envelope = sender.envelope(receiver.self(), now_);
    if (envelope == nullptr) return false;
    const auto data = input_.bytes(1 + input_.below(100));
    Frame frame(most_header_bytes);
    frame.insert(frame.end(), data.begin(), data.end());
    const auto ecn = static_cast<Ecn>(input_.below(4));
    envelope->put(std::span(frame).subspan(most_header_bytes), {.ecn = ecn});
    frame.erase(frame.begin(),
                frame.end() - static_cast<ptrdiff_t>(sender.header_bytes() + data.size()));
    const bool changed = change(frame);
    const Station::Arrival arrival = take(frame, 1 - from);
    if (changed) return false;
    // Another station may have claimed the address of the receiver.
    if (arrival.kind != Kind::packet) return false;
    require(std::ranges::equal(arrival.packet, data), "a packet arrives with its bytes");
    require(arrival.from == sender.self() && arrival.ecn == ecn, "and with its headers");
    return true;
  }

  bool change(Frame& frame) {
    bool changed = false;
    while (input_.chance(48)) {
      frame[input_.below(static_cast<uint32_t>(frame.size()))] ^= std::byte{input_.take<uint8_t>()};
      changed = true;
    }
    if (!input_.chance(16)) return changed;
    frame.resize(input_.below(static_cast<uint32_t>(frame.size())));
    return true;
  }

  Station::Arrival take(const Frame& frame, uint32_t to) {
    kept_ = frame;
    kept_.shrink_to_fit();  // ASan knows its end
    const Station::Arrival arrival = stations_[to].take(kept_, true, now_);
    if (arrival.kind != Kind::packet) return arrival;
    require(arrival.packet.data() >= kept_.data() &&
                arrival.packet.data() + arrival.packet.size() <= kept_.data() + kept_.size(),
            "a packet lies in its frame");
    require(arrival.from.is_ipv4() != v6_ && arrival.from.port != 0, "a sender is a host");
    return arrival;
  }

  // Carries the messages of both stations.
  void carry() {
    for (int round = 0; round < 3; ++round) {
      for (uint32_t from = 0; from < 2; ++from) {
        Station& station = stations_[from];
        size_t messages = 0;
        for (; !station.message().empty(); station.pop_message(), ++messages) {
          Frame frame(station.message().begin(), station.message().end());
          change(frame);
          take(frame, 1 - from);
        }
        require(messages <= 64, "messages are bounded");
      }
    }
  }

  Input input_;
  const bool v6_;
  const uint16_t vlan_;
  std::array<Station, 2> stations_;
  Frame kept_;
  Time now_{std::chrono::seconds(1)};
};

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::Script(urma::fuzz::Input(data, size)).run();
  return 0;
}
