// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "engine/name_message.h"
#include "urma/core/endpoint.h"
#include "urma/core/ids.h"
#include "urma/core/retransmission.h"
#include "urma/core/status.h"
#include "urma/core/time.h"

namespace urma::engine {

// A question for what another device publishes under a name. It belongs to the thread that waits
// for the answer, which sets the first five members.
struct Question {
  static constexpr Duration ask_again_after = std::chrono::milliseconds(100);

  std::string name;                                // the published name that is asked for
  Endpoint at;                                     // the device that is asked
  Time until{};                                    // then the question ends as timed out
  std::optional<Retransmission> retransmission{};  // of the channel to the asked device
  int timer = -1;  // a TimerDescriptor that the answer makes readable; negative if there is none
  // The outcome, valid once `done` is true.
  bool done = false;
  Status status = Status::timed_out;
  std::string line;  // the answer; the thread reserves LineJetty::line_bytes

  bool ended(Time now) const { return done || now >= until; }
  // Returns whether the question has to be sent now. If so, it has to be sent again after
  // `ask_again_after`.
  bool take_due(Time now);

  // Only Questions and NameService use these.
  Question* next = nullptr;  // in the list of open questions
  uint32_t number = 0;       // the answer repeats it
  PeerId peer;               // the asked device, once it is known
  Time ask_at{};             // when the question is sent, or repeated
};

// The questions that this device has asked. Knows nothing of Jetties: NameService sends and
// receives for it. Called by the thread that runs the pass.
class Questions {
 public:
  // `question` must exist until it is removed.
  void add(Question& question, Time now);
  void remove(const Question& question);

  // Gives the answer to the question with its number. An answer is ignored if no open question to
  // the peer that sent it has this number.
  void take_answer(PeerId from, const NameMessage& answer);

 private:
  Question* first_ = nullptr;
  uint32_t next_number_ = 1;
};

}  // namespace urma::engine
