// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "transport/links.h"
#include "transport/utp.h"

namespace urma::transport {

// Sends and receives messages without a channel (UB: UNO). Each is a UTP Send like a set-up
// message, but to another Jetty. Messages are not answered, so they neither make a peer known nor
// keep it known. Only the thread that runs the engine calls it.
class Datagrams {
 public:
  Datagrams(const Common& common, Peers& peers, const OwnPaths& own_paths, Medium& medium);

  // Returns the object that sends datagrams to this peer until the next call.
  Channel* to(const Peer& peer);
  // Writes packets that wait into frames. Returns how many leave; `filled_before`: frames that the
  // transport has written before these.
  size_t fill(std::span<TxFrame* const> frames, uint64_t filled_before);
  bool waits() const { return utp_.waits(); }
  // The driver has released this many of all frames that the transport has written.
  void settled(uint64_t frames) { utp_.settled(frames); }

  // Returns whether this packet without a channel, stripped of its ICRC, is a datagram; else it
  // belongs to set-up.
  bool are(std::span<const std::byte> packet) const {
    const size_t target_at = headers_bytes_ + Btah::size;
    return packet.size() >= target_at + Mtetah::size &&
           Mtetah::parse(packet.subspan(target_at).first<Mtetah::size>()).target !=
               number(setup_jetty);
  }
  // Writes to `out` what the layer above receives. Returns false, and counts the reason, if the
  // datagram is not for this device. `head`: the beginning of `packet`, in memory where its sender
  // can no longer change it.
  bool parse(std::span<const std::byte> packet, std::span<const std::byte> head,
             const Endpoint& from, Received& out);

 private:
  PeerId peer_at(const Eid& eid, const Endpoint& at);

  const Common common_;
  Peers& peers_;
  const OwnPaths& own_paths_;
  Medium& medium_;
  const size_t headers_bytes_;  // in front of the transaction headers
  Utp utp_;
};

}  // namespace urma::transport
