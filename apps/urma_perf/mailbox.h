#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/urma_perf/messages.h"
#include "urma/urma.hpp"

namespace urma::perf {

// A Jetty for control messages: buffers for those that come, copies of those that leave.
class Mailbox {
 public:
  // Completes in `completions`, or in a queue of its own if that is null.
  Mailbox(Device& device, Jfc* completions);

  Jetty& jetty() { return jetty_; }

  // Blocks for nothing; fails when 16 messages are still on their way.
  void send(const RemoteJetty& to, const Message& message);
  // All that was sent has been taken.
  bool idle() const { return vacant_.size() == outgoing; }
  // Each completion of the Jetty comes here. A message, if that is what it tells of.
  std::optional<std::string> handle(const Completion& completion);

 private:
  // `tag` is the buffer's number, from 1 on: the immediate of a write completes with tag 0.
  void receive(std::span<std::byte> buffer, uint64_t tag);

  static constexpr uint32_t outgoing = 16;
  static constexpr uint32_t incoming = 64;

  std::vector<std::byte> buffers_;
  std::array<std::string, outgoing> texts_;
  std::vector<uint32_t> vacant_;  // of `texts_`
  Jetty jetty_;                   // last: it uses the others
};

}  // namespace urma::perf
