#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/urma_notify/messages.h"
#include "urma/urma.hpp"

namespace urma::notify {

// A Jetty with buffers for arriving messages and texts of leaving ones. Works that find no vacant
// berth wait here, in order, until completions have been handled.
class Post {
 public:
  // Tags of works that are not messages are below this.
  static constexpr uint64_t message_tag = uint64_t{1} << 63;

  Post(Device& device, uint32_t berths, uint32_t receives);

  Jetty& jetty() { return jetty_; }
  bool idle() const { return outstanding_ == 0 && waiting_.empty(); }

  void say(const RemoteJetty& to, const Message& message);
  void post(const Work& work);
  // Takes each completion of the Jetty. Returns the message if the completion is that of a message.
  std::optional<std::string> handle(const Completion& completion);

 private:
  void push();
  void receive(std::span<std::byte> buffer, uint64_t tag);

  std::vector<std::byte> buffers_;
  std::map<uint64_t, std::string> texts_;  // texts of messages that are being sent, by tag
  std::deque<Work> waiting_;
  uint64_t next_text_ = message_tag;
  uint32_t outstanding_ = 0;
  Jetty jetty_;  // destroyed first, because it uses the others
};

}  // namespace urma::notify
