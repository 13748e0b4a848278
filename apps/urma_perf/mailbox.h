#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/urma_perf/messages.h"
#include "urma/urma.hpp"

namespace urma::perf {

// A Jetty for control messages, with buffers for arriving ones and copies of leaving ones.
class Mailbox {
 public:
  // Completes in `completions`, or in a queue of its own if that is null.
  Mailbox(Device& device, Jfc* completions);

  Jetty& jetty() { return jetty_; }

  // Does not block. Fails if 16 messages are still being sent.
  void send(const RemoteJetty& to, const Message& message);
  // Returns whether the peer has accepted all messages that were sent.
  bool idle() const { return vacant_.size() == outgoing; }
  // Takes each completion of the Jetty. Returns the message if the completion is that of a message.
  std::optional<std::string> handle(const Completion& completion);

 private:
  // `tag` is the number of the buffer, from 1 on, because the immediate of a write completes with
  // tag 0.
  void receive(std::span<std::byte> buffer, uint64_t tag);

  static constexpr uint32_t outgoing = 16;
  static constexpr uint32_t incoming = 64;

  std::vector<std::byte> buffers_;
  std::array<std::string, outgoing> texts_;
  std::vector<uint32_t> vacant_;  // vacant entries of `texts_`
  Jetty jetty_;                   // destroyed first, because it uses the others
};

}  // namespace urma::perf
