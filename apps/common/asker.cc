// SPDX-License-Identifier: Apache-2.0
#include "apps/common/asker.h"

namespace urma::apps {

void Asker::ask(const std::string& type, nlohmann::json body) {
  answer_.reset();
  refused_.reset();
  type_ = type;
  dialogue_.send(to_, {.id = ++id_, .type = type, .body = std::move(body)});
}

void Asker::take(const Completion& arrival, const std::string& text) {
  if (arrival.from != to_.peer) return dialogue_.drop(arrival, "it is not from " + peer_);
  try {
    Message message = parse_message(text);
    if (message.id != id_ && message.id != 0) return;
    if (message.type == "failed") {
      refused_.emplace(peer_, body_of<Failed>(message));
    } else if (message.id == id_) {
      answer_ = std::move(message);
    }
  } catch (const NotUnderstood& why) {
    throw not_understood(peer_, type_, why, dialogue_.wording());
  }
}

const std::optional<Message>& Asker::answer() {
  if (auto refused = std::exchange(refused_, std::nullopt)) throw *std::move(refused);
  return answer_;
}

}  // namespace urma::apps
