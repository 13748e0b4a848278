// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/message.h"
#include "urma/urma.hpp"

namespace urma::apps {

// A Jetty with buffers for messages that arrive and copies of those that leave. Works that find no
// berth wait here until completions have been handled: those to one peer in order, the peers by
// turns. How many works wait is bounded, in all and for each peer, and the works to one peer hold
// only a share of the berths. So a peer that takes nothing costs neither memory nor the other
// peers' turns. One thread uses it. It does not know what the messages are about. Other works of
// the same Jetty go through `post`, with tags below `message_tag`.
class Dialogue {
 public:
  static constexpr uint64_t message_tag = uint64_t{1} << 63;

  struct Options {
    Wording wording;
    uint32_t berths = 16;
    uint32_t berths_one = 4;       // the most that works to one peer hold
    uint32_t receives = 64;        // buffers of wording.most_bytes each
    size_t most_waiting = 1024;    // works without a berth
    size_t most_waiting_one = 64;  // the most of them to one peer
    // After this a message that its peer does not take completes with an error. For a server it is
    // short: a stopped client must not hold berths for long.
    Duration patience = std::chrono::seconds(2);
    Jfc* completions = nullptr;  // by default, a queue of the Jetty's own
  };
  Dialogue(Device& device, const Options& options);
  Dialogue(const Dialogue&) = delete;

  Jetty& jetty() { return jetty_; }
  const Wording& wording() const { return options_.wording; }
  // Returns whether all works, messages included, have completed.
  bool idle() const { return peers_.empty(); }
  // The number of works without a berth.
  size_t waiting() const { return waiting_; }

  // Does not block. Throws a Failure if the message is too long, or with Exit::peer_lost if too
  // much waits already.
  void send(const RemoteJetty& to, const Message& message);
  // The same for any work whose completion the caller handles. `to`: the peer that executes it.
  void post(PeerId to, const Work& work);

  // Each completion of the Jetty is given to this. Returns the text if a message has arrived; an
  // immediate, or a message that is longer than the buffers, is not one.
  std::optional<std::string> handle(const Completion& completion);

  // A server goes on after a message that it cannot use. It counts such messages, and prints the
  // complaints when it ends.
  void drop(const Completion& arrival, std::string_view why);  // it is not understood
  void leave_unanswered(const Completion& arrival, std::string_view why);
  // Lines for stderr, one for each kind of message that was counted.
  std::vector<std::string> complaints() const;

 private:
  // A peer to which works have not completed.
  struct Peer {
    explicit Peer(PeerId peer) : id(peer) {}

    PeerId id;
    uint32_t berths = 0;  // held by its works
    std::deque<Work> waiting;
  };
  struct Unused {
    uint64_t count = 0;
    std::string last;  // which message, and why
  };
  Peer& admit(PeerId to);
  void queue(Peer& peer, const Work& work);
  void push();
  void release(uint64_t tag);
  std::span<std::byte> buffer(uint64_t tag);
  void receive(uint64_t tag);

  const Options options_;
  std::vector<std::byte> buffers_;
  std::map<uint64_t, std::string> texts_;  // messages that have not completed, by tag
  std::list<Peer> peers_;                  // in the order of their turns
  std::multimap<uint64_t, std::list<Peer>::iterator> posted_;  // works that hold berths, by tag
  size_t waiting_ = 0;
  uint64_t next_text_ = message_tag;
  Unused dropped_;
  Unused unanswered_;
  Jetty jetty_;  // last: it uses the others
};

}  // namespace urma::apps
