#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/message.h"
#include "urma/urma.hpp"

namespace urma::apps {

// A Jetty with buffers for messages that arrive and copies of those that leave. Works that find no
// berth wait here, in order, until completions have been handled; how many wait is bounded, in all
// and for each peer, so that a peer that takes nothing costs neither memory nor the other peers'
// turns. One thread uses it. It does not know what the messages are about, nor which peers there
// are. Other works of the same Jetty go through `post`, with tags below `message_tag`.
class Dialogue {
 public:
  static constexpr uint64_t message_tag = uint64_t{1} << 63;

  struct Options {
    Wording wording;
    uint32_t berths = 16;
    uint32_t receives = 64;        // buffers of wording.most_bytes each
    size_t most_waiting = 1024;    // works without a berth
    size_t most_waiting_one = 64;  // those of them to one peer
    Jfc* completions = nullptr;    // by default, a queue of the Jetty's own
  };
  Dialogue(Device& device, const Options& options);
  Dialogue(const Dialogue&) = delete;

  Jetty& jetty() { return jetty_; }
  const Wording& wording() const { return options_.wording; }
  // Everything that was sent and posted has completed.
  bool idle() const { return outstanding_ == 0 && waiting_.empty(); }
  size_t waiting() const { return waiting_.size(); }

  // Does not block. Throws a Failure if the message is too long, or with Exit::peer_lost if too
  // much waits already. A message that its peer does not take within 2 s completes with an error.
  void send(const RemoteJetty& to, const Message& message);
  // The same for any work whose completion the caller handles. `to`: the peer that executes it.
  void post(PeerId to, const Work& work);

  // Each completion of the Jetty is given to this. Returns the text if a message has arrived; an
  // immediate, or a message that is longer than the buffers, is not one.
  std::optional<std::string> handle(const Completion& completion);

  // A server counts the messages that it cannot use, and says so when it ends.
  void drop(const Completion& arrival, std::string_view why);
  uint64_t dropped() const { return dropped_; }
  // A line for stderr; empty if none was dropped.
  std::string what_was_dropped() const;

 private:
  struct Waiting {
    PeerId to;
    Work work;
  };
  void push();
  void admit(PeerId to) const;
  std::span<std::byte> buffer(uint64_t tag);
  void receive(uint64_t tag);

  const Options options_;
  std::vector<std::byte> buffers_;
  std::map<uint64_t, std::string> texts_;  // that leave, by tag
  std::deque<Waiting> waiting_;
  uint64_t next_text_ = message_tag;
  uint32_t outstanding_ = 0;
  uint64_t dropped_ = 0;
  std::string last_dropped_;
  Jetty jetty_;  // last: it uses the others
};

}  // namespace urma::apps
