// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "apps/common/dialogue.h"

namespace urma::apps {

// The Failure with which a peer answered. `again`: a retry may succeed in a moment.
class Refused : public Failure {
 public:
  Refused(const std::string& peer, const Failed& failed)
      : Failure(failed.exit, peer + ": " + failed.message), again_(failed.again) {}
  bool again() const { return again_; }

 private:
  bool again_;
};

// The client's half of a dialogue: one question at a time, and its answer. It does not wait: its
// owner takes the completions of the Jetty, gives the messages to `take`, and decides how long to
// wait.
class Asker {
 public:
  // `peer` begins each error: "the server at 10.0.0.5".
  Asker(Dialogue& dialogue, std::string peer) : dialogue_(dialogue), peer_(std::move(peer)) {}

  const std::string& peer() const { return peer_; }
  const RemoteJetty& to() const { return to_; }
  // Where questions go. Messages from other peers are dropped and counted.
  void meet(const RemoteJetty& to) { to_ = to; }

  // Sends a question, whose answer will be `answer`. That of an earlier question is ignored.
  void ask(const std::string& type, nlohmann::json body);
  // A message that has arrived. Throws a Failure, which names the peer, if it is not understood.
  void take(const Completion& arrival, const std::string& text);
  // The answer, once it has arrived. Throws Refused, once, if a "failed" has arrived: as the
  // answer, or with id 0.
  const std::optional<Message>& answer();
  // Returns whether `answer` would throw.
  bool refused() const { return refused_.has_value(); }

  // Reads the body of an answer. Throws a Failure that names the peer and what was wrong.
  template <class Body>
  Body read(const Message& answer) const {
    try {
      return body_of<Body>(answer);
    } catch (const NotUnderstood& why) {
      throw not_understood(peer_, type_, why, dialogue_.wording());
    }
  }

 private:
  Dialogue& dialogue_;
  const std::string peer_;
  RemoteJetty to_;
  uint64_t id_ = 0;   // of the last question
  std::string type_;  // of the last question
  std::optional<Message> answer_;
  std::optional<Refused> refused_;
};

}  // namespace urma::apps
