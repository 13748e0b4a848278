// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drivers/frame_pool.h"
#include "tests/catch.h"
#include "tests/fuzz/packet.h"
#include "tests/usual_offer.h"
#include "transport/setup.h"

namespace urma::test {

inline Endpoint host(uint8_t number) { return {ipv4(10, 0, 0, number), ub_port}; }

// A sink that records which peers are up and why peers went down.
class NotedSink final : public transport::PacketSink {
 public:
  bool admits(const transport::Received&) override { return room; }
  void accept(const transport::Received& packet, Time) override {
    accepted.push_back(packet);
    bytes.emplace_back(packet.bytes.begin(), packet.bytes.end());
  }
  bool accept_expected(PeerId, std::span<const std::byte>, Time) override {
    expected += expects;
    return expects;
  }
  bool accept_next(const transport::Received&) override {
    continued += continues;
    return continues;
  }
  void delivered(PeerId, std::span<const transport::SliceRef> slices, Time) override {
    for (const transport::SliceRef slice : slices) delivered_slots.push_back(slice.slot);
  }
  void up(PeerId, transport::Channel&, Time) override { ++ups; }
  void down(PeerId, transport::Why why, Time) override { downs.push_back(why); }
  void path(PeerId, uint8_t, transport::PathIs now) override { paths.push_back(now); }

  bool room = true;
  bool expects = false;  // whether packets are taken by `accept_expected`, and how many were
  int expected = 0;
  bool continues = false;  // the same for `accept_next`
  int continued = 0;
  int ups = 0;
  std::vector<transport::Why> downs;
  std::vector<transport::PathIs> paths;
  std::vector<transport::Received> accepted;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<uint32_t> delivered_slots;
};

// Everything that a part of a transport uses, so that one part can be tested alone: the device is
// host 1, incarnation 0x1234, over a medium of class `MediumKind`.
template <class MediumKind>
class Parts {
 public:
  static constexpr uint64_t our_life = 0x1234;
  static constexpr uint64_t their_life = 0x5678;

  template <class... More>
  explicit Parts(const transport::Settings& with, More&&... more)
      : settings(with),
        own_paths(settings),
        peers(settings, entropy),
        tpns(settings.peers),
        peer_paths(settings, own_paths, settings.ways == nullptr),
        medium({.settings = settings, .peers = peers, .tpns = tpns, .counters = counters},
               std::forward<More>(more)...),
        links(common(), {.peers = peers, .tpns = tpns, .paths = peer_paths, .medium = medium}),
        outbox(settings, own_paths, medium, counters) {}

  static transport::Settings defaults() {
    return {.self = host(1),
            .eid = host(1).address,
            .life = Incarnation(our_life),
            .controller = congestion::find_controller("fixed"),
            .peers = 4,
            .packets = 1024,
            .slices = 1024};
  }
  transport::Common common() { return {settings, entropy, sink, counters, news}; }
  transport::SetupParts setup_parts() {
    return {.peers = peers,
            .tpns = tpns,
            .own_paths = own_paths,
            .paths = peer_paths,
            .medium = medium,
            .links = links};
  }

  transport::Peer& known(uint8_t number, uint64_t life = 0) {
    return *peers.create(host(number).address, host(number), Incarnation(life));
  }
  // Makes a peer with a channel whose far end has the TPN 77.
  transport::Peer& linked(uint8_t number) {
    transport::Peer& peer = known(number, their_life);
    peer.tpn = tpns.draw(entropy);
    peer.first_psn = 5;
    links.make(peer, {.theirs = accept(), .mtu = 1024, .first_rtt = std::chrono::milliseconds(1)},
               now);
    return peer;
  }
  static SetupMessage accept() {
    SetupMessage message = usual_offer();
    message.type = SetupType::accept;
    message.from_life = their_life;
    message.to_life = our_life;
    message.from_tpn = 77;
    return message;
  }
  // Returns a message of type `type` from the peer about its channel.
  static SetupMessage from(const transport::Peer& peer, SetupType type) {
    SetupMessage out = accept();
    out.type = type;
    out.to_tpn = number(peer.tpn);
    return out;
  }
  // Returns the message as it arrives from the peer `number`.
  transport::ArrivedSetup arrived(const SetupMessage& message, uint8_t number = 2) {
    from_ = host(number);
    addresses_ = {.source = from_.address, .destination = settings.eid};
    return {.addresses = addresses_, .message = message, .from = from_, .path = 0, .now = now};
  }
  // Returns the set-up messages that leave now.
  std::vector<SetupMessage> sent() {
    std::vector<SetupMessage> out;
    while (outbox.waits()) {
      TxFrame* frame = nullptr;
      REQUIRE(frames.lend({&frame, 1}) == 1);
      if (outbox.fill({&frame, 1}) == 1) {
        fuzz::Bytes bytes(frame->bytes());
        drivers::flatten(*frame, bytes.data());
        const bool rtp = medium.carrier() == Carrier::unreliable;
        if (rtp) bytes.resize(bytes.size() - icrc_bytes);
        const auto setup = parse_setup(bytes, medium.carrier());
        REQUIRE(setup);
        out.push_back(setup->message);
      }
      frames.take_back(frame);
    }
    return out;
  }
  SetupMessage only_sent(SetupType type) {
    const auto all = sent();
    REQUIRE(all.size() == 1);
    REQUIRE(all[0].type == type);
    return all[0];
  }

 private:
  Endpoint from_;
  Addresses addresses_;

 public:
  const transport::Settings settings;
  SeededEntropy entropy{1};
  NotedSink sink;
  transport::Counters counters;
  transport::PeerNews news;
  Time now{std::chrono::seconds(1)};
  drivers::FramePool frames{4};
  transport::OwnPaths own_paths;
  transport::Peers peers;
  transport::Tpns tpns;
  transport::PeerPaths peer_paths;
  MediumKind medium;  // its channels use the paths
  transport::Links links;
  transport::SetupOutbox outbox;
};

}  // namespace urma::test
