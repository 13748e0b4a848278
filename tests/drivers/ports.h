// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "drivers/driver.h"
#include "tests/bytes.h"

namespace urma::test {

using Packet = std::vector<std::byte>;

// The memory of packets that ports were given to send. A port may read it until `settled` has
// passed its frame. Then it is overwritten and freed, so a later read by the port is noticed.
class SentMemory {
 public:
  // Returns a copy of the packet, which stays valid as long as `port` may read it.
  std::span<std::byte> keep(drivers::PacketPort& port, const Packet& packet) {
    reclaim(port);
    Kept& kept = kept_.try_emplace(&port, Kept{port.settled(), {}}).first->second;
    return kept.packets.emplace_back(packet);
  }
  void reclaim(drivers::PacketPort& port) {
    const auto found = kept_.find(&port);
    if (found == kept_.end()) return;
    Kept& kept = found->second;
    for (; kept.settled < port.settled() && !kept.packets.empty(); ++kept.settled) {
      overwrite(kept.packets.front());
      kept.packets.pop_front();
    }
  }
  // Frees everything, after all ports have been destroyed.
  void reclaim_all() {
    for (auto& [port, kept] : kept_) {
      for (Packet& packet : kept.packets) overwrite(packet);
    }
    kept_.clear();
  }

 private:
  struct Kept {
    uint64_t settled;  // released once the port has settled this many frames
    std::deque<Packet> packets;
  };
  static void overwrite(Packet& packet) { std::ranges::fill(packet, std::byte{0xdb}); }

  std::map<const drivers::PacketPort*, Kept> kept_;
};

// Two ports that reach each other, and their clock.
struct PortPair {
  SentMemory memory;  // outlives the ports
  std::unique_ptr<drivers::PacketPort> a;
  std::unique_ptr<drivers::PacketPort> b;

  PortPair(std::string_view first, std::string_view second) : a(open(first)), b(open(second)) {}

  static std::unique_ptr<drivers::PacketPort> open(std::string_view text) {
    return drivers::open_port(drivers::parse_device_string(text).value()).value();
  }
  drivers::VirtualClock* clock() const { return (a != nullptr ? a : b)->clock(); }
  Time now() const { return clock() != nullptr ? clock()->now() : read_clock(); }
  // Lets time pass. Ports are polled repeatedly, as an engine does, because some have delayed
  // packets.
  void pass_time() {
    for (const auto* port : {&a, &b}) {
      if (*port != nullptr) (*port)->receive({}, now());
    }
    if (clock() != nullptr) clock()->step(now() + std::chrono::microseconds(5));
  }
};

// Arms the port, and receives what came before. Nothing is expected to have come.
inline void arm(PortPair& ports, drivers::PacketPort& port) {
  port.arm();
  for (int tries = 0; tries < 1000; ++tries) {
    RxFrame frame;
    if (port.receive({&frame, 1}, ports.now()) > 0) port.release({&frame, 1});
    if (port.next_arrival() > ports.now()) return;
  }
}

// Returns whether an engine that sleeps at the port's descriptors would be woken within this many
// milliseconds.
inline bool readable(const drivers::PacketPort& port, int milliseconds) {
  std::vector<pollfd> descriptors;
  for (const int one : port.descriptors()) descriptors.push_back({one, POLLIN, 0});
  return ::poll(descriptors.data(), descriptors.size(), milliseconds) > 0;
}

// Returns the state of the way from a lossless port to this endpoint.
inline Ways::State state_of(drivers::PacketPort& from, const Endpoint& to) {
  return from.ways()->state(from.ways()->way_to(to));
}

inline Packet packet_of(size_t bytes, unsigned seed) { return bytes_like(bytes, seed); }

// Sends one packet, with its first bytes in the head and the rest in `pieces` pieces. Returns false
// if there is no frame.
inline bool send_packet(PortPair& ports, drivers::PacketPort& from, const Endpoint& to,
                        const Packet& packet, unsigned pieces = 1, Ecn ecn = Ecn::not_ect) {
  TxFrame* frame = nullptr;
  if (from.lend({&frame, 1}) == 0) return false;
  const std::span<std::byte> memory = ports.memory.keep(from, packet);
  const size_t head = std::min<size_t>(packet.size(), 40);
  std::copy_n(packet.begin(), head, frame->head);
  frame->head_bytes = static_cast<uint8_t>(head);
  frame->piece_count = 0;
  const size_t tail = std::min<size_t>(packet.size() - head, 4);
  size_t at = head;
  for (unsigned i = 0; i < pieces; ++i) {
    const size_t bytes =
        i + 1 == pieces ? packet.size() - tail - at : (packet.size() - tail - head) / pieces;
    if (bytes == 0) continue;
    frame->pieces[frame->piece_count++] = {memory.data() + at, static_cast<uint32_t>(bytes)};
    at += bytes;
  }
  std::copy_n(packet.end() - static_cast<ptrdiff_t>(tail), tail, frame->tail.begin());
  frame->tail_bytes = static_cast<uint8_t>(tail);
  frame->ecn = ecn;
  frame->to = to;
  while (from.send({&frame, 1}, ports.now()) == 0) ports.pass_time();
  return true;
}

// Returns the packets that arrive within 500 ms, or another time, at most `count`.
inline std::vector<Packet> receive_packets(PortPair& ports, drivers::PacketPort& at, size_t count,
                                           Duration patience = std::chrono::milliseconds(500)) {
  std::vector<Packet> out;
  const Time until = ports.now() + patience;
  std::array<RxFrame, 16> frames;
  while (out.size() < count && ports.now() < until) {
    const size_t got = at.receive(
        std::span(frames).first(std::min(frames.size(), count - out.size())), ports.now());
    for (const RxFrame& frame : std::span(frames).first(got)) {
      out.emplace_back(frame.data, frame.data + frame.bytes);
    }
    at.release(std::span(frames).first(got));
    if (got == 0) ports.pass_time();
  }
  return out;
}

// A packet with its ECN field.
struct EcnPacket {
  Ecn ecn;
  Packet packet;

  friend auto operator<=>(const EcnPacket&, const EcnPacket&) = default;
};

// Sends packets of one size as one burst, with these ECN fields, from `a` to `b`.
inline std::vector<EcnPacket> send_ecn(PortPair& ports, const std::vector<Ecn>& fields,
                                       size_t bytes) {
  std::vector<EcnPacket> sent;
  std::vector<TxFrame*> frames(fields.size());
  const size_t lent = ports.a->lend(frames);
  for (size_t i = 0; i < lent; ++i) {
    sent.push_back({fields[i], packet_of(bytes, static_cast<unsigned>(i))});
    TxFrame& frame = *frames[i];
    frame.head_bytes = frame.tail_bytes = 0;
    frame.piece_count = 1;
    frame.pieces[0] = {ports.memory.keep(*ports.a, sent[i].packet).data(),
                       static_cast<uint32_t>(bytes)};
    frame.ecn = fields[i];
    frame.to = ports.b->facts().self;
  }
  for (size_t done = 0; done < lent;) {
    done += ports.a->send(std::span(frames).first(lent).subspan(done), ports.now());
    if (done < lent) ports.pass_time();
  }
  return sent;
}

// Returns the packets that arrive at `b` within 500 ms, at most `count`.
inline std::vector<EcnPacket> receive_ecn(PortPair& ports, size_t count) {
  std::vector<EcnPacket> out;
  const Time until = ports.now() + std::chrono::milliseconds(500);
  std::array<RxFrame, 16> frames;
  while (out.size() < count && ports.now() < until) {
    const size_t got = ports.b->receive(frames, ports.now());
    for (const RxFrame& frame : std::span(frames).first(got)) {
      out.push_back({frame.ecn, Packet(frame.data, frame.data + frame.bytes)});
    }
    ports.b->release(std::span(frames).first(got));
    if (got == 0) ports.pass_time();
  }
  return out;
}

}  // namespace urma::test
