// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/prng.h"
#include "tests/fuzz/packet.h"
#include "wire/setup_message.h"

namespace urma::fuzz {

// Invalid datagrams, half of them with the ICRC that belongs to their bytes. Those that are made
// from real packets get furthest.
class Garbage {
 public:
  explicit Garbage(uint64_t seed) : prng_(seed) {}

  void saw(Packet packet) {
    if (seen_.size() < most_seen) {
      seen_.push_back(std::move(packet));
    } else {
      seen_[prng_.below(most_seen)] = std::move(packet);
    }
  }
  bool wants_more() { return seen_.size() < most_seen || prng_.below(64) == 0; }

  // Returns a packet from any address, with a wrong ICRC, or too short to have an ICRC.
  Packet unsealed(const Endpoint& from, const Endpoint& to) {
    Packet packet{random_bytes(prng_.below(prng_.below(8) == 0 ? 9000 : 300)), from, to};
    if (seen_.empty() || prng_.below(3) == 0) return packet;
    packet = any_seen();
    packet.to = to;
    if (prng_.below(4) == 0) {
      packet.bytes.resize(prng_.below(packet.bytes.size()));
    } else {
      // Flips one bit, so that the change is never undone.
      packet.bytes[prng_.below(packet.bytes.size())] ^= static_cast<std::byte>(1 << prng_.below(8));
    }
    return packet;
  }

  // Returns a datagram as large as UDP allows, which is larger than any packet.
  Packet jumbo(const Endpoint& from, const Endpoint& to) {
    return {random_bytes(prng_.between(10'000, 65'500)), from, to};
  }

  // Returns a packet with a valid ICRC from `from`, which is not a peer. The packet claims no other
  // address.
  Packet from_stranger(const Endpoint& from, const Endpoint& to) {
    switch (prng_.below(4)) {
      case 0:
        return sealed(random_bytes(prng_.below(300)), from, to);
      case 1:
        return set_up(from, to);
      default:
        break;
    }
    if (seen_.empty()) return set_up(from, to);
    Packet packet = any_seen();
    packet.from = from;
    packet.to = to;
    if (prng_.below(4) != 0) flip(packet);
    seal_again(packet);
    return packet;
  }

  // Returns a packet as an attacker on the path could forge it: a real packet in which something
  // was changed.
  Packet forged() {
    if (seen_.empty()) return {};
    Packet packet = any_seen();
    flip(packet);
    seal_again(packet);
    return packet;
  }

 private:
  static constexpr size_t most_seen = 256;

  const Packet& any_seen() { return seen_[prng_.below(seen_.size())]; }

  Bytes random_bytes(size_t count) {
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng_.next());
    return bytes;
  }
  // Flips up to 16 bits, mostly in the headers, where they have a meaning.
  void flip(Packet& packet) {
    for (uint64_t flips = prng_.between(1, 16); flips > 0; --flips) {
      const size_t size = packet.bytes.size();
      const size_t at =
          prng_.below(4) == 0 ? prng_.below(size) : prng_.below(std::min<size_t>(size, 64));
      packet.bytes[at] ^= static_cast<std::byte>(1 << prng_.below(8));
    }
  }
  // Returns a set-up message of any type, with plausible fields.
  Packet set_up(const Endpoint& from, const Endpoint& to) {
    SetupMessage message;
    message.type = static_cast<SetupType>(prng_.between(1, 7));
    message.mtu_log2 = static_cast<uint8_t>(prng_.between(9, 14));
    message.from_life = prng_.below(4);
    message.to_life = prng_.below(4) == 0 ? prng_.next() : 0;
    message.from_tpn = static_cast<uint32_t>(prng_.below(transport_numbers));
    message.to_tpn = static_cast<uint32_t>(prng_.below(transport_numbers));
    message.first_psn = static_cast<uint32_t>(prng_.next());
    message.attempt = static_cast<uint32_t>(prng_.below(1000));
    message.receive_window = static_cast<uint16_t>(prng_.next() >> prng_.below(64));
    message.tassn_window = static_cast<uint16_t>(prng_.next() >> prng_.below(64));
    message.reads = static_cast<uint16_t>(prng_.next() >> prng_.below(64));
    message.buffer_bytes = static_cast<uint32_t>(prng_.next() >> prng_.below(64));
    message.cookie = prng_.next();
    const Addresses addresses{.source = from.address, .destination = to.address};
    std::array<std::byte, TxFrame::head_room> head;
    TxFrame frame;
    frame.head = head.data();
    write_setup(frame, addresses, message, 0);
    return sealed(Bytes(head.begin(), head.begin() + frame.head_bytes), from, to);
  }

  static constexpr uint64_t transport_numbers = 1 << 24;
  Prng prng_;
  std::vector<Packet> seen_;
};

}  // namespace urma::fuzz
