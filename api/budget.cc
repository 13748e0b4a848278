// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

namespace urma {
namespace {

// Returns the bytes that malloc takes for a block of `bytes`: one more word, rounded up to 16.
constexpr uint32_t from_malloc(size_t bytes) {
  return static_cast<uint32_t>((bytes + sizeof(size_t) + 15) / 16 * 16);
}

template <class T>
constexpr uint32_t in_slab() {
  return sizeof(T) + sizeof(uint32_t);  // its generation
}

}  // namespace

Budget Device::budget() {
  using transport::SentWindow;
  constexpr uint32_t per_chunk = SentWindow::Queue::elements_per_chunk;
  constexpr uint32_t chunk = in_slab<SentWindow::Queue::Chunk>();
  constexpr uint32_t tp = in_slab<transport::Tp>();
  constexpr auto by_tpn = static_cast<uint32_t>(2 * transport::Tpns::entry_bytes());
  constexpr uint32_t in_list = sizeof(uint32_t) + sizeof(bool);
  static_assert(tp + by_tpn + TimerWheel::bytes_each + in_list <= 512,
                "an idle channel takes at most 512 bytes");
  return {
      {"Jetty", "the application's object", sizeof(Jetty)},
      {"Jetty", "its state: device, queues, id, token", from_malloc(sizeof(Jetty::State))},
      {"Jetty", "the addresses of its queues, and its own completion queue",
       from_malloc(urma::jetty::Queues::bytes_with_own_jfc())},
      {"Jetty", "the engine's half", in_slab<urma::jetty::Jetty>()},
      {"Jetty", "its entry in the table by id", sizeof(uint32_t)},
      {"peer", "its identity, and the set-up of its channel",
       static_cast<uint32_t>(sizeof(transport::Peer)) + sizeof(uint32_t)},
      {"peer", "works and answers outstanding, in both directions", sizeof(urma::jetty::PeerState)},
      {"peer", "its entry by EID, in a table at most half full",
       2 * static_cast<uint32_t>(transport::Peers::eid_entry_bytes())},
      {"peer", "its timer", TimerWheel::bytes_each},
      {"paths", "to a peer with two to four paths", in_slab<transport::Routes>()},
      {"paths from the fifth on", "likewise", in_slab<transport::RouteTable::Four>()},
      {"channel", "both directions, nothing outstanding", tp},
      {"channel", "its entry by TPN, in a table at most half full", by_tpn},
      {"channel", "its timer", TimerWheel::bytes_each},
      {"channel", "its entry in the list of channels that may send", in_list},
      {"packet in flight", "its slice, and the time at which it was sent",
       sizeof(SentWindow::Packet)},
      {"packet in flight", "its share of a chunk's link",
       (chunk + per_chunk - 1) / per_chunk - static_cast<uint32_t>(sizeof(SentWindow::Packet))},
  };
}

}  // namespace urma
