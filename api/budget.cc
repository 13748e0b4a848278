#include "api/handles.h"

namespace urma {
namespace {

// What malloc makes of it: a word before it, and 16 bytes at a time.
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
  return {
      {"Jetty", "the application's object", sizeof(Jetty)},
      {"Jetty", "what it holds: device, queues, id, token", from_malloc(sizeof(Jetty::State))},
      {"Jetty", "where its queues are, and the completion queue of its own",
       from_malloc(urma::jetty::Queues::bytes_with_own_jfc())},
      {"Jetty", "the engine's half", in_slab<urma::jetty::Jetty>()},
      {"Jetty", "by its id", sizeof(uint32_t)},
      {"peer", "who it is, and the making of its channel",
       static_cast<uint32_t>(transport::Transport::peer_bytes) + sizeof(uint32_t)},
      {"peer", "what is owed to it and by it", sizeof(urma::jetty::PeerState)},
      {"peer", "by its EID, in a table at most half full",
       2 * static_cast<uint32_t>(transport::Transport::eid_entry_bytes())},
      {"peer", "its timer", TimerWheel::bytes_each},
      {"paths", "to a peer with which there are two to four", in_slab<transport::Routes>()},
      {"paths from the fifth on", "likewise", in_slab<transport::Routes::Four>()},
      {"channel", "both directions, nothing outstanding", in_slab<transport::Tp>()},
      {"channel", "by its TPN, in a table at most half full",
       2 * static_cast<uint32_t>(transport::Transport::tpn_entry_bytes())},
      {"channel", "its timer", TimerWheel::bytes_each},
      {"channel", "its turn", sizeof(uint32_t) + sizeof(bool)},
      {"packet in flight", "which slice, and when it left", sizeof(SentWindow::Packet)},
      {"packet in flight", "its share of a chunk's link",
       (chunk + per_chunk - 1) / per_chunk - static_cast<uint32_t>(sizeof(SentWindow::Packet))},
  };
}

}  // namespace urma
